package experiment

import (
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestMostInvalid: an experiment ends after 64 Invalid attempts, or twice as many as it has runs, even if maxAttempts allows more.
func TestMostInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		repetitions, attempts int32 // of two variants
		invalid               int
		ends, limited         bool
	}{
		"before the limit of a small one":   {4, 10, 63, false, false},
		"at the limit of a small one":       {4, 10, 64, true, true},
		"all attempts of a smaller one":     {3, 10, 60, true, false},
		"before the limit of a large one":   {50, 10, 199, false, false},
		"at the limit of a large one":       {50, 10, 200, true, true},
		"over the limit, of an old release": {50, 10, 205, true, true},
		"before all attempts by default":    {50, 2, 199, false, false},
		"all attempts by default":           {50, 2, 200, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := testState()
			state.Benchmark.Spec.Repetitions, state.Benchmark.Spec.MaxAttempts = c.repetitions, c.attempts
			state = settle(state)
			for i := range int32(c.invalid) {
				run := makeRun(state, state.Slots[i/c.attempts], 1+i%c.attempts)
				runstest.Record(&run, runstest.InvalidEnding, true)
				state.Runs = append(state.Runs, run)
			}
			want := []string{"CreateRun"}
			if c.ends {
				want = []string{"ReleaseLease", "WriteResults"}
			}
			decision := Plan(state)
			if problem := benchmarkProblem(state, decision); problem != "" {
				t.Error(problem)
			}
			if got := kinds(decision.Actions); !slices.Equal(got, want) || decision.Tally.Over != c.ends {
				t.Errorf("actions %v, over %t, want %v", got, decision.Tally.Over, want)
			}
			_, _, message := incomplete(Evidence{Tally: decision.Tally})
			if c.ends && strings.Contains(message, "given up: all further runs, because ") != c.limited {
				t.Error(message)
			}
		})
	}
}
