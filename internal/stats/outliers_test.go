package stats

import (
	"fmt"
	"math"
	"testing"
)

func TestOutliers(t *testing.T) {
	few := func(values ...float64) []float64 { return values }
	for name, c := range map[string]struct {
		values []float64
		want   string
	}{
		"none":                  {few(1, 1.01, 0.99, 1, 1.02, 1), "[false false false false false false]"},
		"one hangs":             {few(1, 1.01, 0.99, 1, -1.3, 1), "[false false false false true false]"},
		"one of a noisy sample": {few(1, 1.2, 0.8, 1.1, 0.9, 1.3), "[false false false false false false]"},
		"two levels are none":   {few(1, 2, 1, 1, 2, 2, 2, 1), "[false false false false false false false false]"},
		"rounding is none":      {few(1, 1, 1, 1, 1, 1.001), "[false false false false false false]"},
		"too few":               {few(1, 1, 9), "[false false false]"},
		"nothing":               {nil, "[]"},
		"no number":             {few(1, 1, 1, math.NaN(), 1), "[false false false false false]"},
	} {
		if got := fmt.Sprint(Outliers(c.values)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestOutlyingPairsDoNotDependOnSigns: it does not matter which of the two runs of a pair is which, after any shift is subtracted.
func TestOutlyingPairsDoNotDependOnSigns(t *testing.T) {
	r, marked := seeded(25), 0
	for range 500 {
		before, now, delta := sample(r, 8, false), sample(r, 8, false), r.NormFloat64()
		if r.IntN(2) == 0 {
			now[r.IntN(8)] -= 30
		}
		want := OutlyingPairs(before, now)
		for i := range before {
			if r.IntN(2) == 0 {
				before[i], now[i] = now[i]-delta, before[i]+delta
			}
		}
		if got := OutlyingPairs(before, now); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v, after a swap %v", want, got)
		}
		if fmt.Sprint(want) != fmt.Sprint(make([]bool, 8)) {
			marked++
		}
	}
	if marked < 100 {
		t.Errorf("%d marked: the cases show nothing", marked)
	}
}

// TestOutlyingPairsCountLeast: with 6 to 11 pairs, a pair with a run that hung has the largest rank, and outweighs all others. If it is
// marked as outlying, it has the lowest rank.
func TestOutlyingPairsCountLeast(t *testing.T) {
	for n := 7; n <= 11; n++ {
		shifts, outlying := make([]float64, n), make([]bool, n)
		for i := range shifts {
			shifts[i] = 0.3 + 0.001*float64(i)
		}
		shifts[3], outlying[3] = -2, true
		plain, marked := must[*Ranked](t)(NewPaired(shifts, nil)), must[*Ranked](t)(NewPaired(shifts, outlying))
		if before, after := must[Tails](t)(plain.Test(0.05)), must[Tails](t)(marked.Test(0.05)); before.Greater < 0.02 || !near(after.Greater,
			2/math.Ldexp(1, n)) {
			t.Errorf("%d pairs: p = %g, marked %g", n, before.Greater, after.Greater)
		}
		if shift := marked.Shift(0.02, 0.05); shift.Interval.Low < 0.25 || math.Abs(shift.Estimate-0.3) > 0.02 {
			t.Errorf("%d pairs: %+v", n, shift)
		}
	}
}

// TestRankedIsOneStatistic: whatever the outlying pairs, a delta is rejected on a side exactly if it lies beyond that end of the interval.
func TestRankedIsOneStatistic(t *testing.T) {
	r, beyond := seeded(23), 0
	for turn := range 400 {
		shifts, outlying := sample(r, 5+r.IntN(5), turn%3 == 0), make([]bool, 10)
		for i := range outlying {
			outlying[i] = r.IntN(4) == 0
		}
		ranked := must[*Ranked](t)(NewPaired(shifts, outlying))
		if turn%4 == 3 {
			ranked = must[*Ranked](t)(NewUnpaired(shifts, sample(r, 7, turn%3 == 0)))
		}
		lower, upper := []float64{0.016, 0.02, 0.05}[r.IntN(3)], []float64{0.05, 0.1}[r.IntN(2)]
		interval := ranked.Shift(lower, upper).Interval
		for _, delta := range []float64{r.NormFloat64(), float64(r.IntN(7)-3) / 2, interval.Low, interval.High} {
			if !interval.Known {
				continue
			}
			test := must[Tails](t)(ranked.Test(delta))
			if (test.Greater <= lower) != (delta < interval.Low) || (test.Less <= upper) != (delta > interval.High) {
				t.Fatalf("%v at %g: %+v, %+v", shifts, delta, test, interval)
			}
			if test.Greater <= lower || test.Less <= upper {
				beyond++
			}
		}
	}
	if beyond < 200 {
		t.Errorf("%d beyond: the cases show nothing", beyond)
	}
}

// TestRanksOfOutlyingPairsKeepTheLevel goes through all signs of a sample.
func TestRanksOfOutlyingPairsKeepTheLevel(t *testing.T) {
	r := seeded(24)
	for turn := range 20 {
		sizes, outlying := sample(r, 8, turn%2 == 0), []bool{turn%3 == 0, true, false, turn%5 == 0, false, false, false, false}
		for _, level := range []float64{0.02, 0.05, 0.2} {
			rejected := 0.0
			subsets(len(sizes), -1, func(set uint) {
				shifts := make([]float64, len(sizes))
				for i, size := range sizes {
					shifts[i] = size
					if holds(set, i) {
						shifts[i] = -size
					}
				}
				if must[Tails](t)(must[*Ranked](t)(NewPaired(shifts, outlying)).Test(0)).Greater <= level {
					rejected++
				}
			})
			if rate := rejected / 256; rate > level || turn%2 == 1 && rate < level/2 {
				t.Errorf("level %g: %g rejected of %v", level, rate, sizes)
			}
		}
	}
}
