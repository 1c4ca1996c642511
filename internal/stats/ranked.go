package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Ranked holds measured shifts, ready to be tested against any delta. Test and Shift use the same statistic: a delta is rejected on one
// side at some level if and only if it lies beyond that end of the interval for this level.
type Ranked struct {
	// values are sorted. The statistic is the number of them beyond delta, and below[s] the chance of at most s, if delta is true.
	values, below []float64
	exact         bool
	// counted are the sorted shifts of pairs, if some of them are outlying: the ranks of the others then say little about these.
	counted []float64
	// slack is the most by which rounding may make equal values differ.
	slack float64
}

// NewPaired ranks the shifts of pairs for Wilcoxon's signed-rank test. Outlying pairs, if there are any, get the lowest ranks instead of
// the highest: the assignment of ranks does not change the chances of their sums, as long as it does not depend on signs. The values are
// the Walsh averages (d_i + d_j)/2, i <= j, of the outlying pairs among each other, and of the other pairs among each other. Each of the
// other pairs ranks above all outlying ones, so its shift also counts once for each outlying pair.
func NewPaired(shifts []float64, outlying []bool) (*Ranked, error) {
	if err := check(shifts, 1); err != nil {
		return nil, err
	}
	n := len(shifts)
	if n > maxAverages/n {
		return nil, fmt.Errorf("%d pairs have too many averages", n)
	}
	var lower, upper []float64
	for i, shift := range shifts {
		if outlying != nil && outlying[i] {
			lower = append(lower, shift)
		} else {
			upper = append(upper, shift)
		}
	}
	values := make([]float64, 0, n*(n+1)/2)
	for _, group := range [][]float64{lower, upper} {
		for i, a := range group {
			for _, b := range group[i:] {
				values = append(values, (a+b)/2)
			}
		}
	}
	for range lower {
		values = append(values, upper...)
	}
	ranked := newRanked(values, signedRanksBelow(n), n <= exactValues)
	if len(lower) > 0 {
		ranked.counted = slices.Sorted(slices.Values(shifts))
	}
	return ranked, nil
}

// NewUnpaired ranks the differences b_j - a_i of all values of two samples for the test of Mann and Whitney.
func NewUnpaired(a, b []float64) (*Ranked, error) {
	if err := errors.Join(check(a, 1), check(b, 1)); err != nil {
		return nil, err
	}
	if len(a) > maxAverages/len(b) {
		return nil, fmt.Errorf("samples of %d and %d values have too many differences", len(a), len(b))
	}
	values := make([]float64, 0, len(a)*len(b))
	for _, from := range a {
		for _, to := range b {
			values = append(values, to-from)
		}
	}
	return newRanked(values, mannWhitneyBelow(len(a), len(b)), len(a)+len(b) <= exactValues), nil
}

func newRanked(values, below []float64, exact bool) *Ranked {
	slices.Sort(values)
	slack := closeness * 2 * max(math.Abs(values[0]), math.Abs(values[len(values)-1]))
	return &Ranked{values: values, below: below, exact: exact, slack: slack}
}

// Test tests whether the middle of the shifts lies below or above delta. Values equal to delta count against both sides, so that ties err
// on the safe side.
func (r *Ranked) Test(delta float64) (Tails, error) {
	if !finite(delta) {
		return Tails{}, fmt.Errorf("a delta of %g", delta)
	}
	slack := r.slack + closeness*math.Abs(delta)
	notAbove := upTo(r.values, delta+slack)
	notBelow := len(r.values) - sort.SearchFloat64s(r.values, delta-slack)
	return tails(r.below[notBelow], r.below[notAbove], r.below[0]), nil
}

// Shift is the median of the values. Its interval leaves out at most the given chances at its lower and its upper end.
func (r *Ranked) Shift(lower, upper float64) Shift {
	estimate := quantile(r.values, 0.5)
	cut := func(level float64) int { // 3 against 3 values reach a confidence of 0.9, which is not exact in floating point
		return sort.Search(len(r.values), func(k int) bool { return r.below[k] > level*(1+closeness)+closeness/2 })
	}
	low, high := cut(lower), cut(upper)
	if low == 0 || high == 0 {
		most := max(0, 1-2*r.below[0])
		return Shift{estimate, Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: most, Exact: r.exact}}
	}
	return Shift{estimate, Interval{Known: true, Exact: r.exact, Low: r.values[low-1], High: r.values[len(r.values)-high],
		Confidence: 1 - r.below[low-1] - r.below[high-1]}}
}

// CountBelow is the chance that no more of the pairs reach delta, if half of all pairs do: the sign test, in which each pair counts alike.
// With the lowest ranks, outlying pairs count for little, even if nearly half of the pairs are outlying on the same side. It is 0 without
// outlying pairs.
func (r *Ranked) CountBelow(delta float64) float64 {
	if r.counted == nil {
		return 0
	}
	return Binomial(len(r.counted), len(r.counted)-sort.SearchFloat64s(r.counted, delta-r.slack-closeness*math.Abs(delta)))
}

// CountEnds are the ends of the interval that belongs to the sign test. Each end is infinite on its inner side without outlying pairs.
func (r *Ranked) CountEnds(lower, upper float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	if n := len(r.counted); n > 0 {
		if from := MedianOutside(n, lower); from > 0 {
			low = r.counted[from-1]
		}
		if from := MedianOutside(n, upper); from > 0 {
			high = r.counted[n-from]
		}
	}
	return low, high
}

// upTo counts the sorted values that are no larger than a limit.
func upTo(sorted []float64, limit float64) int {
	return sort.Search(len(sorted), func(i int) bool { return sorted[i] > limit })
}
