package fio

import (
	"math"
	"testing"
)

// TestObserve keeps the mean exact, and each latency within 1.6%.
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
