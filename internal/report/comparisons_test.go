package report

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
)

func TestComparisonsSection(t *testing.T) {
	low, high, noise := int64(-110_000), int64(-98_000), int64(12_345)
	e := results.Experiment{Gates: []results.GateResult{{Name: "plain"}, {Name: "no-worse", Comparisons: []results.Comparison{
		{Variant: "new", Verdict: "Failed", ChangePartsPerMillion: -104_000, LowPartsPerMillion: &low, HighPartsPerMillion: &high,
			ConfidencePartsPerMillion:       968_750,
			WorseProbabilityPartsPerMillion: 15_625, WithinProbabilityPartsPerMillion: 1_000_000, Runs: 6, BaselineRuns: 6,
			TolerancePartsPerMillion: 50_000, NoisePartsPerMillion: &noise},
		{Variant: "other", Verdict: "Inconclusive", Runs: 1, BaselineRuns: 1},
	}}}}
	text := sectionOf(e, "Comparisons")
	for _, want := range []string{
		"| no-worse | new | **Failed** | -10.4% | -11.0% to -9.8% | 96.88% | 0.016 | 1 | 6 and 6 | 5% | 1.234% |",
		"| no-worse | other | **Inconclusive** | +0.0% | too few runs |  | 0 | 0 | 1 and 1 | 0% | not measured |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if text := sectionOf(results.Experiment{Gates: e.Gates[:1]}, "Comparisons"); text != "" {
		t.Errorf("without comparisons: %q", text)
	}
}
