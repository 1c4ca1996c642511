//go:build linux

package engine

import (
	"fmt"
	"math"
	"strings"
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

// TestVagueLatencies: latencies that fio does not tell apart have neither percentiles nor a distribution, and a note says so.
func TestVagueLatencies(t *testing.T) {
	for stalls, known := range map[int]bool{1: true, 20: false} {
		report, err := fio.Parse(fmt.Appendf(nil, `{"fio version":"fio-3.33","jobs":[{"jobname":"a","read":{"io_bytes":1,"total_ios":%[1]d,"runtime":60000,`+
			`"lat_ns":{"min":1000,"max":60000000000,"mean":1000000.0,"N":%[1]d,"bins":{"1004":10000,"17112760320":%[2]d}}}}]}`, 10_000+stalls, stalls))
		if err != nil {
			t.Fatal(err)
		}
		s := &session{metrics: map[string]int64{}}
		s.addLatency("read", report.Jobs[0].Read.Latency)
		_, p99 := s.metrics["readLatencyP99Nanoseconds"]
		if _, p999 := s.metrics["readLatencyP999Nanoseconds"]; p999 != known || !p99 || s.metrics["readLatencyMaxNanoseconds"] != 60e9 {
			t.Errorf("%d stalls: %v", stalls, s.metrics)
		}
		distribution, there := s.distributions["readLatency"]
		if over, _ := distribution.Over(30e9); there != known || known && over != 100 {
			t.Errorf("%d stalls: %d ppm are over 30 s: %+v", stalls, over, distribution)
		}
		if said := strings.Contains(strings.Join(s.notes, "\n"), "took from 17 s to 1m0s"); said == known || len(s.details.Latencies["read"]) != 2+stalls/20 {
			t.Errorf("%d stalls: notes %q, raw %v", stalls, s.notes, s.details.Latencies)
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
