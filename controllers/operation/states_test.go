package operation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/test/states"
)

// TestStates: the conditions of every outcome of an operation. test/gitops says what Flux and Argo CD make of them.
func TestStates(t *testing.T) {
	for name, test := range map[string]struct {
		decision operations.Decision
		ready    metav1.ConditionStatus
		stalled  bool
	}{
		"running":   {operations.Decision{Reason: v1alpha1.ReasonOperationRunning, Message: "40%"}, "False", false},
		"succeeded": {operations.Decision{Outcome: v1alpha1.OutcomeSucceeded, Reason: v1alpha1.ReasonSucceeded, Message: "done"}, "True", false},
		"failed":    {operations.Decision{Outcome: v1alpha1.OutcomeFailed, Reason: v1alpha1.ReasonDatasetNotFound, Message: "no dataset"}, "False", true},
		"cancelled": {operations.Decision{Outcome: v1alpha1.OutcomeCancelled, Reason: v1alpha1.ReasonCancelled, Message: "cancelled"}, "True", false},
	} {
		t.Run(name, func(t *testing.T) {
			operation := wanted("scrub", v1alpha1.PoolAction{})
			state := operations.State{Operation: operation, Now: time.Unix(1_800_000_000, 0)}
			operation.Status = summarise(state, test.decision)
			if !meta.IsStatusConditionPresentAndEqual(operation.Status.Conditions, v1alpha1.ConditionReady, test.ready) ||
				meta.IsStatusConditionTrue(operation.Status.Conditions, v1alpha1.ConditionStalled) != test.stalled {
				t.Errorf("%+v", operation.Status.Conditions)
			}
			states.Check(t, "PoolOperation", name, operation)
		})
	}
}
