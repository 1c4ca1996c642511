package stats

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}, {[]float64{7}, 7}} {
		if got := Median(test.values); got != test.want {
			t.Errorf("%v: %g, want %g", test.values, got, test.want)
		}
	}
	for name, values := range map[string][]float64{"nothing": nil, "infinite": {1, math.Inf(-1)}, "no number": {math.NaN(), 1, 2}} {
		if got := Median(values); !math.IsNaN(got) {
			t.Errorf("%s: %g", name, got)
		}
	}
}
