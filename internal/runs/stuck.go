package runs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// Resting reports whether nothing of a run can be running on its node any more: the run is settled, or it only exists because of another
// owner's finalizer, or its teardown is stuck without pods and operations.
func Resting(run *v1alpha1.BenchmarkRun) bool {
	switch {
	case !run.DeletionTimestamp.IsZero() && !slices.Contains(run.Finalizers, v1alpha1.FinalizerTeardown):
		return true
	case run.DeletionTimestamp.IsZero() && Settled(run):
		return true
	}
	return Stuck(run)
}

// Stuck reports whether the teardown of a run makes no progress although nothing of it is running.
func Stuck(run *v1alpha1.BenchmarkRun) bool {
	ready := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonTeardownStuck
}

// NotStopped reports whether the teardown of a run makes no progress while something of it may still be running: its node may be lost.
func NotStopped(run *v1alpha1.BenchmarkRun) bool {
	ready := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && (ready.Reason == v1alpha1.ReasonPodsNotStopped || ready.Reason == v1alpha1.ReasonOperationNotStopped)
}

// checkTeardown marks the teardown of a run as stuck if it has taken longer than the admin's limit and no pod or operation of the run is
// running any more. This state is kept: a later deletion does not restart the time limit.
func checkTeardown(state State, decision *Decision) {
	grace := state.Timings.TeardownGrace
	if decision.Settled || grace == 0 {
		return
	}
	began := teardownBegan(state.Run)
	if began.IsZero() { // its end is recorded in this reconciliation
		began = state.Now
	}
	due := began.Add(grace)
	switch late := !state.Now.Before(due); {
	case !late && (state.AtWork() || !Stuck(state.Run)):
		decision.wake(due)
		return
	case state.PodsAtWork > 0: // their node is not free: it may only have lost its connection
		decision.Reason = v1alpha1.ReasonPodsNotStopped
		decision.Message = fmt.Sprintf("pods of the run have not ended (%d): is node %s running? If it will never return, "+
			"delete its Node object", state.PodsAtWork, state.Run.Spec.NodeName)
		return
	case state.AtWork():
		if left := operationLeft(state); left != "" {
			decision.Reason, decision.Message = v1alpha1.ReasonOperationNotStopped, left
		}
		return
	}
	decision.Reason = v1alpha1.ReasonTeardownStuck
	decision.Message = fmt.Sprintf("nothing of the run is running and its node is free, but its disks are not: %s",
		leftWords(state, decision.Message))
}

// operationLeft names a leftover operation of a run, preferably one that has not ended, and says why it still exists. Only the agent of its
// node can remove it.
func operationLeft(state State) string {
	ended := ""
	for i, phase := range state.Phases {
		spec := state.Run.Spec.Phases[i]
		if phase.Operation && phase.Executor.Exists {
			return fmt.Sprintf("the PoolOperation of phase %s has not ended: %s", spec.Name, orNone(phase.Executor.Message))
		}
		for _, companion := range Companions(state.Run, spec) {
			switch operation := phase.Companions[companion]; {
			case operation == nil:
			case HasEnded(operation):
				ended = fmt.Sprintf("PoolOperation %s of phase %s is not removed: %s", operation.Name, spec.Name, operationWords(operation))
			default:
				return fmt.Sprintf("PoolOperation %s of phase %s has not ended: %s", operation.Name, spec.Name, operationWords(operation))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(state.Parameters)) {
		operation := state.Parameters[name]
		if HasEnded(operation) {
			ended = fmt.Sprintf("PoolOperation %s, which has restored module parameter %s, is not removed: %s", operation.Name, name,
				operationWords(operation))
			continue
		}
		return fmt.Sprintf("PoolOperation %s has not restored module parameter %s: %s", operation.Name, name, operationWords(operation))
	}
	return ended
}

// TeardownOverdue reports whether the teardown of a run may be stuck.
func TeardownOverdue(state State) bool {
	began, grace := teardownBegan(state.Run), state.Timings.TeardownGrace
	return grace > 0 && !began.IsZero() && !state.Now.Before(began.Add(grace))
}

// leftWords says which objects block a teardown, and what to do about them.
func leftWords(state State, otherwise string) string {
	jobs, _ := state.work()
	switch claim := naming.ClaimName(state.Run, naming.VolumeData); {
	case jobs > 0:
		return "a Job of the run is not deleted: remove the finalizers that others added to it"
	case state.Pods > 0:
		return fmt.Sprintf("pods with the labels of the run are not deleted (%d): delete them, and remove the finalizers that others added",
			state.Pods)
	case state.Claims.Exists && state.Claims.Deleting:
		return fmt.Sprintf("PersistentVolumeClaim %s is not deleted: delete the pods that use it, finished ones too ('kubectl describe pvc %s' "+
			"lists them), and remove the finalizers that others added to it", claim, claim)
	}
	return otherwise
}

// teardownBegan returns the time at which a run ended or was deleted, whichever was later, or zero if the run is still in progress.
func teardownBegan(run *v1alpha1.BenchmarkRun) (began time.Time) {
	if run.Status.FinishedAt != nil {
		began = run.Status.FinishedAt.Time
	}
	if deleted := run.DeletionTimestamp; deleted != nil && deleted.After(began) {
		began = deleted.Time
	}
	return began
}

// MadeLate reports whether a pod or Job was created too long after the end of a run to belong to it.
func MadeLate(run *v1alpha1.BenchmarkRun, made time.Time) bool {
	began := teardownBegan(run)
	return !began.IsZero() && made.After(began.Add(lateObjects))
}

// lateObjects is how long after the end of a run its Job may have created a pod, allowing for clock differences.
const lateObjects = time.Minute

// AtWork reports whether a pod or an operation of the run may load its node. A Job that is being deleted creates no pods.
func (s State) AtWork() bool {
	for _, phase := range s.Phases {
		job := phase.Executor
		if job.Exists && (phase.Operation || !job.Deleting && !MadeLate(s.Run, job.Created)) || len(phase.Companions) > 0 {
			return true
		}
	}
	return s.PodsAtWork > 0 || len(s.Parameters) > 0
}
