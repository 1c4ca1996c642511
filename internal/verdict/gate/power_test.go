package gate

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// TestPowersOfTwo: the largest piece of free space may be up to twice as large as its value. No kind of gate decides if that could change
// the verdict.
func TestPowersOfTwo(t *testing.T) {
	const largest, mebibyte = "largestFreeSegmentBytes", 1 << 20
	phases := []v1alpha1.Phase{{Name: "fresh"}, {Name: "aged"}}
	maps := func(fresh, aged int64) []results.RunResult {
		var runs []results.RunResult
		for repetition := range int32(6) {
			of := func(name string, value int64) results.RunPhase {
				return results.RunPhase{Name: name, Outcome: results.OutcomeValid, Metrics: map[string]int64{largest: value}}
			}
			runs = append(runs, results.RunResult{Name: "r", Variant: "default", Repetition: repetition + 1, Valid: true,
				Phases: []results.RunPhase{of("fresh", fresh*mebibyte), of("aged", aged*mebibyte)}})
		}
		return runs
	}
	smaller := expression("phase('aged')." + largest + " < phase('fresh')." + largest)
	halved := expression("phase('aged')." + largest + " * 2.0 <= phase('fresh')." + largest)
	for name, test := range map[string]struct {
		gate    v1alpha1.Gate
		runs    []results.RunResult
		verdict v1alpha1.Verdict
		reason  string
	}{
		"at least, which it is":           {boundGate("aged."+largest, "16Mi", ""), maps(64, 16), passed, ReasonHolds},
		"at most, and it may be more":     {boundGate("aged."+largest, "", "16Mi"), maps(64, 16), inconclusive, ReasonTooCoarse},
		"at most, and twice is less":      {boundGate("aged."+largest, "", "32Mi"), maps(64, 16), passed, ReasonHolds},
		"a smaller power is less":         {smaller, maps(64, 32), passed, ReasonHolds},
		"an equal one may be":             {smaller, maps(64, 64), inconclusive, ReasonTooCoarse},
		"half may be nearly all":          {halved, maps(64, 32), inconclusive, ReasonTooCoarse},
		"a quarter is at most half":       {halved, maps(64, 16), passed, ReasonHolds},
		"a ratio that it may have":        {ratioGate("aged."+largest, "fresh."+largest, "", "", "50%"), maps(64, 32), inconclusive, ReasonTooCoarse},
		"a ratio that it has in any case": {ratioGate("aged."+largest, "fresh."+largest, "", "", "50%"), maps(64, 16), passed, ReasonHolds},
		"a ratio that it cannot have":     {ratioGate("aged."+largest, "fresh."+largest, "", "", "10%"), maps(64, 32), failed, ReasonAboveMaximum},
		"growth that it has in any case":  {ratioGate("aged."+largest, "fresh."+largest, "", "110%", ""), maps(16, 64), passed, ReasonHolds},
		"growth that may be none":         {ratioGate("aged."+largest, "fresh."+largest, "", "110%", ""), maps(16, 32), inconclusive, ReasonTooCoarse},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Compile([]v1alpha1.Gate{test.gate}, phases, []string{"default"})
			if err != nil {
				t.Fatal(err)
			}
			got := set.Judge(Evidence{Summary: results.Summarise(test.runs), Runs: test.runs})[0]
			if got.Verdict != test.verdict || got.Reason != test.reason {
				t.Errorf("%s, %s: %s", got.Verdict, got.Reason, got.Message)
			}
			if doubtful := test.reason == ReasonTooCoarse; doubtful != strings.Contains(got.Message, "power of two") {
				t.Error(got.Message)
			}
		})
	}
}
