package run

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// announce emits an event for a change written to the status. Event reasons equal condition reasons.
func (r *Reconciler) announce(run *v1alpha1.BenchmarkRun, before, after v1alpha1.BenchmarkRunStatus) {
	now := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	earlier := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	if now == nil || (earlier != nil && earlier.Reason == now.Reason && before.CurrentPhase == after.CurrentPhase) {
		return
	}
	kind := corev1.EventTypeNormal
	if valid := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionValid); (valid != nil && valid.Status != "True") ||
		troubled(now.Reason) {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(run, nil, kind, now.Reason, "Reconcile", "%s", kstatus.Shorten(now.Message, 900))
}

// troubled reasons need a user's attention although the run continues.
func troubled(reason string) bool {
	switch reason {
	case v1alpha1.ReasonPodUnschedulable, v1alpha1.ReasonPodRejected, v1alpha1.ReasonImagePullFailed,
		v1alpha1.ReasonVolumeNotBound, v1alpha1.ReasonResultUnreadable, v1alpha1.ReasonNameTaken, v1alpha1.ReasonTeardownStuck:
		return true
	}
	return false
}
