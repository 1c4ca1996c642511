package verdict

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// TestGatesSayWhatTheyJudge: readers of the results need not parse the text of a definition.
func TestGatesSayWhatTheyJudge(t *testing.T) {
	const rate = "readBytesPerSecond"
	spec := v1alpha1.StorageBenchmarkSpec{
		Phases: []v1alpha1.Phase{{Name: "fresh"}, {Name: "aged"}},
		Gates: []v1alpha1.Gate{
			{Name: "cel", Expression: "variant('a').phase('aged').readBytesPerSecond > 1.0 && phase('fresh').readBytesPerSecond > 1.0" +
				strings.Repeat(" && phase('fresh').readBytesPerSecond > 2000.0", 5)},
			{Name: "bound", Bound: &v1alpha1.BoundGate{Metric: "aged.readLatencyP99Nanoseconds", Min: "0.5ns", Max: "10ms"}},
			{Name: "ratio", Ratio: &v1alpha1.RatioGate{Of: "aged." + rate, To: "fresh." + rate, Min: "80%"}},
			{Name: "compare", Compare: &v1alpha1.CompareGate{Metric: "aged." + rate, To: "Variant", Variant: "a"}},
			{Name: "preflight", Preflight: &v1alpha1.PreflightGate{}},
		},
	}
	set, err := gate.Compile(spec.Gates, spec.Phases, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	got := Judge(&spec, set, Standards{}, &results.Experiment{}).Gates
	fresh, aged := results.GateMetric{Phase: "fresh", Metric: rate}, results.GateMetric{Phase: "aged", Metric: rate}
	least, most := int64(1), int64(10_000_000)
	for i, want := range []results.GateResult{
		{Metrics: []results.GateMetric{{Variant: "a", Phase: "aged", Metric: rate}, fresh}},
		{Metrics: []results.GateMetric{{Phase: "aged", Metric: "readLatencyP99Nanoseconds"}}, AtLeast: &least, AtMost: &most},
		{Metrics: []results.GateMetric{aged, fresh}},
		{Metrics: []results.GateMetric{aged}},
		{},
	} {
		if diff := cmp.Diff(want, results.GateResult{Metrics: got[i].Metrics, AtLeast: got[i].AtLeast, AtMost: got[i].AtMost}); diff != "" {
			t.Errorf("%s: %s", got[i].Name, diff)
		}
	}
}

// TestIncompleteDecidesNothing: neither the gates of an incomplete experiment decide nor their comparisons, which pictures and the status
// show.
func TestIncompleteDecidesNothing(t *testing.T) {
	evidence := []results.Comparison{{Variant: "new", Verdict: "Passed"}}
	decision := Decision{Verdict: v1alpha1.VerdictPassed, Gates: []results.GateResult{
		{Name: "a", Verdict: "Passed", Message: "so.", Comparisons: evidence}}}
	decision.Incomplete(v1alpha1.VerdictInvalid, "RunsInvalid", "a run was given up")
	got := decision.Gates[0]
	if decision.Verdict != v1alpha1.VerdictInvalid || got.Verdict != "Inconclusive" ||
		got.Message != "would be Passed on the existing runs: so." || got.Comparisons[0].Verdict != "Inconclusive" || evidence[0].Verdict != "Passed" {
		t.Errorf("%+v", decision)
	}
}
