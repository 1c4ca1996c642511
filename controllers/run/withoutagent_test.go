package run

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/runs"
)

// TestRunWithoutAgent: the status of a run on pools says what the run waits for, even while it is being deleted. A settled run stays
// settled.
func TestRunWithoutAgent(t *testing.T) {
	run := &v1alpha1.BenchmarkRun{}
	run.Generation = 3
	stalled := func() *metav1.Condition {
		return meta.FindStatusCondition(runs.SummariseWithoutAgent(run).Conditions, v1alpha1.ConditionStalled)
	}
	if condition := stalled(); condition == nil || condition.Reason != v1alpha1.ReasonAgentNotInstalled ||
		!strings.Contains(condition.Message, "agent.enabled=true") {
		t.Errorf("a run that has begun: %+v", condition)
	}
	kstatus.Set(&run.Status.Conditions, 3, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonMeasured, "done")
	kstatus.Set(&run.Status.Conditions, 3, v1alpha1.ConditionValid, metav1.ConditionTrue, v1alpha1.ReasonMeasured, "done")
	kstatus.SetReady(&run.Status.Conditions, 3, v1alpha1.ReasonMeasured, "done")
	if condition := stalled(); condition != nil {
		t.Errorf("a run that is settled: %+v", condition)
	}
	now := metav1.Now()
	run.DeletionTimestamp = &now
	if stalled() == nil {
		t.Error("a settled run that is deleted may have pools that it keeps")
	}
}
