package fio

import (
	"math"
	"testing"
)

// TestObserve: the mean is exact, and each latency is within 1.6%.
func TestObserve(t *testing.T) {
	for _, one := range []int64{0, 1, 2, 127, 128, 129, 1000, 999_999, 1 << 40, 1<<62 + 12345} {
		var latency Latency
		for range 3 {
			latency.Observe(one)
		}
		mean, _ := latency.Mean()
		median, known := latency.Percentile(500_000)
		want := float64(max(one, 1))
		if !known || latency.Count != 3 || math.Abs(float64(mean)/want-1) > 1e-9 || math.Abs(float64(median)/want-1) > 0.016 {
			t.Errorf("%d: mean %d, median %d", one, mean, median)
		}
	}
	var both Latency
	both.Observe(1000)
	both.Observe(9000)
	if over, _ := both.ShareOver(5000); over != 500_000 || both.Min != 1000 || both.Max != 9000 {
		t.Errorf("%+v: %d over", both, over)
	}
}

// TestPercentilesLieWithinBins: latencies that are 1% longer have percentiles that are 1% longer. If a percentile were the middle of its
// bin, it would be as long as before, or 1.6% longer.
func TestPercentilesLieWithinBins(t *testing.T) {
	const count = 200_000
	latencies := func(factor float64) Latency { // exponential, 1 ms on average, without chance
		var all Latency
		for i := range count {
			all.Observe(int64(math.Round(factor * -1e6 * math.Log(1-(float64(i)+0.5)/count))))
		}
		return all
	}
	for step := range 20 {
		factor := 1 + float64(step)/400
		all := latencies(factor)
		for _, share := range []int64{100_000, 500_000, 950_000, 990_000, 999_000} {
			got, known := all.Percentile(share)
			if want := factor * -1e6 * math.Log(1-float64(share)/1e6); !known || math.Abs(float64(got)/want-1) > 0.002 {
				t.Errorf("x%.4f: P%d is %d, want %.0f (%+.2f%%)", factor, share/1000, got, want, 100*(float64(got)/want-1))
			}
		}
	}
}

// TestBinsOfFIO: where the bins of fio begin and end, from its source: 64 of them between two powers of two, above 128 ns.
func TestBinsOfFIO(t *testing.T) {
	for middle, want := range map[int64][2]int64{1: {1, 0}, 127: {127, 0}, 129: {128, 2}, 255: {254, 2}, 258: {256, 4}, 1004: {1000, 8},
		1_003_520: {999_424, 8192}} {
		if low, width := binOf(middle); low != want[0] || width != want[1] {
			t.Errorf("%d: from %d, %d wide, want %v", middle, low, width, want)
		}
	}
	compared := 0
	for _, name := range []string{"full-3.33.json", "full-3.42.json"} { // fio names a bin by its middle
		report, err := Parse(golden(t, name))
		if err != nil {
			t.Fatal(err)
		}
		sum := report.Sum(nil)
		all := Latency{}
		for _, one := range []Latency{sum.Read.Latency, sum.Write.Latency, sum.Sync} {
			all.Add(one)
		}
		for middle := range all.bins {
			if low, width := binOf(middle); width > 0 && middle != low+width/2 {
				t.Errorf("%s: %d is not the middle of a bin from %d, %d wide", name, middle, low, width)
			} else if width > 0 {
				compared++
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d bins were compared", compared)
	}
	one := Latency{Count: 1000, Min: 1000, Max: 1001, totals: 1e6, bins: map[int64]int64{1004: 1000}}
	for share, want := range map[int64]int64{1: 1000, 500_000: 1001, 999_000: 1001} { // no percentile is outside of all latencies
		if got, _ := one.Percentile(share); got != want {
			t.Errorf("P%d is %d, want %d", share, got, want)
		}
	}
}
