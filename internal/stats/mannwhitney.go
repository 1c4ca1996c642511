package stats

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MannWhitneyTest is what MannWhitney says.
type MannWhitneyTest struct {
	// Before and After are the sizes of the samples.
	Before, After int
	// U counts the pairs in which the later value, less delta, is larger than the earlier; equal ones by half.
	U, Delta float64
	// Exact says that all ways to part the values were counted; else p is approximated.
	Exact bool
	Tails
}

// MannWhitney tests whether the values of a second sample lie below or above those of a first one, by more than delta:
// p = share of the ways to part all values, a and b-delta, into samples of these sizes that have a U as far out. Up to 80 values
// every way is counted, ties included; beyond, U is taken as normal, corrected for ties and continuity.
func MannWhitney(a, b []float64, delta float64) (MannWhitneyTest, error) {
	if err := errors.Join(check(a, 1), check(b, 1)); err != nil {
		return MannWhitneyTest{}, err
	}
	if !finite(delta) {
		return MannWhitneyTest{}, fmt.Errorf("a delta of %g", delta)
	}
	m, n := len(a), len(b)
	ranks, sum := pooledRanks(a, b, delta)
	test := MannWhitneyTest{Before: m, After: n, U: float64(sum-n*(n+1)) / 2, Delta: delta, Exact: m+n <= exactValues}
	smallest := 1 / choose(m+n, n)
	if test.Exact {
		ways, all := rankSums(ranks, n), choose(m+n, n)
		test.Tails = tails(total(ways[:sum+1])/all, total(ways[sum:])/all, smallest)
		return test, nil
	}
	middle, deviation := float64(m)*float64(n)/2, mannWhitneyDeviation(ranks, m, n)
	if deviation == 0 { // all values are equal
		test.Tails = tails(1, 1, smallest)
		return test, nil
	}
	test.Tails = tails(normalBelow((test.U+0.5-middle)/deviation), normalBelow((middle-test.U+0.5)/deviation), smallest)
	return test, nil
}

// pooledRanks are the doubled ranks of all values, which ties share evenly, and the sum of those of b-delta. Doubled they are
// whole numbers.
func pooledRanks(a, b []float64, delta float64) (ranks []int, sum int) {
	type member struct {
		value float64
		later bool
	}
	members := make([]member, 0, len(a)+len(b))
	for _, value := range a {
		members = append(members, member{value, false})
	}
	for _, value := range b {
		members = append(members, member{value - delta, true})
	}
	slices.SortFunc(members, func(x, y member) int { return cmp.Compare(x.value, y.value) })
	for first := 0; first < len(members); {
		next := first + 1
		for next < len(members) && tied(members[first].value, members[next].value, delta) {
			next++
		}
		for _, tied := range members[first:next] {
			ranks = append(ranks, first+1+next) // twice the mean of first+1 to next
			if tied.later {
				sum += first + 1 + next
			}
		}
		first = next
	}
	return ranks, sum
}

// tied is true for values that only rounding keeps apart, after delta was taken off one.
func tied(a, b, delta float64) bool {
	return math.Abs(a-b) <= closeness*max(math.Abs(a), math.Abs(b), math.Abs(delta))
}

// mannWhitneyDeviation is sqrt(mn/12 (N+1 - sum of (t^3-t)/(N(N-1)))) with N = m+n, over the numbers t of values that share a rank.
func mannWhitneyDeviation(sortedRanks []int, m, n int) float64 {
	var ties float64
	for first := 0; first < len(sortedRanks); {
		next := first
		for next < len(sortedRanks) && sortedRanks[next] == sortedRanks[first] {
			next++
		}
		t := float64(next - first)
		ties += t*t*t - t
		first = next
	}
	all := float64(m + n)
	return math.Sqrt(max(0, float64(m)*float64(n)/12*(all+1-ties/(all*(all-1)))))
}

func total(values []float64) float64 {
	var sum float64
	for _, value := range values {
		sum += value
	}
	return sum
}

// String says it in words.
func (t MannWhitneyTest) String() string {
	if t.Before == 0 {
		return "not tested"
	}
	kind := "exact"
	if !t.Exact {
		kind = "approximate"
	}
	return fmt.Sprintf("U = %g of %d with %d and %d values, shifted by %g: %s p = %.4g below, %.4g above",
		t.U, t.Before*t.After, t.Before, t.After, t.Delta, kind, t.Less, t.Greater)
}
