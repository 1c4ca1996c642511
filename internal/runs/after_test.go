package runs_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestOperateAfter: the operation starts operateAfter after the start of the pod, and the planner wakes up for it.
func TestOperateAfter(t *testing.T) {
	scrub := v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
	counting := runstest.Operation(v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{}}, "", -time.Minute, 0)
	for _, c := range []struct {
		name    string
		after   time.Duration
		beside  *v1alpha1.PoolOperation
		actions []string
		wake    time.Duration
	}{ // the pod has started ten minutes ago
		{"not yet", 12 * time.Minute, nil, nil, 2 * time.Minute},
		{"now", 10 * time.Minute, nil, []string{"StartCompanion 0 operate"}, 50 * time.Minute},
		{"once", 10 * time.Minute, runstest.Operation(scrub, "", -time.Second, 0), nil, 50 * time.Minute},
	} {
		changes := []runChange{func(s *runs.State) {
			s.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}
			s.Run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{}
			s.Run.Spec.Phases[0].Fill = nil
			s.Run.Spec.Phases[0].Measure = &v1alpha1.MeasurePhase{Operate: &scrub, OperateAfter: runstest.Lasting(c.after)}
			s.Phases[0].Companions = map[runs.Companion]*v1alpha1.PoolOperation{runs.Observation: counting}
			if c.beside != nil {
				s.Phases[0].Companions[runs.Beside] = c.beside
			}
		}}
		t.Run(c.name, runCase{changes: changes, actions: c.actions, reason: "PhaseRunning", wake: c.wake}.check)
	}
}

// TestUntilOperationEnds: a pod that measures until its operation ends gets its end time once, and not before the end of the operation is
// known.
func TestUntilOperationEnds(t *testing.T) {
	scrub := v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
	counting := runstest.Operation(v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{}}, "", -time.Minute, 0)
	done := runstest.Operation(scrub, v1alpha1.OutcomeSucceeded, -5*time.Minute, -time.Minute)
	unknown := done.DeepCopy()
	unknown.Status.FinishedAt = nil
	for _, c := range []struct {
		name    string
		until   v1alpha1.MeasureUntil
		beside  *v1alpha1.PoolOperation
		told    bool
		actions []string
	}{
		{"at work", v1alpha1.UntilOperationEnds, runstest.Operation(scrub, "", -time.Second, 0), false, nil},
		{"over", v1alpha1.UntilOperationEnds, done, false, []string{"TellEnd 0"}},
		{"told", v1alpha1.UntilOperationEnds, done, true, nil},
		{"over without a time", v1alpha1.UntilOperationEnds, unknown, false, nil},
		{"for a duration", "", done, false, nil},
	} {
		var seen runs.State
		changes := []runChange{func(s *runs.State) {
			s.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}
			s.Run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{}
			s.Run.Spec.Phases[0].Fill = nil
			s.Run.Spec.Phases[0].Measure = &v1alpha1.MeasurePhase{Operate: &scrub, OperateAfter: runstest.Lasting(2 * time.Minute), Until: c.until,
				AfterOperation: runstest.Lasting(30 * time.Second)}
			s.Phases[0].Companions = map[runs.Companion]*v1alpha1.PoolOperation{runs.Observation: counting, runs.Beside: c.beside}
			s.Phases[0].EndTold = c.told
			seen = *s
		}}
		t.Run(c.name, runCase{changes: changes, actions: c.actions, reason: "PhaseRunning", wake: 50 * time.Minute}.check)
		for _, action := range runs.Plan(seen).Actions {
			if want := done.Status.FinishedAt.Add(31 * time.Second); !action.EndAt.Equal(want) {
				t.Errorf("%s: the workload is to end at %s, want %s", c.name, action.EndAt, want)
			}
		}
	}
}

// TestOperationWithinIsNotRepeated: an operation that was deleted or cancelled is not repeated, because it would fall into the time before
// the second one. The run ends at once, and does not hold its node until the phase deadline.
func TestOperationWithinIsNotRepeated(t *testing.T) {
	scrub := v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
	counting := runstest.Operation(v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{}}, "", -time.Minute, 0)
	deleting := runstest.Operation(scrub, "", -time.Minute, 0)
	deleting.DeletionTimestamp = runstest.Stamp(-time.Second)
	done := runstest.Operation(scrub, v1alpha1.OutcomeSucceeded, -5*time.Minute, -time.Minute)
	doneAndDeleted := done.DeepCopy()
	doneAndDeleted.DeletionTimestamp = runstest.Stamp(-time.Second)
	cancelled := runstest.Operation(scrub, v1alpha1.OutcomeCancelled, -5*time.Minute, -time.Minute)
	cancelled.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonCancelled,
		Message: "by the admin"}}
	for _, c := range []struct {
		name       string
		throughout bool
		beside     *v1alpha1.PoolOperation
		seen, told bool
		says       string
		actions    []string
	}{
		{"not started", false, nil, false, false, "", []string{"StartCompanion 0 operate"}},
		{"gone", false, nil, true, false, "the scrub during the workload was deleted", nil},
		{"gone after its end, to another manager", false, nil, false, true, "was deleted", nil},
		{"deleting", false, deleting, true, false, "is being deleted", nil},
		{"over and deleting", false, doneAndDeleted, true, true, "is being deleted", nil},
		{"cancelled", false, cancelled, true, false, "was cancelled: Cancelled: by the admin", nil},
		{"over", false, done, true, true, "", nil},
		{"cancelled, of one that lasts throughout", true, cancelled, true, false, "", nil},
	} {
		changes := []runChange{func(s *runs.State) {
			s.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}
			s.Run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{}
			s.Run.Spec.Phases[0].Fill = nil
			measure := &v1alpha1.MeasurePhase{Operate: &scrub}
			if !c.throughout {
				measure.OperateAfter, measure.Until = runstest.Lasting(2*time.Minute), v1alpha1.UntilOperationEnds
			}
			s.Run.Spec.Phases[0].Measure = measure
			s.Phases[0].Companions = map[runs.Companion]*v1alpha1.PoolOperation{runs.Observation: counting}
			if c.beside != nil {
				s.Phases[0].Companions[runs.Beside] = c.beside
			}
			s.Phases[0].BesideSeen, s.Phases[0].EndTold = c.seen, c.told
		}}
		expected := runCase{changes: changes, actions: c.actions, reason: "PhaseRunning", wake: 50 * time.Minute}
		if c.says != "" {
			expected = runCase{changes: changes, reason: "PhaseInvalid", ending: "retry", says: c.says}
		}
		t.Run(c.name, expected.check)
	}
}
