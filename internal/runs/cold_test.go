package runs_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

func coldPhase(s *runs.State) {
	s.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}
	s.Run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{}
	s.Run.Spec.Phases[0].Fill, s.Run.Spec.Phases[0].Measure = nil, &v1alpha1.MeasurePhase{Cache: v1alpha1.CacheCold}
}

// TestColdPhase: the pool of a phase with a cold cache is exported and imported before anything else of the phase begins.
func TestColdPhase(t *testing.T) {
	reload := v1alpha1.PoolAction{ExportImport: &v1alpha1.ExportImportAction{}}
	counting := runstest.Operation(v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{}}, "", -time.Minute, 0)
	failed := func(reason string) *v1alpha1.PoolOperation {
		operation := runstest.Operation(reload, v1alpha1.OutcomeFailed, -time.Minute, -time.Second)
		operation.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason}}
		return operation
	}
	emptied := runstest.Operation(reload, v1alpha1.OutcomeSucceeded, -time.Minute, -time.Second)
	longAgo := func(s *runs.State) { s.Run.Status.StartedAt = runstest.Stamp(-10 * time.Minute) }
	for _, test := range []struct {
		name              string
		changes           []runChange
		emptying, observe *v1alpha1.PoolOperation
		actions           []string
		reason            string
		ending            string
		says              string
		wake              time.Duration
	}{
		{"first the caches", []runChange{jobless(false)}, nil, nil, []string{"StartCompanion 0 empty"}, "PhaseRunning", "", "", 10 * time.Minute},
		{"which takes its time", []runChange{jobless(false)}, runstest.Operation(reload, "", -time.Second, 0), nil, nil, "PhaseRunning", "", "",
			10 * time.Minute},
		{"but not for ever", []runChange{jobless(false), longAgo}, runstest.Operation(reload, "", 0, 0), nil, nil, "PodNotStarted", "final",
			"the caches of phase", 0},
		{"and may fail", []runChange{jobless(false)}, failed(v1alpha1.ReasonActionFailed), nil, nil, "PhaseInvalid", "final",
			"its caches could not be emptied", 0},
		{"for what may pass", []runChange{jobless(false)}, failed(v1alpha1.ReasonAgentDied), nil, nil, "PhaseInvalid", "retry",
			"its caches could not be emptied", 0},
		{"then the observation", []runChange{jobless(false)}, emptied, nil, []string{"StartCompanion 0 observe"}, "PhaseRunning", "", "",
			10 * time.Minute},
		{"then the pod", []runChange{jobless(false)}, emptied, counting, []string{"StartPhase 0"}, "PhaseRunning", "", "", 0},
		{"it is not done twice", nil, emptied, counting, nil, "PhaseRunning", "", "", 50 * time.Minute},
		{"a result ends the observation only", []runChange{received}, emptied, counting, []string{"EndCompanion 0 observe"}, "PhaseRunning", "",
			"", 2*time.Minute - time.Second},
	} {
		companions := func(s *runs.State) {
			s.Phases[0].Companions = map[runs.Companion]*v1alpha1.PoolOperation{}
			for companion, operation := range map[runs.Companion]*v1alpha1.PoolOperation{runs.Emptying: test.emptying,
				runs.Observation: test.observe} {
				if operation != nil {
					s.Phases[0].Companions[companion] = operation
				}
			}
		}
		t.Run(test.name, runCase{changes: append(append([]runChange{coldPhase}, test.changes...), companions), actions: test.actions,
			reason: test.reason, ending: test.ending, says: test.says, wake: test.wake}.check)
	}
}

// TestWhoseCachesAreEmptied: caches are emptied only on a pool, for a declared cold cache, and not twice in a row.
func TestWhoseCachesAreEmptied(t *testing.T) {
	reload := func(on v1alpha1.VolumeName) *v1alpha1.Phase {
		return &v1alpha1.Phase{Name: "reload", Volume: on,
			Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{ExportImport: &v1alpha1.ExportImportAction{}}}}
	}
	scrub := &v1alpha1.Phase{Name: "s", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}}}
	for name, c := range map[string]struct {
		cache  v1alpha1.CacheExpectation
		pool   bool
		before *v1alpha1.Phase
		want   bool
	}{
		"cold":                         {v1alpha1.CacheCold, true, nil, true},
		"warm":                         {v1alpha1.CacheWarm, true, nil, false},
		"any":                          {v1alpha1.CacheAny, true, nil, false},
		"on a class":                   {v1alpha1.CacheCold, false, nil, false},
		"just done":                    {v1alpha1.CacheCold, true, reload("data"), false},
		"done on another volume":       {v1alpha1.CacheCold, true, reload("log"), true},
		"done on a volume of its pool": {v1alpha1.CacheCold, true, reload("index"), false},
		"something else was done":      {v1alpha1.CacheCold, true, scrub, true},
	} {
		run := &v1alpha1.BenchmarkRun{}
		if c.pool {
			run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "log", Pool: &v1alpha1.PoolTemplate{}},
				{Name: "index", PoolOf: "data"}}}
		}
		phase := v1alpha1.Phase{Name: "scan", Measure: &v1alpha1.MeasurePhase{Cache: c.cache}}
		run.Spec.Phases = []v1alpha1.Phase{phase}
		if c.before != nil {
			run.Spec.Phases = []v1alpha1.Phase{*c.before, phase}
		}
		if got := runs.Empties(run, phase); got != c.want || slices.Contains(runs.Companions(run, phase), runs.Emptying) != c.want {
			t.Errorf("%s: emptied: %v", name, got)
		}
		state := runs.State{Run: run, Phases: make([]runs.PhaseState, len(run.Spec.Phases))}
		for i := range run.Spec.Phases {
			run.Spec.Phases[i].StartDeadline, run.Spec.Phases[i].Deadline = runstest.Lasting(time.Minute), runstest.Lasting(time.Hour)
		}
		made := runs.CompanionOperation(state, len(run.Spec.Phases)-1, runs.Emptying)
		if action := made.Spec.Action; action.ExportImport == nil || action.Observe != nil {
			t.Errorf("%s: the operation is %+v", name, action)
		}
		last := &state.Phases[len(run.Spec.Phases)-1]
		last.Received = &results.PhaseDocument{Outcome: results.OutcomeValid}
		joined, err := runs.Joined(state, len(run.Spec.Phases)-1)
		if _, told := joined.Document.Environment["emptied"]; err != nil || told != c.want {
			t.Errorf("%s: the environment is %v: %v", name, joined.Document.Environment, err)
		}
	}
}
