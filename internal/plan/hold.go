package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// How a benchmark is kept from holding a node for ever, whatever its namespace does to the objects in it:
//   - Every wait of a run that has the node has a deadline, which the admin bounds.
//   - The experiment is over at holdUntil: the run at work is deleted, and its pods with it.
//   - A teardown that does not get on, because somebody uses or keeps what is to be deleted, holds the node for TeardownGrace. Then no pod
//     and no operation of the run is at work, only its disks are still in use, and BenchmarkPools see to it that nobody else gets those.
//   - What the namespace starts itself on the node, it can start without storagebench too: others measure beside it, and find it.

// holdUntil is when the experiment ends at the latest; zero if there is no such limit or the nodes are not held yet. Once the nodes are
// given back the status remembers it: else an experiment that has had its time would begin again.
func holdUntil(state BenchmarkState) time.Time {
	if nodes := ChosenNodes(state); len(nodes) > 0 && slices.Equal(held(state), nodes) && state.Limits.MaxHold > 0 {
		var taken time.Time
		for _, lease := range state.Leases {
			if lease.Holder == string(state.Benchmark.UID) && lease.Since.After(taken) {
				taken = lease.Since
			}
		}
		if !taken.IsZero() {
			return taken.Add(state.Limits.MaxHold).Truncate(time.Second)
		}
	}
	if status := state.Benchmark.Status; status.Experiment == state.Experiment && status.HoldUntil != nil {
		return status.HoldUntil.UTC()
	}
	return time.Time{}
}

// holdToReport is what the status says of it: until the end, or after it if that was the reason. Who waits in line or is suspended has no
// node, and gets its time anew with the next one.
func holdToReport(state BenchmarkState, decision BenchmarkDecision) *metav1.Time {
	without := decision.InLine || decision.Position == PositionSuspended || decision.Reason == v1alpha1.ReasonNamespaceLimit
	if !holds(state) && without || decision.Position == PositionFinished && !decision.Tally.Expired {
		return nil
	}
	return stampAt(holdUntil(state))
}

// Resting says that nothing of a run can be at work on its node any more. A run that somebody else's finalizer keeps is nothing but an
// object, and one whose teardown is stuck has no pod and no operation any more.
func Resting(run *v1alpha1.BenchmarkRun) bool {
	switch {
	case !run.DeletionTimestamp.IsZero() && !slices.Contains(run.Finalizers, v1alpha1.FinalizerTeardown):
		return true
	case run.DeletionTimestamp.IsZero() && Settled(run):
		return true
	}
	return stuck(run)
}

// stuck says that the teardown of a run does not get on, and that nothing of it is at work.
func stuck(run *v1alpha1.BenchmarkRun) bool {
	ready := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonTeardownStuck
}

// busy says whether a run may be at work on a node of the benchmark.
func busy(state BenchmarkState) bool {
	return slices.ContainsFunc(state.Runs, func(run v1alpha1.BenchmarkRun) bool { return !Resting(&run) })
}

// stepStuck gives the nodes back while nothing but a stuck teardown is in the way of the next run. Joining the line again comes after it.
func stepStuck(state BenchmarkState, decision *BenchmarkDecision) bool {
	current := unsettled(state)
	if current == nil || busy(state) {
		return false
	}
	decision.Current = current
	decision.say(PositionWaiting, v1alpha1.ReasonTeardownStuck, "the nodes are given back until run %s is torn down: %s", current.Name, runMessage(current))
	releaseIfIdle(state, decision)
	return true
}

// checkTeardown says that the teardown of a run is stuck: it has taken longer than the admin gives it, and no pod and no operation of the run
// is at work any more. Once said that stays: a deletion that follows begins no new time.
func checkTeardown(state RunState, decision *RunDecision) {
	grace := state.Timings.TeardownGrace
	if decision.Settled || grace == 0 || state.atWork() {
		return
	}
	began := teardownBegan(state.Run)
	if began.IsZero() { // its end is recorded in this turn
		began = state.Now
	}
	if due := began.Add(grace); state.Now.Before(due) && !stuck(state.Run) {
		decision.wake(due)
		return
	}
	decision.Reason = v1alpha1.ReasonTeardownStuck
	decision.Message = fmt.Sprintf("nothing of the run is at work and its node is free, but its disks are not: %s", leftWords(state, decision.Message))
}

// leftWords says what is in the way of a teardown, and what to do about it.
func leftWords(state RunState, otherwise string) string {
	jobs, _ := state.jobs()
	switch claim := VolumeName(state.Run.Name); {
	case jobs > 0:
		return "a Job of the run does not go: remove the finalizers that somebody has given it"
	case state.Pods > 0:
		return fmt.Sprintf("%d pods with the labels of the run do not go: delete them, and remove the finalizers that somebody has given them", state.Pods)
	case state.Volume.Exists && state.Volume.Deleting:
		return fmt.Sprintf("PersistentVolumeClaim %s does not go: delete the pods that name it, finished ones too ('kubectl describe pvc %s' lists them), and remove finalizers that somebody has given it", claim, claim)
	}
	return otherwise
}

// teardownBegan is when a run ended or was deleted, whichever was later; zero if it goes on.
func teardownBegan(run *v1alpha1.BenchmarkRun) (began time.Time) {
	if run.Status.FinishedAt != nil {
		began = run.Status.FinishedAt.Time
	}
	if deleted := run.DeletionTimestamp; deleted != nil && deleted.After(began) {
		began = deleted.Time
	}
	return began
}

// MadeLate says that a pod or Job was made so long after the end of a run that the run has not made it.
func MadeLate(run *v1alpha1.BenchmarkRun, made time.Time) bool {
	began := teardownBegan(run)
	return !began.IsZero() && made.After(began.Add(lateObjects))
}

// lateObjects is how long after the end of a run its Job may have made a pod, with clocks that differ a little.
const lateObjects = time.Minute

// atWork says whether a pod or an operation of the run may load its node. A Job that is being deleted makes no pods.
func (s RunState) atWork() bool {
	for _, phase := range s.Phases {
		job := phase.Job
		if job.Exists && (phase.Operation || !job.Deleting && !MadeLate(s.Run, job.Created)) || len(phase.Companions) > 0 {
			return true
		}
	}
	return s.PodsAtWork > 0 || len(s.Parameters) > 0
}

func (d *RunDecision) wake(at time.Time) {
	if d.WakeAt.IsZero() || at.Before(d.WakeAt) {
		d.WakeAt = at
	}
}
