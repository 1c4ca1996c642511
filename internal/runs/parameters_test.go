package runs_test

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestParameters: a run begins once its module parameters are set, and ends if they are no longer in effect.
func TestParameters(t *testing.T) {
	action := v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{Name: "zfs_txg_timeout", Value: "7"}}
	waiting, set := runstest.Operation(action, "", 0, 0), runstest.Operation(action, "", -time.Minute, 0)
	waiting.Status.StartedAt = runstest.Stamp(-time.Second) // begun, but not set yet
	refused, undone := runstest.Operation(action, v1alpha1.OutcomeFailed, 0, 0), runstest.Operation(action, v1alpha1.OutcomeFailed,
		-time.Minute, -time.Second)
	going := set.DeepCopy()
	going.DeletionTimestamp = runstest.Stamp(0)
	longAgo := func(s *runs.State) { s.Run.Status.StartedAt = runstest.Stamp(-10 * time.Minute) }
	for _, test := range []struct {
		name      string
		changes   []runChange
		operation *v1alpha1.PoolOperation
		actions   []string
		reason    string
		ending    string
		says      string
		wake      time.Duration
	}{
		{"they are set first", []runChange{jobless(false), volumeGone}, nil, []string{"SetParameters"}, "PreparingVolume", "", "setting",
			10 * time.Minute},
		{"and waited for", []runChange{jobless(false), volumeGone}, waiting, nil, "PreparingVolume", "", "zfs_txg_timeout", 10 * time.Minute},
		{"not for ever", []runChange{jobless(false), longAgo}, waiting, nil, "ParameterNotSet", "final", "within 10m0s", 0},
		{"the agent refuses", []runChange{jobless(false)}, refused, nil, "ParameterNotSet", "final", "is not set", 0},
		{"then the volume", []runChange{jobless(false), volumeGone}, set, []string{"CreateVolumes", "StartCompanion 0 observe"}, "PhaseRunning",
			"", "", 10 * time.Minute},
		{"during a phase", nil, set, nil, "PhaseRunning", "", "", 50 * time.Minute},
		{"restored during a phase", nil, undone, nil, "ParameterNotSet", "retry", "was not kept", 0},
		{"being deleted during a phase", nil, going, nil, "ParameterNotSet", "retry", "was deleted", 0},
		{"held until the result is there", []runChange{received}, set, []string{"StoreResult 0"}, "PhaseRunning", "", "", 0},
		{"restored when the result is there", []runChange{received}, undone, nil, "ParameterNotSet", "retry", "was not kept", 0},
		{"deleted when the result is there", []runChange{received}, nil, nil, "ParameterNotSet", "retry", "was deleted", 0},
		{"deleted during a phase", nil, nil, nil, "ParameterNotSet", "retry", "was deleted", 0},
	} {
		setting := func(s *runs.State) {
			s.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}
			s.Run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{ModuleParameters: v1alpha1.ModuleParameters{"zfs_txg_timeout": "7"}}
			if test.operation != nil {
				s.Parameters = map[string]*v1alpha1.PoolOperation{"zfs_txg_timeout": test.operation}
			}
		}
		t.Run(test.name, runCase{changes: append([]runChange{setting}, test.changes...), actions: test.actions, reason: test.reason,
			ending: test.ending, says: test.says, wake: test.wake}.check)
	}
}

// TestParametersAreRestored: module parameters are restored even if the run is retained; otherwise their operations are deleted before the
// pool.
func TestParametersAreRestored(t *testing.T) {
	for retain, want := range map[v1alpha1.RetainPolicy]string{"Always": "RestoreParameter", "Never": "DeleteJobsAndOperations"} {
		state := runstest.Underway()
		state.Run.Spec.Retain, state.Run.Spec.Target.ZFS = retain, &v1alpha1.ZFSTarget{ModuleParameters: v1alpha1.ModuleParameters{"zfs_a": "1"}}
		state.Pools, state.Claims = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}, runs.Claims{}
		allStored(&state)
		runstest.Record(state.Run, runstest.ValidEnding, false)
		state.Parameters = map[string]*v1alpha1.PoolOperation{"zfs_a": runstest.Operation(v1alpha1.PoolAction{}, "", -time.Minute, 0)}
		if decision := runs.Plan(state); len(decision.Actions) != 1 || string(decision.Actions[0].Kind) != want || decision.Settled {
			t.Errorf("retain %s: %+v", retain, decision)
		}
	}
	if name := runs.ParameterOperationName(runstest.Underway().Run, "zfs_txg_timeout"); name[len(name)-20:] != ".set.zfs-txg-timeout" {
		t.Error(name)
	}
}
