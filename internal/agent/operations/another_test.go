package operations

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/operate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestOperationsKeepToTheirPools: an operation begins only on the BenchmarkPool with which it was first seen, and not on one that got the
// same name later.
func TestOperationsKeepToTheirPools(t *testing.T) {
	replicate := v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "a", ToPool: "bench1", To: "copy"}}
	begins := decided{"AddFinalizer", "", v1alpha1.ReasonOperationRunning, "begins"}
	lost := func(message string) decided {
		return decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonPoolLost, message}
	}
	for name, c := range map[string]struct {
		action       v1alpha1.PoolAction
		seen, seenTo string
		change       func(*State)
		want         decided
	}{
		"never seen one":      {destroyAction, "", "", nil, begins},
		"the one it has seen": {destroyAction, "uid-1", "", nil, begins},
		"another":             {destroyAction, "uid-0", "", nil, lost("BenchmarkPool bench0 with UID uid-0")},
		"another that is not ready": {destroyAction, "uid-0", "", notReadyFor(v1alpha1.ReasonPoolUnhealthy),
			lost("the pool of that name now has UID uid-1")},
		"none any more": {destroyAction, "uid-1", "", func(s *State) { s.Pool, s.Live = nil, nil },
			lost("no pool has that name now")},
		"none yet": {destroyAction, "", "", func(s *State) { s.Pool, s.Live = nil, nil },
			decided{"", "", v1alpha1.ReasonPoolNotReady, "it does not exist"}},
		"to the one it has seen": {replicate, "uid-1", "uid-2", nil, begins},
		"to another":             {replicate, "uid-1", "uid-0", nil, lost("BenchmarkPool bench1 with UID uid-0")},
		"to none any more": {replicate, "uid-1", "uid-2", func(s *State) { s.ToPool, s.ToLive = nil, nil },
			lost("BenchmarkPool bench1")},
		"another, but it is cancelled": {destroyAction, "uid-0", "", func(s *State) { s.Operation.Spec.Cancel = true },
			decided{"", v1alpha1.OutcomeCancelled, v1alpha1.ReasonCancelled, ""}},
		"not its turn, not looked at": {destroyAction, "uid-1", "", func(s *State) {
			s.Others = []v1alpha1.PoolOperation{*wantedOperation(scrubAction)}
			s.Others[0].Name, s.Others[0].UID, s.Pool, s.Live = "other", "uid-0", nil, nil
		}, decided{"", "", v1alpha1.ReasonQueued, "which is older"}},
	} {
		t.Run(name, func(t *testing.T) {
			state := operationState(c.action)
			state.Pool.UID = "uid-1"
			state.Source, state.Target = Object{Name: "bench0/a", Exists: true}, Object{Name: "bench1/copy"}
			to := *state.Live
			to.Name, to.GUID = "bench1", "701"
			state.ToPool, state.ToLive = state.Pool.DeepCopy(), &to
			state.ToPool.Name, state.ToPool.UID = "bench1", "uid-2"
			state.Operation.Status.PoolUID, state.Operation.Status.ToPoolUID = c.seen, c.seenTo
			if c.change != nil {
				c.change(&state)
			}
			c.want.diff(t, Plan(state))
		})
	}
}

func TestSeenPools(t *testing.T) {
	state := operationState(scrubAction)
	state.Pool.UID = "uid-1"
	if pool, to := state.Seen(); pool != "uid-1" || to != "" {
		t.Error(pool, to)
	}
	state.Operation.Status.PoolUID = "uid-0"
	if pool, _ := state.Seen(); pool != "uid-0" {
		t.Errorf("another pool has taken the place: %s", pool)
	}
	state.Operation.Status.PoolUID, state.Pool = "", nil
	if pool, _ := state.Seen(); pool != "" {
		t.Error(pool)
	}
}

func TestWhatAnOperationLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		action  v1alpha1.PoolAction
		started bool
		outcome string
		want    string
	}{
		"not begun": {scrubAction, false, "", "the scrub of pool bench0 has not started"},
		"at work":   {scrubAction, true, "", "the scrub of pool bench0 may be half done on node node-a"},
		"ended":     {scrubAction, true, v1alpha1.OutcomeSucceeded, "the scrub of pool bench0 has ended: Succeeded"},
		"set": {setAction, true, v1alpha1.OutcomeFailed,
			"parameter zfs_txg_timeout may keep the value 9 on node node-a until its module is reloaded or an agent runs there"},
	} {
		operation := wantedOperation(c.action)
		if operation.Status.Outcome = c.outcome; c.started {
			operation.Status.StartedAt = &metav1.Time{Time: operationStart}
		}
		if got := objects.OperationLeftBehind(operation); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestReleasedOperations(t *testing.T) {
	for name, c := range map[string]struct {
		deleted, kept bool
		annotation    string
		want          bool
	}{
		"released":               {true, true, "node-a", true},
		"it lives":               {false, true, "node-a", false},
		"nothing keeps it":       {true, false, "node-a", false},
		"with another node":      {true, true, "node-b", false},
		"without the annotation": {true, true, "", false},
	} {
		operation := wantedOperation(scrubAction)
		operation.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: c.annotation}
		if c.deleted {
			operation.DeletionTimestamp = &metav1.Time{Time: operationStart}
		}
		if c.kept {
			operation.Finalizers = []string{v1alpha1.FinalizerTeardown}
		}
		if got := objects.OperationReleased(operation); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOperationDuration(t *testing.T) {
	operation := wantedOperation(scrubAction)
	if _, known := operate.Duration(operation); known {
		t.Error("a duration of what tells none")
	}
	operation.Status.Metrics = []v1alpha1.OperationMetric{metric("errorsFound", 3), metric(operate.MetricDuration, 90)}
	if took, known := operate.Duration(operation); !known || took != 90*time.Second {
		t.Error(took, known)
	}
}
