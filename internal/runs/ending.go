package runs

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// RecordedEnding is the outcome that an earlier reconciliation has recorded, or nil. The evidence for it (a pod, a log) may be gone by now,
// so the record is authoritative.
func RecordedEnding(run *v1alpha1.BenchmarkRun) *Ending {
	if !meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionComplete) {
		return nil
	}
	valid := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionValid)
	if valid == nil {
		return nil
	}
	return &Ending{Valid: valid.Status == "True", Reason: valid.Reason, Message: valid.Message, Retryable: run.Status.Retryable}
}

// Retains reports whether spec.retain keeps the volumes and pods of a run with this ending.
func Retains(policy v1alpha1.RetainPolicy, ending Ending) bool {
	return policy == v1alpha1.RetainAlways || policy == v1alpha1.RetainOnFailure && !ending.Valid
}

// Settled reports whether a run has ended and needs no further cleanup.
func Settled(run *v1alpha1.BenchmarkRun) bool {
	return RecordedEnding(run) != nil && meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionReady)
}
