//go:build linux

package engine

import (
	"fmt"
	"math"
	"testing"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/results"
)

// TestDistributionOfLatencies: latencies with an exponential distribution and a mean of 1 ms have known shares over each bound, even where
// bins are joined.
func TestDistributionOfLatencies(t *testing.T) {
	const count = 100_000
	for name, shortest := range map[string]int{"few bins": 0, "joined bins": 1} {
		var latency fio.Latency
		for i := range count {
			latency.Observe(int64(math.Round(-1e6 * math.Log(1-(float64(i)+0.5)/count))))
		}
		for exponent := range 40 * shortest { // short and very long ones, so that bins are joined
			for step := range 64 {
				latency.Observe(int64(math.Exp2(float64(exponent) + float64(step)/64)))
			}
		}
		s := &session{metrics: map[string]int64{}}
		s.addLatency("write", latency)
		d := s.distributions["writeLatency"]
		joined, longest := float64(d.Count()-count), d.To[len(d.To)-1]
		if d.Unit != results.UnitNanoseconds || d.Count() != latency.Count || longest != latency.Max || len(d.From) > results.MaxBins {
			t.Fatalf("%s: %d operations in %d bins up to %d", name, d.Count(), len(d.From), longest)
		}
		for _, bound := range []int64{100_000, 1e6, 2e6, 5e6, 8e6} {
			want := math.Exp(-float64(bound)/1e6) * 1e6
			if got, known := d.Over(bound); !known || math.Abs(float64(got)-want) > 1e6*joined/count+max(12, 0.003*want) {
				t.Errorf("%s: %d ppm are over %d ns, want %.0f", name, got, bound, want)
			}
		}
		document := results.PhaseDocument{Distributions: s.distributions}
		if got := document.Reduce([]string{"writeLatency.shareOver2ms"}).Metrics; len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestDistributionsFit: a job file with more jobs than there is room for keeps the first ones, and notes which ones it leaves out.
func TestDistributionsFit(t *testing.T) {
	s := &session{metrics: map[string]int64{}}
	var latency fio.Latency
	latency.Observe(5000)
	for job := range results.MaxDistributions + 3 {
		s.addLatency(fmt.Sprintf("job%d.read", job), latency)
	}
	if len(s.distributions) != results.MaxDistributions {
		t.Errorf("%d distributions", len(s.distributions))
	}
	found := 0
	for _, note := range s.notes {
		if note == fmt.Sprintf("the distribution job%d.readLatency is left out", results.MaxDistributions) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("not said, or more than once: %d", found)
	}
	s.dropTotals()
	if len(s.distributions) > 0 {
		t.Error("totals of jobs one after another are kept")
	}
}
