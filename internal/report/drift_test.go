package report

import (
	"math"
	"math/rand/v2"
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
		"2% a run": {12, func(i int) float64 { return math.Pow(0.98, float64(i)) },
			"-19.9% from the first to the last of 12 runs: read.readBytesPerSecond"},
		"none":              {12, func(int) float64 { return 1 }, ""},
		"one run that hung": {12, func(i int) float64 { return 1 - 0.9*float64(i/11) }, ""},
		"1,000 runs":        {1000, func(i int) float64 { return math.Pow(0.9999, float64(i)) }, "-9.5% from the first to the last of 1000 runs"},
		"too few runs":      {5, func(i int) float64 { return math.Pow(0.98, float64(i)) }, ""},
		"values of 0":       {12, func(int) float64 { return 0 }, ""},
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
}

// TestDriftIsNoChance: noise of many metrics seldom gives a drift, and a noisy metric does not hide the small steady decline of another.
func TestDriftIsNoChance(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	const trials = 400
	experiment := func(decline float64) (e results.Experiment) {
		for i := range 9 {
			metrics := map[string]int64{"writeBytesPerSecond": int64(1e9 * math.Exp(-decline*float64(i)+0.01*random.NormFloat64()))}
			for _, name := range []string{"readLatencyP99Nanoseconds", "writeLatencyP99Nanoseconds", "readBytesPerSecond"} {
				metrics[name] = int64(1e9 * math.Exp(0.3*random.NormFloat64()))
			}
			e.Runs = append(e.Runs, results.RunResult{Variant: []string{"a", "b", "c"}[i%3], Index: int32(i), Valid: true,
				Phases: []results.RunPhase{{Name: "mixed", Outcome: results.OutcomeValid, Metrics: metrics}}})
		}
		return e
	}
	wrong, found := 0, 0
	for range trials {
		if driftWords(experiment(0)) != "" {
			wrong++
		}
		if strings.Contains(driftWords(experiment(0.02)), "mixed.writeBytesPerSecond") {
			found++
		}
	}
	t.Logf("of %d: %d drifts by chance, %d declines found", trials, wrong, found)
	if wrong > trials*8/100 || found < trials*90/100 {
		t.Errorf("%d drifts by chance, %d declines found", wrong, found)
	}
}
