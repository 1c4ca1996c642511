package plan

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/gate"
	"github.com/storagebench/storagebench/internal/results"
)

// TestAssembleWithoutRuns: a deadline may stop the only run, and then there is nothing to judge.
func TestAssembleWithoutRuns(t *testing.T) {
	state := testState()
	state.Benchmark.Spec.Deadline, state.Benchmark.Status.StartedAt = lasting(time.Hour), stamp(-time.Hour)
	gates, err := gate.Compile(nil, state.Benchmark.Spec.Phases, VariantNames(state.Slots))
	if err != nil {
		t.Fatal(err)
	}
	decision := Benchmark(state)
	experiment := Assemble(Evidence{Now: noon, Benchmark: state.Benchmark, Experiment: state.Experiment, Gates: gates, Tally: decision.Tally})
	if experiment.State != results.StateIncomplete || experiment.Verdict != string(v1alpha1.VerdictInconclusive) || experiment.Reason != v1alpha1.ReasonDeadlineExceeded {
		t.Errorf("%s %s %s: %s", experiment.State, experiment.Verdict, experiment.Reason, experiment.Message)
	}
	if _, _, err := experiment.Encode(1 << 20); err != nil {
		t.Errorf("it cannot be written: %v", err)
	}
}
