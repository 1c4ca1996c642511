package stats

import (
	"math"
	"slices"
	"testing"

	moremath "github.com/aclements/go-moremath/stats"
)

// Hollander and Wolfe (Nonparametric Statistical Methods, table 4.1): how permeable the membranes of placentas are to water.
var (
	atTerm = []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early  = []float64{1.15, 0.88, 0.90, 0.74, 1.21}
)

func TestMannWhitney(t *testing.T) {
	for name, c := range map[string]struct {
		before, after    []float64
		delta            float64
		u, less, greater float64
	}{
		"Hollander and Wolfe":     {early, atTerm, 0, 35, 2727.0 / 3003, 0.1272}, // the book has the upper tail
		"one against one":         {[]float64{1}, []float64{2}, 0, 1, 1, 0.5},
		"three above three":       {[]float64{1, 2, 3}, []float64{4, 5, 6}, 0, 9, 1, 0.05},
		"three below three":       {[]float64{4, 5, 6}, []float64{1, 2, 3}, 0, 0, 0.05, 1},
		"all equal":               {[]float64{7, 7, 7}, []float64{7, 7}, 0, 3, 1, 1},
		"all equal, within delta": {[]float64{7, 7, 7}, []float64{7, 7}, 1, 0, 0.1, 1},
		"exactly delta apart":     {[]float64{7, 7, 7}, []float64{8, 8}, 1, 3, 1, 1},
		"but for rounding":        {[]float64{0.2, 0.2, 0.2}, []float64{0.3, 0.3, 0.3}, 0.1, 4.5, 1, 1}, // 0.3-0.1 < 0.2
		"ties by half":            {[]float64{1, 2}, []float64{2, 3}, 0, 3.5, 1, 2.0 / 6},
	} {
		got := must[MannWhitneyTest](t)(MannWhitney(c.before, c.after, c.delta))
		rough := func(a, b float64) bool { return math.Abs(a-b) < 1e-4 }
		if got.U != c.u || (name != "Hollander and Wolfe" && !rough(got.Less, c.less)) || !rough(got.Greater, c.greater) || !got.Exact {
			t.Errorf("%s: %+v, %s", name, got, got)
		}
	}
}

// TestMannWhitneyCounts compares with a plain count of all ways to part the values, ties or not.
func TestMannWhitneyCounts(t *testing.T) {
	r := seeded(4)
	for turn := range 2000 {
		a, b := sample(r, 1+r.IntN(5), turn%4 != 0), sample(r, 1+r.IntN(5), turn%4 != 0)
		delta := float64(r.IntN(3) - 1)
		got := must[MannWhitneyTest](t)(MannWhitney(a, b, delta))
		u, want := countParts(a, b, delta)
		if got.U != u || !sameTails(got.Tails, want) {
			t.Fatalf("%v and %v shifted by %g: %s, counted U = %g, %+v", a, b, delta, got, u, want)
		}
	}
}

func countParts(a, b []float64, delta float64) (float64, Tails) {
	pool := slices.Clone(a)
	for _, value := range b {
		pool = append(pool, value-delta)
	}
	u := func(set uint) (u float64) {
		for i, x := range pool {
			for j, y := range pool {
				if holds(set, i) || !holds(set, j) {
					continue
				}
				if y > x {
					u++
				} else if y == x {
					u += 0.5
				}
			}
		}
		return u
	}
	seen := u((1<<len(b) - 1) << len(a))
	var less, greater, all float64
	subsets(len(pool), len(b), func(set uint) {
		all++
		other := u(set)
		if other <= seen {
			less++
		}
		if other >= seen {
			greater++
		}
	})
	less, greater = less/all, greater/all
	return seen, Tails{Less: less, Greater: greater, TwoSided: min(1, 2*less, 2*greater)}
}

// TestMannWhitneyMoremath compares with the implementation behind benchstat, both exact and approximated.
func TestMannWhitneyMoremath(t *testing.T) {
	r := seeded(5)
	compare := func(a, b []float64) {
		t.Helper()
		got := must[MannWhitneyTest](t)(MannWhitney(a, b, 0))
		for alternative, p := range map[moremath.LocationHypothesis]float64{
			moremath.LocationLess: got.Less, moremath.LocationGreater: got.Greater, moremath.LocationDiffers: got.TwoSided} {
			want, err := moremath.MannWhitneyUTest(b, a, alternative)
			if err != nil {
				t.Fatal(err)
			}
			if want.U != got.U || !near(want.P, p) {
				t.Fatalf("%v and %v: %s, p = %g two-sided; %s: U = %g, p = %g", a, b, got, got.TwoSided, alternative, want.U, want.P)
			}
		}
	}
	for range 800 {
		compare(sample(r, 1+r.IntN(12), false), sample(r, 1+r.IntN(12), false))
	}
	for range 5 {
		compare(sample(r, 20+r.IntN(20), false), sample(r, 20+r.IntN(20), false))
	}
	for range 60 {
		compare(sample(r, 51+r.IntN(40), true), sample(r, 51+r.IntN(40), true))
	}
}

func TestMannWhitneyProperties(t *testing.T) {
	r := seeded(6)
	for turn := range 500 {
		a, b := sample(r, 1+r.IntN(6), turn%2 == 0), sample(r, 1+r.IntN(6), turn%2 == 0)
		got := must[MannWhitneyTest](t)(MannWhitney(a, b, 0))
		if swapped := must[MannWhitneyTest](t)(MannWhitney(b, a, 0)); !near(swapped.Less, got.Greater) || !near(swapped.TwoSided, got.TwoSided) {
			t.Fatalf("%v and %v: %s, swapped %s", a, b, got, swapped)
		}
		before := 0.0
		for delta := -4.0; delta <= 4; delta += 0.5 {
			test := must[MannWhitneyTest](t)(MannWhitney(a, b, delta))
			if test.U > got.U && delta > 0 || test.Greater < before && !tiedAt(a, b, delta) && !tiedAt(a, b, delta-0.5) {
				t.Fatalf("%v and %v: p = %g above %g, less than before", a, b, test.Greater, delta)
			}
			before = test.Greater
		}
	}
}

// tiedAt: what ties there are changes the distribution, and with it p, in either direction.
func tiedAt(a, b []float64, delta float64) bool {
	for _, x := range a {
		for _, y := range b {
			if tied(x, y-delta, delta) {
				return true
			}
		}
	}
	return false
}

// TestMannWhitneyApproximation: where counting ends, the approximation takes over without a step.
func TestMannWhitneyApproximation(t *testing.T) {
	half := exactValues / 2
	approximated := normalSums(half*half, math.Sqrt(float64(half*half*(2*half+1))/12))
	for u, exact := range mannWhitneyBelow(half, half) {
		if off := math.Abs(exact - approximated[u]); off > 0.0015 || off > 0.0005 && exact < 0.05 {
			t.Errorf("P(U <= %d) = %g, approximated %g", u, exact, approximated[u])
		}
	}
	a, b := make([]float64, exactValues), make([]float64, exactValues)
	if got := must[MannWhitneyTest](t)(MannWhitney(a, b, 0)); got.Exact || got.Less != 1 || got.Greater != 1 || got.TwoSided != 1 {
		t.Errorf("all equal: %s", got)
	}
}
