package stats

import (
	"math"
	"testing"
)

func TestSteady(t *testing.T) {
	for name, c := range map[string]struct {
		values         []float64
		reached, known bool
		spread, slope  float64
	}{
		"nothing":                    {nil, false, false, 0, 0},
		"four rounds":                {[]float64{10, 10, 10, 10}, false, false, 0, 0},
		"flat":                       {[]float64{10, 10, 10, 10, 10}, true, true, 0, 0},
		"only the last five count":   {[]float64{99, 1, 10, 10, 10, 10, 10}, true, true, 0, 0},
		"range at its limit":         {[]float64{9, 11, 10, 11, 9}, true, true, 0.2, 0},
		"range beyond":               {[]float64{8.9, 11, 10, 11, 9}, false, true, 2.1 / 9.98, 0.02 * 4 / 9.98},
		"rising by less than a line": {[]float64{9.6, 9.8, 10, 10.2, 10.4}, true, true, 0.08, 0.08},
		"rising by too much":         {[]float64{9.4, 9.7, 10, 10.3, 10.6}, false, true, 0.12, 0.12},
		"falling by too much":        {[]float64{10.6, 10.3, 10, 9.7, 9.4}, false, true, 0.12, 0.12},
		"nothing was done":           {[]float64{0, 0, 0, 0, 0}, false, false, 0, 0},
		"not a number":               {[]float64{1, 1, math.NaN(), 1, 1}, false, false, 0, 0},
		"beyond all numbers":         {[]float64{1, 1, math.Inf(1), 1, 1}, false, false, 0, 0},
	} {
		got := SNIA().Judge(c.values)
		if got.Reached != c.reached || got.Known != c.known || math.Abs(got.Range-c.spread) > 1e-9 || math.Abs(got.Slope-c.slope) > 1e-9 {
			t.Errorf("%s: %+v, %s", name, got, got)
		}
	}
}

// TestWorkedExample computes the best line of known points by hand: y = 2x + 1 with one point moved by 1 each way.
func TestWorkedExample(t *testing.T) {
	if got := slope([]float64{1, 3, 5, 7, 9}); got != 2 {
		t.Errorf("slope %g", got)
	}
	if got := slope([]float64{1, 4, 5, 6, 9}); math.Abs(got-1.8) > 1e-12 { // (-2*-4 -1*-1 +0 +1*1 +2*4)/10 = 1.8
		t.Errorf("slope %g", got)
	}
}

func FuzzSteady(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, 4.0, 5.0)
	f.Add(0.0, math.Inf(1), math.NaN(), -1.0, 1e308)
	f.Fuzz(func(t *testing.T, a, b, c, d, e float64) {
		got := SNIA().Judge([]float64{a, b, c, d, e})
		if got.Reached && (!got.Known || !(got.Range <= 0.2) || !(got.Slope <= 0.1)) {
			t.Errorf("%+v", got)
		}
	})
}
