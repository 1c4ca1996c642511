package stats

import (
	"math"
	"slices"
	"testing"
)

// depression are the changes of nine patients under a tranquilliser: Hollander and Wolfe, table 3.1.
var depression = []float64{
	0.878 - 1.83, 0.647 - 0.50, 0.598 - 1.62, 2.05 - 2.48, 1.06 - 1.68, 1.29 - 1.88, 1.06 - 1.55, 3.14 - 3.06, 1.29 - 1.30,
}

func TestPairedShift(t *testing.T) {
	infinite := math.Inf(1)
	for name, c := range map[string]struct {
		shifts                      []float64
		confidence                  float64
		known                       bool
		estimate, low, high, really float64
	}{
		"Hollander and Wolfe":         {depression, 0.96, true, -0.46, -0.786, -0.010, 1 - 2*10.0/512},
		"one value":                   {[]float64{3}, 0.95, false, 3, -infinite, infinite, 0},
		"five give no 95%":            {[]float64{1, 2, 3, 4, 5}, 0.95, false, 3, -infinite, infinite, 1 - 2.0/32},
		"but 90%":                     {[]float64{1, 2, 3, 4, 5}, 0.9, true, 3, 1, 5, 1 - 2.0/32},
		"six give 95%, all the range": {[]float64{1, 2, 3, 4, 5, 9}, 0.95, true, 3.5, 1, 9, 1 - 2.0/64},
		"all equal":                   {[]float64{2, 2, 2, 2, 2, 2}, 0.95, true, 2, 2, 2, 1 - 2.0/64},
	} {
		got := must[Shift](t)(PairedShift(c.shifts, c.confidence))
		want := Shift{c.estimate, Interval{Known: c.known, Low: c.low, High: c.high, Confidence: c.really, Exact: true}}
		if !sameShift(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestUnpairedShift(t *testing.T) {
	for name, c := range map[string]struct {
		a, b                        []float64
		confidence                  float64
		known                       bool
		estimate, low, high, really float64
	}{
		"Hollander and Wolfe": {atTerm, early, 0.95, true, -0.305, -0.76, 0.15, 1 - 2*60.0/3003},
		"three against three": {[]float64{1, 2, 3}, []float64{11, 13, 15}, 0.9, true, 11, 8, 14, 0.9},
		"no more than 90%":    {[]float64{1, 2, 3}, []float64{11, 13, 15}, 0.95, false, 11, math.Inf(-1), math.Inf(1), 0.9},
		"one against one":     {[]float64{1}, []float64{3}, 0.5, false, 2, math.Inf(-1), math.Inf(1), 0},
	} {
		got := unpairedShift(t, c.a, c.b, c.confidence)
		want := Shift{c.estimate, Interval{Known: c.known, Low: c.low, High: c.high, Confidence: c.really, Exact: true}}
		if !sameShift(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func sameShift(a, b Shift) bool {
	same := func(a, b float64) bool { return a == b || near(a, b) } // for infinities too
	i, j := a.Interval, b.Interval
	return near(a.Estimate, b.Estimate) && i.Known == j.Known && i.Exact == j.Exact &&
		same(i.Low, j.Low) && same(i.High, j.High) && near(i.Confidence, j.Confidence)
}

// TestPairedShiftInverts counts all signs, to check that the interval holds exactly the values that the signed-rank test does not reject.
func TestPairedShiftInverts(t *testing.T) {
	r := seeded(7)
	for range 300 {
		shifts := sample(r, 1+r.IntN(9), false)
		got := must[Shift](t)(PairedShift(shifts, []float64{0.5, 0.8, 0.9, 0.95}[r.IntN(4)]))
		for range 20 {
			inverts(t, got.Interval, 3*r.NormFloat64(), func(delta float64) float64 { return signedRankTwoSided(shifts, delta) })
		}
	}
}

// inverts requires that a value lies inside the interval if and only if a test at the level of the interval accepts it.
func inverts(t *testing.T, interval Interval, delta float64, test func(float64) float64) {
	t.Helper()
	if !interval.Known {
		if least := 1 - interval.Confidence; test(1e6) < least-1e-9 || test(-1e6) > least+1e-9 {
			t.Fatalf("%+v, yet the smallest p is %g", interval, test(1e6))
		}
		return
	}
	inside := delta >= interval.Low && delta <= interval.High
	if p := test(delta); inside != (p > 1-interval.Confidence+1e-9) {
		t.Fatalf("%+v: p = %g at %g", interval, p, delta)
	}
}

// signedRankTwoSided ranks the sizes of x = d-delta, which have no ties, and counts all signs.
func signedRankTwoSided(shifts []float64, delta float64) float64 {
	rank := func(i int) (above int) {
		for _, other := range shifts {
			if math.Abs(other-delta) <= math.Abs(shifts[i]-delta) {
				above++
			}
		}
		return above
	}
	seen := 0
	for i, shift := range shifts {
		if shift > delta {
			seen += rank(i)
		}
	}
	var less, greater, all float64
	subsets(len(shifts), -1, func(set uint) {
		sum := 0
		for i := range shifts {
			if holds(set, i) {
				sum += i + 1
			}
		}
		all++
		if sum <= seen {
			less++
		}
		if sum >= seen {
			greater++
		}
	})
	return min(1, 2*less/all, 2*greater/all)
}

func TestUnpairedShiftInverts(t *testing.T) {
	r := seeded(8)
	for range 150 {
		a, b := sample(r, 1+r.IntN(5), false), sample(r, 1+r.IntN(5), false)
		got := unpairedShift(t, a, b, []float64{0.5, 0.8, 0.9, 0.95}[r.IntN(4)])
		for range 10 {
			inverts(t, got.Interval, 3*r.NormFloat64(), func(delta float64) float64 { return countParts(a, b, delta).TwoSided })
		}
	}
}

// TestPairedShiftCovers goes through all signs: the interval holds 0 as often as it says, and more often only with ties.
func TestPairedShiftCovers(t *testing.T) {
	r := seeded(9)
	for turn := range 6 {
		sizes := sample(r, 9, turn%2 == 0)
		var held, confidence float64
		subsets(len(sizes), -1, func(set uint) {
			shifts := slices.Clone(sizes)
			for i := range shifts {
				if holds(set, i) {
					shifts[i] *= -1
				}
			}
			i := must[Shift](t)(PairedShift(shifts, 0.9)).Interval
			confidence = i.Confidence
			if i.Low <= 0 && i.High >= 0 {
				held += 1.0 / 512
			}
		})
		if held < confidence-1e-9 || turn%2 == 1 && !near(held, confidence) {
			t.Fatalf("%v: held by %g, not %g", sizes, held, confidence)
		}
	}
}

func TestShiftProperties(t *testing.T) {
	r := seeded(10)
	for turn := range 300 {
		a, b := sample(r, 1+r.IntN(12), turn%2 == 0), sample(r, 1+r.IntN(12), turn%2 == 0)
		for _, pair := range [][2]Shift{
			{must[Shift](t)(PairedShift(a, 0.9)), must[Shift](t)(PairedShift(mirrored(a), 0.9))},
			{unpairedShift(t, a, b, 0.9), unpairedShift(t, b, a, 0.9)},
		} {
			one, other := pair[0], pair[1]
			i, j := one.Interval, other.Interval
			if !near(one.Estimate, -other.Estimate) || i.Low != -j.High || i.High != -j.Low || i.Confidence != j.Confidence {
				t.Fatalf("%v and %v: %+v, mirrored %+v", a, b, one, other)
			}
			if one.Estimate < one.Interval.Low || one.Estimate > one.Interval.High {
				t.Fatalf("%v and %v: %+v", a, b, one)
			}
		}
		wide, narrow := unpairedShift(t, a, b, 0.95).Interval, unpairedShift(t, a, b, 0.8).Interval
		if narrow.Low < wide.Low || narrow.High > wide.High || wide.Known && !narrow.Known {
			t.Fatalf("%v and %v: %+v at 95%%, %+v at 80%%", a, b, wide, narrow)
		}
		if narrow.Known && narrow.Confidence < 0.8-1e-9 || wide.Known && wide.Confidence < 0.95-1e-9 {
			t.Fatalf("%v and %v: %+v at 95%%, %+v at 80%%", a, b, wide, narrow)
		}
	}
}

// TestManyShifts uses more values than distributions are counted for.
func TestManyShifts(t *testing.T) {
	r := seeded(11)
	a, b := sample(r, 400, false), sample(r, 300, false)
	for name, got := range map[string]Shift{
		"paired": must[Shift](t)(PairedShift(a, 0.95)), "unpaired": unpairedShift(t, a, b, 0.95)} {
		i := got.Interval
		if !i.Known || i.Exact || i.Low > 0 || i.High < 0 || i.High-i.Low > 0.5 || i.Confidence < 0.95 || i.Confidence > 0.951 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, err := NewUnpaired(make([]float64, 5000), make([]float64, 1000)); err == nil {
		t.Error("too many differences")
	}
	if got, err := PairedShift(make([]float64, 5000), 0.95); err == nil {
		t.Errorf("%+v", got)
	}
}

// TestSignedRankApproximation counts the distribution for the smallest number of pairs that is approximated.
func TestSignedRankApproximation(t *testing.T) {
	n := exactValues + 1
	chances := make([]float64, n*(n+1)/2+1)
	chances[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := len(chances) - 1; sum >= 0; sum-- {
			chances[sum] /= 2
			if sum >= rank {
				chances[sum] += chances[sum-rank] / 2
			}
		}
	}
	exact := accumulate(chances, 1)
	for w, approximated := range signedRanksBelow(n) {
		if off := math.Abs(exact[w] - approximated); off > 0.0015 || off > 0.0005 && exact[w] < 0.05 {
			t.Errorf("P(W <= %d) = %g, approximated %g", w, exact[w], approximated)
		}
	}
}
