package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// darwin are the differences in height, in eighths of an inch, of 15 pairs of cross- and self-fertilised plants of Zea mays. Fisher
// (The Design of Experiments, 1935, section 21) counted the sign patterns: 863 of 32768 have a sum of 314 or more.
var darwin = []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}

func TestSignFlip(t *testing.T) {
	for name, c := range map[string]struct {
		shifts        []float64
		delta         float64
		less, greater float64
	}{
		"Fisher on Darwin's maize":        {darwin, 0, 1 - 835.0/32768, 863.0 / 32768}, // 28 sums are 314 exactly
		"one pair proves nothing":         {[]float64{3}, 0, 1, 0.5},
		"six of six":                      {[]float64{1, 2, 3, 4, 5, 6}, 0, 1, 1.0 / 64},
		"six of six below":                {[]float64{-1, -2, -3, -4, -5, -6}, 0, 1.0 / 64, 1},
		"nothing changed":                 {[]float64{0, 0, 0, 0}, 0, 1, 1},
		"nothing changed, within delta":   {[]float64{0, 0, 0, 0}, 0.05, 1.0 / 16, 1},
		"exactly delta, but for rounding": {[]float64{0.1 + 0.2, 0.3, 0.1 + 0.2, 0.3}, 0.3, 1, 1},
		"opposites":                       {[]float64{-1, 1}, 0, 0.75, 0.75},
	} {
		got := must[SignFlipTest](t)(SignFlip(c.shifts, c.delta))
		if !near(got.Less, c.less) || !near(got.Greater, c.greater) || got.Smallest != math.Ldexp(1, -len(c.shifts)) {
			t.Errorf("%s: %+v, %s", name, got, got)
		}
	}
}

// TestSignFlipRounding has pairs that are 5% apart to the last digit: rounding alone must not look like a shift beyond 5%.
func TestSignFlipRounding(t *testing.T) {
	before := []float64{123456789, 98765432.1, 1.1e9, 7, 0.3, 5e8}
	after := make([]float64, len(before))
	for i := range before {
		after[i] = before[i] * 1.05
	}
	got := must[SignFlipTest](t)(SignFlip(must[[]float64](t)(LogRatios(before, after)), math.Log(1.05)))
	if got.Less != 1 || got.Greater != 1 {
		t.Errorf("%s", got)
	}
}

// TestSignFlipCounts compares with a plain count of all 2^n sums.
func TestSignFlipCounts(t *testing.T) {
	r := seeded(1)
	for turn := range 1500 {
		shifts, delta := sample(r, 1+r.IntN(10), turn%2 == 0), float64(r.IntN(3)-1)/2
		got := must[SignFlipTest](t)(SignFlip(shifts, delta))
		if want := countSigns(shifts, delta); !sameTails(got.Tails, want) {
			t.Fatalf("%v against %g: %+v, counted %+v", shifts, delta, got.Tails, want)
		}
	}
}

func countSigns(shifts []float64, delta float64) Tails {
	var seen, less, greater, far, all float64
	for _, shift := range shifts {
		seen += shift - delta
	}
	subsets(len(shifts), -1, func(set uint) {
		var sum float64
		for i, shift := range shifts {
			if holds(set, i) {
				sum += shift - delta
			} else {
				sum -= shift - delta
			}
		}
		all++
		if sum <= seen+1e-10 {
			less++
		}
		if sum >= seen-1e-10 {
			greater++
		}
		if math.Abs(sum) >= math.Abs(seen)-1e-10 {
			far++
		}
	})
	return Tails{Less: less / all, Greater: greater / all, TwoSided: far / all}
}

func TestSignFlipProperties(t *testing.T) {
	r := seeded(2)
	for turn := range 500 {
		shifts := sample(r, 1+r.IntN(10), turn%2 == 0)
		got := must[SignFlipTest](t)(SignFlip(shifts, 0))
		if mirror := must[SignFlipTest](t)(SignFlip(mirrored(shifts), 0)); mirror.Less != got.Greater || mirror.TwoSided != got.TwoSided {
			t.Fatalf("%v: %s, mirrored %s", shifts, got, mirror)
		}
		scaled := make([]float64, len(shifts))
		for i := range shifts {
			scaled[i] = 1024 * shifts[i]
		}
		if other := must[SignFlipTest](t)(SignFlip(scaled, 0)); other.Tails != got.Tails {
			t.Fatalf("%v: %s, scaled %s", shifts, got, other)
		}
		before := 0.0
		for delta := -4.0; delta <= 4; delta += 0.25 { // being above a higher limit is harder to show
			p := must[SignFlipTest](t)(SignFlip(shifts, delta)).Greater
			if p < before || p < got.Smallest {
				t.Fatalf("%v: p = %g above %g, less than before", shifts, p, delta)
			}
			before = p
		}
	}
}

// TestSignFlipKeepsItsLevel goes through all signs of some sizes: where nothing differs, p <= level happens as often as the level at most.
func TestSignFlipKeepsItsLevel(t *testing.T) {
	r := seeded(3)
	for turn := range 30 {
		sizes := sample(r, 8, turn%2 == 0)
		seen := map[float64]float64{}
		subsets(len(sizes), -1, func(set uint) {
			shifts := make([]float64, len(sizes))
			for i, size := range sizes {
				shifts[i] = size
				if holds(set, i) {
					shifts[i] = -size
				}
			}
			seen[must[SignFlipTest](t)(SignFlip(shifts, 0)).Greater] += 1.0 / 256
		})
		for level := range seen {
			var alarms float64
			for p, share := range seen {
				if p <= level {
					alarms += share
				}
			}
			if alarms > level+1e-9 {
				t.Fatalf("%v: at a level of %g there are %g false alarms", sizes, level, alarms)
			}
		}
	}
}

func TestSignFlipOfMany(t *testing.T) {
	shifts := make([]float64, MaxFlips)
	for i := range shifts {
		shifts[i] = float64(1 + i%7)
	}
	if got := must[SignFlipTest](t)(SignFlip(shifts, 0)); got.Greater != math.Ldexp(1, -MaxFlips) || got.Less != 1 {
		t.Errorf("%s", got)
	}
	if got := must[SignFlipTest](t)(SignFlip(append(shifts, 1), 0)); got.Exact || got.Greater > 1e-6 || got.Less < 0.999 {
		t.Errorf("%s", got)
	}
	if got := must[SignFlipTest](t)(SignFlip(make([]float64, MaxFlips+1), 0)); got.Greater != 1 || got.Less != 1 {
		t.Errorf("of nothing but zeros: %s", got)
	}
}

// TestSignFlipApproximation: where it is still counted, the approximation that is used beyond agrees.
func TestSignFlipApproximation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		shifts := make([]float64, MaxFlips)
		for i := range shifts {
			shifts[i] = random.NormFloat64() + random.Float64()/2
		}
		exact := must[SignFlipTest](t)(SignFlip(shifts, 0))
		approximate := must[SignFlipTest](t)(SignFlip(append(shifts, 1e-9), 0))
		if !exact.Exact || approximate.Exact || math.Abs(exact.Greater-approximate.Greater) > 0.01 ||
			math.Abs(exact.Less-approximate.Less) > 0.01 {
			t.Errorf("exact %s, approximate %s", exact, approximate)
		}
	}
}
