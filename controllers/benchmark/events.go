package benchmark

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
)

// announce emits an event for a change written to the status. Event reasons equal condition reasons.
func (r *Reconciler) announce(benchmark *v1alpha1.StorageBenchmark, before, after v1alpha1.StorageBenchmarkStatus) {
	r.announceSkipped(benchmark, before.Schedule, after.Schedule)
	now := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	earlier := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	if now == nil || (earlier != nil && earlier.Reason == now.Reason && before.Verdict == after.Verdict) {
		return
	}
	kind := corev1.EventTypeNormal
	switch {
	case after.Verdict != "" && after.Verdict != v1alpha1.VerdictPassed,
		meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionStalled),
		now.Reason == v1alpha1.ReasonNoNode, now.Reason == v1alpha1.ReasonStorageClassNotFound,
		now.Reason == v1alpha1.ReasonNoDefaultClass, now.Reason == v1alpha1.ReasonActionFailed:
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(benchmark, nil, kind, now.Reason, "Reconcile", "%s", spelling.Shorten(now.Message, 900))
}

// announceSkipped emits an event for a skipped scheduled time.
func (r *Reconciler) announceSkipped(benchmark *v1alpha1.StorageBenchmark, before, after *v1alpha1.ScheduleStatus) {
	if after == nil || after.LastSkippedTime == nil || before != nil && before.LastSkippedTime.Equal(after.LastSkippedTime) {
		return
	}
	r.Recorder.Eventf(benchmark, nil, corev1.EventTypeWarning, v1alpha1.ReasonTimeSkipped, "Reconcile",
		"the time %s of spec.schedule is skipped: the previous experiment is still running; schedule it less often, or make it shorter",
		after.LastSkippedTime.UTC().Format(time.RFC3339))
}
