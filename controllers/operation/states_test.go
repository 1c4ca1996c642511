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

// TestAChangeAfterTheEndIsSeen: a later change of the spec has no effect, but its generation is observed, so that no tool waits for it.
func TestAChangeAfterTheEndIsSeen(t *testing.T) {
	w := newWorld(t, wanted("scrub", acts()["scrub"].action))
	ended := w.settle("scrub")
	before := len(w.node.commands)
	ended.Spec.Cancel, ended.Generation = true, ended.Generation+1
	if err := w.client.Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	again := w.settle("scrub")
	if again.Generation != ended.Generation || again.Status.ObservedGeneration != again.Generation || again.Status.Outcome != v1alpha1.OutcomeSucceeded {
		t.Errorf("generation %d: %+v", again.Generation, again.Status)
	}
	for _, condition := range again.Status.Conditions {
		if condition.ObservedGeneration != again.Generation {
			t.Errorf("%+v", condition)
		}
	}
	if len(again.Status.Conditions) < 2 || len(w.node.commands) < 1 || len(w.node.commands) != before {
		t.Errorf("%+v, %q", again.Status.Conditions, w.node.commands[before:])
	}
	version := again.ResourceVersion
	if result, err := w.turn("scrub"); err != nil || result.RequeueAfter != 0 || w.get("scrub").ResourceVersion != version {
		t.Errorf("it is written again: %+v, %v", result, err)
	}
	kept := wanted("scrub", v1alpha1.PoolAction{})
	kept.Status = summarise(operations.State{Operation: kept, Now: time.Unix(1_800_000_000, 0)},
		operations.Decision{Outcome: v1alpha1.OutcomeSucceeded, Reason: v1alpha1.ReasonSucceeded, Message: "done"})
	kept.Generation, kept.Spec.Cancel = kept.Generation+1, true
	kept.Status = seen(kept)
	states.Check(t, "PoolOperation", "succeeded-then-changed", kept)
}
