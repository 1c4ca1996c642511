package stats

import (
	"math"
	"slices"
	"testing"

	moremath "github.com/aclements/go-moremath/stats"
)

// Hollander and Wolfe (Nonparametric Statistical Methods, table 4.1): the permeability of placental membranes to water.
var (
	atTerm = []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early  = []float64{1.15, 0.88, 0.90, 0.74, 1.21}
)

func TestPaired(t *testing.T) {
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
		"exactly delta, but for rounding": {[]float64{math.Nextafter(0.3, 1), 0.3, math.Nextafter(0.3, 0)}, 0.3, 1, 1},
		"opposites":                       {[]float64{-1, 1}, 0, 0.75, 0.75},
	} {
		got := paired(t, c.shifts, c.delta)
		if !near(got.Less, c.less) || !near(got.Greater, c.greater) || got.Smallest != math.Ldexp(1, -len(c.shifts)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestUnpaired(t *testing.T) {
	for name, c := range map[string]struct {
		before, after           []float64
		delta                   float64
		less, greater, smallest float64
	}{
		"Hollander and Wolfe":     {early, atTerm, 0, 2693.0 / 3003, 382.0 / 3003, 1.0 / 3003}, // the book has 0.1272
		"one against one":         {[]float64{1}, []float64{2}, 0, 1, 0.5, 0.5},
		"three above three":       {[]float64{1, 2, 3}, []float64{4, 5, 6}, 0, 1, 0.05, 0.05},
		"three below three":       {[]float64{4, 5, 6}, []float64{1, 2, 3}, 0, 0.05, 1, 0.05},
		"all equal":               {[]float64{7, 7, 7}, []float64{7, 7}, 0, 1, 1, 0.1},
		"all equal, within delta": {[]float64{7, 7, 7}, []float64{7, 7}, 1, 0.1, 1, 0.1},
		"exactly delta apart":     {[]float64{7, 7, 7}, []float64{8, 8}, 1, 1, 1, 0.1},
		"but for rounding":        {[]float64{0.2, 0.2, 0.2}, []float64{0.3, 0.3, 0.3}, 0.1, 1, 1, 0.05}, // 0.3-0.1 < 0.2
		"a tie is on both sides":  {[]float64{1, 2}, []float64{2, 3}, 0, 1, 2.0 / 6, 1.0 / 6},
	} {
		got := unpaired(t, c.before, c.after, c.delta)
		if !near(got.Less, c.less) || !near(got.Greater, c.greater) || !near(got.Smallest, c.smallest) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestPairedIsBounded: one wild pair of sixteen counts no more than any pair with the largest rank, however wild it is.
func TestPairedIsBounded(t *testing.T) {
	shifts := make([]float64, 16)
	for i := range shifts {
		shifts[i] = 0.3 + 0.001*float64(i)
	}
	for _, wild := range []float64{-1, -10, -1e6} {
		shifts[0] = wild
		if got := paired(t, shifts, 0.05); got.Greater > 0.003 || got.Greater < 0.002 { // 169 of 65536 sums of ranks are at most 16
			t.Errorf("%g: %+v", wild, got)
		}
	}
}

// TestRankedRounding has values that are 10% apart but for the last digit: rounding alone must not look like a shift beyond 10%.
func TestRankedRounding(t *testing.T) {
	before := []float64{60.1, 117.7, 120.2, 1.9, 3.8, 7.6}
	after := make([]float64, len(before))
	for i := range before {
		after[i] = before[i] * 1.1
	}
	ratios, zeros, delta := must[[]float64](t)(LogRatios(before, after)), make([]float64, len(before)), math.Log(1.1)
	if !(slices.Min(ratios) < delta && delta < slices.Max(ratios)) {
		t.Fatalf("%v: nothing is rounded", ratios)
	}
	for name, got := range map[string]Tails{"paired": paired(t, ratios, delta), "unpaired": unpaired(t, zeros, ratios, delta)} {
		if got.Less != 1 || got.Greater != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestRankedCounts compares with a plain count of all signs, and of all ways to split the values. Ties count against both sides.
func TestRankedCounts(t *testing.T) {
	r := seeded(1)
	for turn := range 1500 {
		a, b, delta := sample(r, 1+r.IntN(6), turn%4 != 0), sample(r, 1+r.IntN(5), turn%4 != 0), float64(r.IntN(3)-1)/2
		if got, want := paired(t, a, delta), countSigns(a, delta); !sameTails(got, want) {
			t.Fatalf("%v against %g: %+v, counted %+v", a, delta, got, want)
		}
		if got, want := unpaired(t, a, b, delta), countParts(a, b, delta); !sameTails(got, want) {
			t.Fatalf("%v and %v against %g: %+v, counted %+v", a, b, delta, got, want)
		}
	}
}

func countSigns(shifts []float64, delta float64) Tails {
	above, notBelow := 0, 0
	for i, a := range shifts {
		for _, b := range shifts[i:] {
			above += one(a+b > 2*delta)
			notBelow += one(a+b >= 2*delta)
		}
	}
	var less, greater, all int
	subsets(len(shifts), -1, func(set uint) {
		sum := 0 // of the ranks with a positive sign
		for i := range shifts {
			sum += (i + 1) * one(holds(set, i))
		}
		all, less, greater = all+1, less+one(sum <= notBelow), greater+one(sum >= above)
	})
	return tailsOf(less, greater, all)
}

func countParts(a, b []float64, delta float64) Tails {
	above, notBelow := 0, 0
	for _, x := range a {
		for _, y := range b {
			above += one(y-delta > x)
			notBelow += one(y-delta >= x)
		}
	}
	var less, greater, all int
	subsets(len(a)+len(b), len(b), func(set uint) {
		u := 0 // pairs with the value of the second sample above
		for i := range len(a) + len(b) {
			for j := range i {
				u += one(holds(set, i) && !holds(set, j))
			}
		}
		all, less, greater = all+1, less+one(u <= notBelow), greater+one(u >= above)
	})
	return tailsOf(less, greater, all)
}

func one(counts bool) int {
	if counts {
		return 1
	}
	return 0
}

func tailsOf(less, greater, all int) Tails {
	below, above := float64(less)/float64(all), float64(greater)/float64(all)
	return Tails{Less: below, Greater: above, TwoSided: min(1, 2*below, 2*above)}
}

// TestUnpairedMoremath compares with the implementation behind benchstat, both exact and approximated. That one gives ties the average of
// their ranks: in large samples, ties must not make a shift more certain here than there.
func TestUnpairedMoremath(t *testing.T) {
	r, safe := seeded(5), 0
	compare := func(m, n int, ties bool) {
		t.Helper()
		a, b := sample(r, m, ties), sample(r, n, ties)
		got := unpaired(t, a, b, 0)
		for alternative, p := range map[moremath.LocationHypothesis]float64{
			moremath.LocationLess: got.Less, moremath.LocationGreater: got.Greater, moremath.LocationDiffers: got.TwoSided} {
			want, err := moremath.MannWhitneyUTest(b, a, alternative)
			if err != nil {
				t.Fatal(err)
			}
			if ties && want.P < 0.5 && p > want.P {
				safe++
			} else if !near(want.P, p) && (!ties || want.P < 0.5) {
				t.Fatalf("%v and %v: %+v, not p = %g of %s", a, b, got, want.P, alternative)
			}
		}
	}
	for range 800 {
		compare(1+r.IntN(12), 1+r.IntN(12), false)
	}
	for range 5 {
		compare(20+r.IntN(20), 20+r.IntN(20), false)
	}
	for range 60 {
		compare(51+r.IntN(40), 51+r.IntN(40), false)
		compare(51+r.IntN(40), 51+r.IntN(40), true)
	}
	if safe < 60 {
		t.Errorf("%d with ties: the cases show nothing", safe)
	}
}

func TestRankedProperties(t *testing.T) {
	r := seeded(6)
	for turn := range 500 {
		a, b := sample(r, 1+r.IntN(6), turn%2 == 0), sample(r, 1+r.IntN(6), turn%2 == 0)
		for name, c := range map[string]struct{ ranked, mirror, scaled *Ranked }{
			"paired": {must[*Ranked](t)(NewPaired(a, nil)), must[*Ranked](t)(NewPaired(mirrored(a), nil)),
				must[*Ranked](t)(NewPaired(scaled(a), nil))},
			"unpaired": {must[*Ranked](t)(NewUnpaired(a, b)), must[*Ranked](t)(NewUnpaired(b, a)),
				must[*Ranked](t)(NewUnpaired(scaled(a), scaled(b)))},
		} {
			before := 0.0
			for delta := -4.0; delta <= 4; delta += 0.25 {
				got := must[Tails](t)(c.ranked.Test(delta))
				if got.Greater < before || got.Greater < got.Smallest { // to be above a higher limit is harder to show
					t.Fatalf("%s %v and %v: p = %g above %g, less than before", name, a, b, got.Greater, delta)
				}
				before = got.Greater
				if other := must[Tails](t)(c.mirror.Test(-delta)); other.Less != got.Greater || other.TwoSided != got.TwoSided {
					t.Fatalf("%s %v and %v: %+v, mirrored %+v", name, a, b, got, other)
				}
				if other := must[Tails](t)(c.scaled.Test(1024 * delta)); other != got {
					t.Fatalf("%s %v and %v: %+v, scaled %+v", name, a, b, got, other)
				}
			}
		}
	}
}

func scaled(values []float64) []float64 {
	larger := make([]float64, len(values))
	for i, value := range values {
		larger[i] = 1024 * value
	}
	return larger
}

// TestUnpairedKeepsItsLevel goes through all ways to split some values: the share of them with p <= level is at most the level, and without
// ties equal to it.
func TestUnpairedKeepsItsLevel(t *testing.T) {
	r := seeded(3)
	for turn := range 20 {
		pool, seen := sample(r, 8, turn%2 == 0), map[float64]float64{}
		subsets(len(pool), 4, func(set uint) {
			var parts [2][]float64
			for i, value := range pool {
				parts[one(holds(set, i))] = append(parts[one(holds(set, i))], value)
			}
			seen[unpaired(t, parts[0], parts[1], 0).Greater] += 1.0 / 70
		})
		for level := range seen {
			var alarms float64
			for p, share := range seen {
				if p <= level {
					alarms += share
				}
			}
			if alarms > level+1e-9 || turn%2 == 1 && !near(alarms, level) {
				t.Fatalf("%v: at a level of %g there are %g false alarms", pool, level, alarms)
			}
		}
	}
}

// TestUnpairedApproximation: where counting ends, the approximation takes over without a step.
func TestUnpairedApproximation(t *testing.T) {
	half := exactValues / 2
	approximated := normalSums(half*half, math.Sqrt(float64(half*half*(2*half+1))/12))
	for u, exact := range mannWhitneyBelow(half, half) {
		if off := math.Abs(exact - approximated[u]); off > 0.0015 || off > 0.0005 && exact < 0.05 {
			t.Errorf("P(U <= %d) = %g, approximated %g", u, exact, approximated[u])
		}
	}
}

func TestManyEqualValues(t *testing.T) {
	equal := make([]float64, exactValues+1)
	for name, got := range map[string]Tails{"paired": paired(t, equal, 0), "unpaired": unpaired(t, equal, equal, 0)} {
		if !sameTails(got, Tails{Less: 1, Greater: 1, TwoSided: 1}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for n, exact := range map[int]bool{exactValues / 2: true, exactValues: false} {
		if got := unpairedShift(t, equal[:n], equal[:n], 0.95); got.Interval.Exact != exact {
			t.Errorf("%d and %d values: %+v", n, n, got)
		}
	}
}

// TestCount: each pair counts alike, and a delta is rejected exactly if it lies beyond the end of the interval.
func TestCount(t *testing.T) {
	r, beyond := seeded(26), 0
	for turn := range 200 {
		n := 6 + r.IntN(8)
		shifts, outlying := sample(r, n, turn%3 == 0), make([]bool, n)
		outlying[r.IntN(n)] = true
		ranked, level := must[*Ranked](t)(NewPaired(shifts, outlying)), []float64{0.02, 0.05, 0.1}[r.IntN(3)]
		low, high := ranked.CountEnds(level, level)
		for _, delta := range []float64{r.NormFloat64(), 3 * r.NormFloat64(), float64(r.IntN(7) - 3), low, high} {
			if (ranked.CountBelow(delta) <= level) != (delta > high) {
				t.Fatalf("%v at %g: %g, from %g to %g", shifts, delta, ranked.CountBelow(delta), low, high)
			}
			if delta > high {
				beyond++
			}
		}
	}
	if beyond < 50 {
		t.Errorf("%d beyond: the cases show nothing", beyond)
	}
	ranked := must[*Ranked](t)(NewPaired([]float64{1, 1, 1, 0, 0, 0, 0, 0, 0, 0}, []bool{true, true, true, 9: false}))
	if got := ranked.CountBelow(0.5); !near(got, 176./1024) {
		t.Errorf("3 of 10 pairs: %g", got)
	}
	without := must[*Ranked](t)(NewPaired([]float64{1, 2, 3, 4, 5, 6}, nil))
	if low, high := without.CountEnds(0.05, 0.05); without.CountBelow(-9) != 0 || !math.IsInf(low, 1) || !math.IsInf(high, -1) {
		t.Errorf("without outlying pairs: %g, from %g to %g", without.CountBelow(-9), low, high)
	}
}
