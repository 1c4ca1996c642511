package benchmark

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/runs"
)

// updates passes all events except updates without a relevant change.
func updates[T client.Object](relevant func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(change event.UpdateEvent) bool {
		before, ok := change.ObjectOld.(T)
		after, fine := change.ObjectNew.(T)
		return ok && fine && relevant(before, after)
	}}
}

// ownChange passes changes of a benchmark that its next reconcile depends on. Status that is only for people, such as position and
// progress, triggers nothing.
func ownChange() predicate.Predicate {
	return updates(func(before, after *v1alpha1.StorageBenchmark) bool {
		return before.UID != after.UID || before.Generation != after.Generation || !before.DeletionTimestamp.Equal(after.DeletionTimestamp) ||
			!slices.Equal(before.Finalizers, after.Finalizers) || !equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
			!equality.Semantic.DeepEqual(remembered(before.Status), remembered(after.Status))
	})
}

// remembered returns the part of a status that the planner reads, because no other object contains it.
func remembered(status v1alpha1.StorageBenchmarkStatus) v1alpha1.StorageBenchmarkStatus {
	kept := v1alpha1.StorageBenchmarkStatus{Experiment: status.Experiment, NodeName: status.NodeName, NodeNames: status.NodeNames,
		FinishedAt: status.FinishedAt, HoldUntil: status.HoldUntil, Schedule: status.Schedule}
	if queue := status.Queue; queue != nil {
		kept.Queue = &v1alpha1.QueueStatus{Since: queue.Since, Turn: queue.Turn}
	}
	if kstatus.Stuck(status.Conditions) != nil {
		kept.State = v1alpha1.ConditionStalled
	}
	return kept
}

// runChange passes changes of a run that its benchmark depends on or shows: the first status, the phase and problems, but not every step.
// The end of a run outside a group matters only once the run is torn down. Pools take a while to make, so the end of that wait is shown.
func runChange() predicate.Predicate {
	changes := updates(func(before, after *v1alpha1.BenchmarkRun) bool {
		reason, words := readyReason(before)
		now, newWords := readyReason(after)
		return before.UID != after.UID || !before.DeletionTimestamp.Equal(after.DeletionTimestamp) ||
			!slices.Equal(before.Finalizers, after.Finalizers) ||
			reason == "" && now != "" || after.Status.CurrentPhase != "" && before.Status.CurrentPhase != after.Status.CurrentPhase ||
			after.Spec.Target.ZFS != nil && reason != now && now == v1alpha1.ReasonPhaseRunning ||
			runs.Resting(before) != runs.Resting(after) || runs.Settled(before) != runs.Settled(after) ||
			after.Spec.Group != nil && (runs.RecordedEnding(before) == nil) != (runs.RecordedEnding(after) == nil) ||
			(reason != now || words != newWords) && (runs.Troubled(reason) || runs.Troubled(now))
	})
	// A run without a status was just created by the benchmark itself, so its creation is not news.
	begun := predicate.Funcs{CreateFunc: func(created event.CreateEvent) bool {
		run, is := created.Object.(*v1alpha1.BenchmarkRun)
		if !is {
			return false
		}
		reason, _ := readyReason(run)
		return reason != ""
	}}
	return predicate.And(changes, begun)
}

func readyReason(run *v1alpha1.BenchmarkRun) (reason, message string) {
	if ready := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason, ready.Message
	}
	return "", ""
}

// nodeChanged passes events that affect whether a node fits, but not heartbeats.
func nodeChanged() predicate.Predicate {
	return updates(func(before, after *corev1.Node) bool {
		return experiment.Ready(before) != experiment.Ready(after) || before.Spec.Unschedulable != after.Spec.Unschedulable ||
			!equality.Semantic.DeepEqual(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
	})
}

// lessUsable reports whether a node may no longer fit a benchmark that it fitted before.
func lessUsable(before, after *corev1.Node) bool {
	return experiment.Ready(before) && !experiment.Ready(after) || !before.Spec.Unschedulable && after.Spec.Unschedulable ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		slices.ContainsFunc(after.Spec.Taints, func(taint corev1.Taint) bool {
			return !slices.ContainsFunc(before.Spec.Taints, func(old corev1.Taint) bool {
				return taint.MatchTaint(&old) && taint.Value == old.Value
			})
		})
}

// ownerOf returns the benchmark that owns an object.
func ownerOf(object client.Object) []types.NamespacedName {
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "StorageBenchmark" {
		return []types.NamespacedName{{Namespace: object.GetNamespace(), Name: owner.Name}}
	}
	return nil
}
