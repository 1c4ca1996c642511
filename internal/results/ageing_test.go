package results

import (
	"testing"
	"time"
)

// TestAgeOf: the age of the newest pool counts, as it was at the end of the experiment.
func TestAgeOf(t *testing.T) {
	first := time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)
	on := func(since time.Time, experiments, runs int32) RunResult {
		return RunResult{PoolAge: &PoolAge{Since: since, Experiments: experiments, Runs: runs}}
	}
	for name, test := range map[string]struct {
		runs  []RunResult
		words string
	}{
		"none":         {nil, ""},
		"others":       {[]RunResult{{}, {KeptFrom: "x"}}, ""},
		"the first":    {[]RunResult{on(first, 1, 1), on(first, 1, 2)}, "the age of the pool begins with this experiment, at 2026-11-01T02:00:00Z"},
		"three nights": {[]RunResult{on(first, 3, 6), on(first, 3, 5)}, "the pool was aged over 3 experiments (6 runs) since 2026-11-01T02:00:00Z"},
		"recreated on the way": {[]RunResult{on(first, 3, 5), on(first.Add(time.Hour), 1, 1)},
			"the age of the pool begins with this experiment, at 2026-11-01T03:00:00Z"},
	} {
		if got := AgeOf(test.runs).Words(); got != test.words {
			t.Errorf("%s: %q, want %q", name, got, test.words)
		}
	}
}
