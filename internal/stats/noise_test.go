package stats

import (
	"math"
	"slices"
	"testing"
)

func TestQuantile(t *testing.T) {
	for name, c := range map[string]struct {
		values      []float64
		share, want float64
	}{
		"Hyndman and Fan's type 7": {[]float64{10, 1, 4, 3}, 0.25, 2.5},
		"least":                    {[]float64{3, 1, 2}, 0, 1},
		"most":                     {[]float64{3, 1, 2}, 1, 3},
		"one":                      {[]float64{3}, 0.95, 3},
		"an even median":           {[]float64{4, 1, 3, 2}, 0.5, 2.5},
		"all equal":                {[]float64{2, 2, 2}, 0.9, 2},
	} {
		if got := quantile(slices.Sorted(slices.Values(c.values)), c.share); !near(got, c.want) {
			t.Errorf("%s: %g", name, got)
		}
	}
}

func TestConsecutiveShifts(t *testing.T) {
	got := must[[]float64](t)(ConsecutiveShifts([]float64{100, 110, 200, 100, 7}))
	if len(got) != 2 || !near(got[0], math.Log(1.1)) || !near(got[1], -math.Ln2) {
		t.Errorf("%v", got)
	}
}

func TestNoiseFloor(t *testing.T) {
	count := func(n int) []float64 { // n, -(n-1), n-2 ...
		shifts := make([]float64, n)
		for i := range shifts {
			shifts[i] = float64(n-i) * float64(1-2*(i%2))
		}
		return shifts
	}
	for name, c := range map[string]struct {
		shifts          []float64
		floor, coverage float64
		known           bool
	}{
		"two: the larger":            {count(2), 2, 2.0 / 3, false},
		"six: the largest":           {count(6), 6, 6.0 / 7, false},
		"18 are one too few":         {count(18), 18, 18.0 / 19, false},
		"19 just do":                 {count(19), 19, 0.95, true},
		"of 38 still the largest":    {count(38), 38, 38.0 / 39, true},
		"of 39 the one below":        {count(39), 38, 0.95, true},
		"of 99 the fifth from above": {count(99), 95, 0.95, true},
		"nothing moves":              {make([]float64, 20), 0, 20.0 / 21, true},
	} {
		got := must[Noise](t)(NoiseFloor(c.shifts))
		if got.Floor != c.floor || !near(got.Coverage, c.coverage) || got.Known != c.known || got.Shifts != len(c.shifts) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestNoiseCovers leaves out each shift once: the share that stays within the floor of the others is Coverage, or more if there are ties.
func TestNoiseCovers(t *testing.T) {
	r := seeded(13)
	for turn := range 300 {
		shifts := sample(r, 3+r.IntN(60), turn%2 == 0)
		var within, coverage float64
		for i, left := range shifts {
			others := append(append([]float64{}, shifts[:i]...), shifts[i+1:]...)
			noise := must[Noise](t)(NoiseFloor(others))
			coverage = noise.Coverage
			if math.Abs(left) <= noise.Floor {
				within += 1 / float64(len(shifts))
			}
		}
		if within < coverage-1e-9 || turn%2 == 1 && !near(within, coverage) {
			t.Fatalf("%d shifts: %g within, not %g", len(shifts), within, coverage)
		}
	}
}
