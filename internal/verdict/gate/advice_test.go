package gate

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

func TestAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		estimate, low, high float64
		unknown             bool
		noise               float64
		want                int
		says                string
	}{
		"the same":        {estimate: 0, low: -0.05, high: 0.05, want: 16, says: "about 16 repetitions would decide"},
		"the same, noisy": {estimate: 0, low: -0.1, high: 0.1, want: 51, says: "not even 50 repetitions"},
		"much worse":      {estimate: 0.2, low: 0.1, high: 0.3, want: 7, says: "about 7 repetitions"},
		"worse":           {estimate: 0.1, low: 0.02, high: 0.2, want: 30, says: "about 30 repetitions"},
		"beyond noise":    {estimate: 0.2, low: 0.1, high: 0.3, noise: 0.6, want: 24, says: "about 24 repetitions"},
		"at the limit":    {estimate: 0.05, low: -0.1, high: 0.1, want: 51, says: "not even 50 repetitions"},
		"no interval":     {unknown: true, want: 0, says: "add repetitions, or increase the tolerance"},
	} {
		one := &comparison{better: results.Lower, tolerance: 0.05, before: make([]float64, 6), now: make([]float64, 6),
			noise: c.noise, noiseKnown: c.noise > 0,
			worse: stats.Shift{Estimate: c.estimate, Interval: stats.Interval{Known: !c.unknown, Low: c.low, High: c.high}}}
		if got := one.enoughToDecide(); got != c.want || !strings.Contains(one.advice(0.05), c.says) {
			t.Errorf("%s: %d repetitions, want %d: %s", name, got, c.want, one.advice(0.05))
		}
	}
}
