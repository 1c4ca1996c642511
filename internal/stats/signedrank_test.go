package stats

import (
	"math"
	"testing"
)

func TestSignedRank(t *testing.T) {
	for name, c := range map[string]struct {
		shifts        []float64
		delta         float64
		less, greater float64
	}{
		"Hollander and Wolfe":             {depression, 0, 10.0 / 512, 505.0 / 512}, // T+ = 5: 10 of 512 sums are at most 5, 7 at most 4
		"one pair proves nothing":         {[]float64{3}, 0, 1, 0.5},
		"six of six":                      {[]float64{1, 2, 3, 4, 5, 6}, 0, 1, 1.0 / 64},
		"six of six below":                {[]float64{-1, -2, -3, -4, -5, -6}, 0, 1.0 / 64, 1},
		"nothing changed":                 {[]float64{0, 0, 0, 0}, 0, 1, 1},
		"nothing changed, within delta":   {[]float64{0, 0, 0, 0}, 0.05, 1.0 / 16, 1},
		"exactly delta, but for rounding": {[]float64{0.1 + 0.2, 0.3, 0.1 + 0.2, 0.3}, 0.3, 1, 1},
	} {
		got := must[SignedRankTest](t)(SignedRank(c.shifts, c.delta))
		if !near(got.Less, c.less) || !near(got.Greater, c.greater) || got.Smallest != math.Ldexp(1, -len(c.shifts)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestSignedRankIsBounded: one wild pair of sixteen is as bad as any other of the largest rank, however wild.
func TestSignedRankIsBounded(t *testing.T) {
	shifts := make([]float64, 16)
	for i := range shifts {
		shifts[i] = 0.3 + 0.001*float64(i)
	}
	for _, wild := range []float64{-1, -10, -1e6} {
		shifts[0] = wild
		got := must[SignedRankTest](t)(SignedRank(shifts, 0.05))
		if got.Greater > 0.003 || got.Greater < 0.002 { // 169 of 65536 sums of ranks are at most 16
			t.Errorf("%g: %+v", wild, got)
		}
	}
}

// TestSignedRankAgreesWithTheInterval: the test rejects exactly what lies outside of the interval.
func TestSignedRankAgreesWithTheInterval(t *testing.T) {
	r, inside, outside := seeded(3), 0, 0
	for turn := range 2000 {
		shifts, delta := sample(r, 6+r.IntN(10), turn%2 == 0), float64(r.IntN(9)-4)/4+0.0123
		shift := must[Shift](t)(PairedShift(shifts, 0.9))
		test := must[SignedRankTest](t)(SignedRank(shifts, delta))
		rejected := test.Less <= 0.05 || test.Greater <= 0.05
		beyond := delta > shift.Interval.High || delta < shift.Interval.Low
		if rejected != beyond {
			t.Fatalf("%v against %g: %+v, %s", shifts, delta, test, shift)
		}
		if rejected {
			outside++
		} else {
			inside++
		}
	}
	if inside < 100 || outside < 100 {
		t.Errorf("%d inside, %d outside: the cases show nothing", inside, outside)
	}
}
