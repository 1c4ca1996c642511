package benchmark

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/test/states"
)

// TestStates: the conditions of every state of a benchmark. test/gitops says what Flux and Argo CD make of them.
func TestStates(t *testing.T) {
	running := experiment.Decision{Position: experiment.PositionRunning, Reason: v1alpha1.ReasonProgressing, Message: "run 2 of 4: phase read",
		Tally: experiment.Tally{Total: 4, Done: 1}}
	finished := experiment.Decision{Position: experiment.PositionFinished, Reason: v1alpha1.ReasonFinished,
		Message: "the results are in ConfigMap ageing-results-0a1b2c3d", Tally: experiment.Tally{Total: 4, Done: 4}, Fingerprint: "f"}
	of := func(position experiment.Position, reason, message string) experiment.Decision {
		return experiment.Decision{Position: position, Reason: reason, Message: message, Tally: experiment.Tally{Total: 4}}
	}
	const report, enforce = v1alpha1.GatesReport, v1alpha1.GatesEnforce
	for _, test := range []struct {
		name     string
		policy   v1alpha1.GatePolicy
		decision experiment.Decision
		verdict  v1alpha1.Verdict
		ready    bool
		// stalled is the reason of the condition Stalled. Empty if it is not Stalled.
		stalled string
	}{
		{"queued", enforce, of(experiment.PositionQueued, v1alpha1.ReasonQueued, "number 2 in line for node n1"), "", false, ""},
		{"waiting", enforce, of(experiment.PositionWaiting, v1alpha1.ReasonNoNode, "no node is Ready"), "", false, ""},
		{"running", enforce, running, "", false, ""},
		{"suspended", enforce, of(experiment.PositionSuspended, v1alpha1.ReasonSuspended, "suspended after 0 of 4 runs"), "", false, ""},
		{"refused", report, of(experiment.PositionStalled, v1alpha1.ReasonGateInvalid, `gate "fast": there is no metric "x"`), "", false, "GateInvalid"},
		{"deleting", enforce, of(experiment.PositionDeleting, v1alpha1.ReasonCleaningUp, "being deleted"), "", false, ""},
		{"passed-reported", report, finished, v1alpha1.VerdictPassed, true, ""},
		{"failed-reported", report, finished, v1alpha1.VerdictFailed, true, ""},
		{"inconclusive-reported", report, finished, v1alpha1.VerdictInconclusive, true, ""},
		{"invalid-reported", report, finished, v1alpha1.VerdictInvalid, true, ""},
		{"failed-stored-without-a-policy", "", finished, v1alpha1.VerdictFailed, true, ""},
		{"passed-enforced", enforce, finished, v1alpha1.VerdictPassed, true, ""},
		{"failed-enforced", enforce, finished, v1alpha1.VerdictFailed, false, v1alpha1.ReasonNotPassed},
		{"inconclusive-enforced", enforce, finished, v1alpha1.VerdictInconclusive, false, v1alpha1.ReasonNotPassed},
		{"invalid-enforced", enforce, finished, v1alpha1.VerdictInvalid, false, v1alpha1.ReasonNotPassed},
	} {
		t.Run(test.name, func(t *testing.T) {
			observed := testObservation()
			observed.Benchmark.Spec = v1alpha1.StorageBenchmarkSpec{GatePolicy: test.policy, Suspend: test.name == "suspended"}
			if test.name == "deleting" {
				observed.Benchmark.DeletionTimestamp = &metav1.Time{Time: noon.Truncate(time.Second)}
			}
			if test.verdict != "" {
				whole := noon.Truncate(time.Second)
				observed.written = &results.Experiment{Verdict: string(test.verdict), Reason: "GatesDecide", FinishedAt: &whole,
					Message: "the gate fast says so"}
			}
			status := summarise(observed, test.decision)
			if ready := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady); ready != test.ready {
				t.Errorf("Ready is %v", ready)
			}
			reason := ""
			if stalled := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled); stalled != nil {
				reason = stalled.Reason
			}
			if reason != test.stalled {
				t.Errorf("Stalled for %q, want %q", reason, test.stalled)
			}
			if complete := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionComplete); complete != (test.verdict != "") {
				t.Errorf("Complete is %v", complete)
			}
			observed.Benchmark.Status = status
			states.Check(t, "StorageBenchmark", test.name, observed.Benchmark)
			observed.written = nil
			if again := summarise(observed, test.decision); !kstatus.Same(again, status) {
				t.Errorf("it is written for ever: %+v, then %+v", status.Conditions, again.Conditions)
			}
		})
	}
}

// TestPolicyOfAFinishedBenchmark: a changed policy changes the conditions, both ways, and wakes nothing: no run is repeated for it.
func TestPolicyOfAFinishedBenchmark(t *testing.T) {
	observed := testObservation()
	observed.written = &results.Experiment{Verdict: "Failed", Reason: "GatesDecide", FinishedAt: &noon, Message: "slower"}
	finished := experiment.Decision{Position: experiment.PositionFinished, Reason: v1alpha1.ReasonFinished, Message: "over"}
	identity := design.ID(observed.Benchmark)
	for turn, want := range []bool{true, false, true, false} {
		observed.Benchmark.Spec.GatePolicy = []v1alpha1.GatePolicy{v1alpha1.GatesReport, v1alpha1.GatesEnforce}[turn%2]
		observed.Benchmark.Generation++
		status := summarise(observed, finished)
		if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) != want {
			t.Errorf("turn %d: %+v", turn, status.Conditions)
		}
		if meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled) != nil == want {
			t.Errorf("turn %d: %+v", turn, status.Conditions)
		}
		if remembered(status).State != "" {
			t.Error("the planner takes the verdict for a spec that it has refused")
		}
		if design.ID(observed.Benchmark) != identity {
			t.Error("the policy changes what is measured")
		}
		observed.Benchmark.Status, observed.written = status, nil
	}
}
