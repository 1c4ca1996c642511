package report

import (
	"math"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
)

func TestDrift(t *testing.T) {
	experiment := func(runs int, change func(i int) float64) results.Experiment {
		var e results.Experiment
		for i := range runs {
			variant, level := "old", 1e9
			if i%2 == i/2%2 { // ABBA
				variant, level = "new", 2e9
			}
			e.Runs = append(e.Runs, results.RunResult{Variant: variant, Repetition: int32(i/2 + 1), Index: int32(i), Valid: true,
				Phases: []results.RunPhase{{Name: "read", Outcome: results.OutcomeValid, Metrics: map[string]int64{
					"readBytesPerSecond": int64(math.Round(level * change(i))), "writeBytesPerSecond": 1e9, "readBytes": int64(i)}}}})
		}
		return e
	}
	for name, test := range map[string]struct {
		runs   int
		change func(i int) float64
		want   string
	}{
		"2% a run":          {12, func(i int) float64 { return math.Pow(0.98, float64(i)) }, "-19.9% from the first to the last of 12 runs: read.readBytesPerSecond"},
		"none":              {12, func(int) float64 { return 1 }, "+0.0%"},
		"one run that hung": {12, func(i int) float64 { return 1 - 0.9*float64(i/11) }, "+0.0%"},
		"1,000 runs":        {1000, func(i int) float64 { return math.Pow(0.9999, float64(i)) }, "-9.5% from the first to the last of 1000 runs"},
		"too few runs":      {5, func(i int) float64 { return math.Pow(0.98, float64(i)) }, ""},
	} {
		got := driftWords(experiment(test.runs, test.change))
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	sequential := experiment(12, func(i int) float64 { return math.Pow(0.98, float64(i)) })
	for i := range sequential.Runs {
		sequential.Runs[i].Variant = []string{"old", "new"}[i/6] // the same storage, one variant after the other
		sequential.Runs[i].Phases[0].Metrics["readBytesPerSecond"] = int64(1e9 * math.Pow(0.98, float64(i)))
	}
	if got := driftWords(sequential); !strings.HasPrefix(got, "-19.9%") {
		t.Errorf("sequential variants: %q", got)
	}
	if got := driftWords(experiment(12, func(int) float64 { return 0 })); !strings.Contains(got, "writeBytesPerSecond") {
		t.Errorf("values of 0 have no drift, others do: %q", got)
	}
}
