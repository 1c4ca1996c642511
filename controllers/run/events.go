package run

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/spelling"
)

// announce emits an event for trouble, and for the end of a run that is not valid. All other steps are visible in the status of the run.
// Event reasons equal condition reasons.
func (r *Reconciler) announce(run *v1alpha1.BenchmarkRun, before, after v1alpha1.BenchmarkRunStatus) {
	now := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	earlier := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	if now == nil {
		return
	}
	reason, message := now.Reason, now.Message
	valid := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionValid)
	switch {
	case before.FinishedAt == nil && after.FinishedAt != nil && valid != nil && valid.Status != metav1.ConditionTrue:
		reason, message = valid.Reason, valid.Message
	case !runs.Troubled(reason) || earlier != nil && earlier.Reason == reason:
		return
	}
	r.Recorder.Eventf(run, nil, corev1.EventTypeWarning, reason, "Reconcile", "%s", spelling.Shorten(message, 900))
}
