package fio

import (
	"math"
	"testing"

	"github.com/storagebench/storagebench/internal/stats"
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

// TestLongestLatencies: fio counts all latencies of 17 s and more in its last bin. Of those, only the longest is known.
func TestLongestLatencies(t *testing.T) {
	read := func(longest, stalls int64) Latency {
		latency, err := wireLatency{Min: 1000, Max: longest, Mean: 1e6, N: 1000 + stalls,
			Bins: map[string]int64{"1004": 1000, "17112760320": stalls}}.latency()
		if err != nil {
			t.Fatal(err)
		}
		return latency
	}
	sum := func(all ...Latency) (total Latency) {
		for _, one := range all {
			total.Add(one)
		}
		return total
	}
	var observed Latency
	for range 1000 {
		observed.Observe(1000)
	}
	for range 3 {
		observed.Observe(60e9)
	}
	for name, c := range map[string]struct {
		latency                      Latency
		vague, p9999, over10, over30 int64 // -1 if unknown
	}{
		"in the bin":          {read(17_100_000_000, 3), 0, 17_100_000_000, 2991, 0},
		"one beyond":          {read(60e9, 1), 0, 60e9, 999, 999},
		"some beyond":         {read(60e9, 3), 2, -1, 2991, -1},
		"one of many rounds":  {sum(read(17_100_000_000, 3), read(60e9, 1)), 0, 60e9, 1996, 499},
		"some of many rounds": {sum(read(17_100_000_000, 3), read(60e9, 3)), 2, -1, 2991, -1},
		"not from fio":        {observed, 0, 60e9, 2991, 2991},
	} {
		known := func(value int64, is bool) int64 {
			if !is {
				return -1
			}
			return value
		}
		p9999, over10, over30 := known(c.latency.Percentile(999_900)), known(c.latency.ShareOver(10e9)), known(c.latency.ShareOver(30e9))
		if c.latency.Vague() != c.vague || math.Abs(float64(p9999)/float64(c.p9999)-1) > 0.016 || over10 != c.over10 || over30 != c.over30 {
			t.Errorf("%s: %d vague, P99.99 %d, %d ppm over 10 s and %d over 30 s: want %+v", name, c.latency.Vague(), p9999, over10, over30, c)
		}
		if over60, is := c.latency.ShareOver(60e9); over60 != 0 || !is {
			t.Errorf("%s: %d ppm are over 60 s, known: %v", name, over60, is)
		}
		if median, is := c.latency.Percentile(500_000); median < 1000 || median > 1008 || !is {
			t.Errorf("%s: the median is %d, known: %v", name, median, is)
		}
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
		if low, width := stats.Bin(middle); low != want[0] || width != want[1] {
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
			if low, width := stats.Bin(middle); width > 0 && middle != low+width/2 {
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
