package stats

import (
	"fmt"
	"math"
	"slices"
)

// MaxFlips is up to how many pairs SignFlip counts: it holds 2^(n/2) sums.
const MaxFlips = 32

// SignFlipTest is what SignFlip says.
type SignFlipTest struct {
	Pairs int
	// Mean is that of the shifts, before delta is taken off.
	Mean, Delta float64
	// Exact says that all signs were counted; else p is approximated.
	Exact bool
	Tails
}

// SignFlip tests whether the mean of paired shifts d lies below or above delta. If delta were the middle of a symmetric
// distribution, each x = d-delta could as well have had the other sign: p = share of the 2^n sums of ±x that are as far out as
// the sum of x. All of them are counted, none are sampled; beyond MaxFlips pairs the sum is taken as normal.
func SignFlip(shifts []float64, delta float64) (SignFlipTest, error) {
	if err := check(shifts, 1); err != nil {
		return SignFlipTest{}, err
	}
	if !finite(delta) {
		return SignFlipTest{}, fmt.Errorf("a delta of %g", delta)
	}
	n := len(shifts)
	var sum, size, squares float64
	x := make([]float64, n)
	for i, shift := range shifts {
		x[i] = shift - delta
		sum += x[i]
		size += math.Abs(shift) + math.Abs(delta)
		squares += x[i] * x[i]
	}
	// Sums that differ by rounding only are equal, and shifts of exactly delta are none. Counting one too many is the safe side.
	slack := closeness * size
	smallest := math.Ldexp(1, -n)
	if n > MaxFlips {
		less, greater := 1.0, 1.0
		if deviation := math.Sqrt(squares); deviation > 0 {
			less, greater = normalBelow((sum+slack)/deviation), normalBelow((slack-sum)/deviation)
		}
		return SignFlipTest{n, mean(shifts), delta, false, tails(less, greater, smallest)}, nil
	}
	first, second := signedSums(x[:n/2]), signedSums(x[n/2:])
	all := math.Ldexp(1, n)
	greater := all - pairsBelow(first, second, sum-slack)
	less := all - pairsBelow(first, second, -sum-slack) // the sums are symmetric about 0
	return SignFlipTest{n, mean(shifts), delta, true, tails(less/all, greater/all, smallest)}, nil
}

// signedSums are the sums of the values with all signs, sorted.
func signedSums(values []float64) []float64 {
	sums := []float64{0}
	for _, value := range values {
		for i, sum := range sums {
			sums[i] = sum + value
			sums = append(sums, sum-value)
		}
	}
	slices.Sort(sums)
	return sums
}

// pairsBelow counts the pairs, one of each sorted list, with a sum below the bound: as one rises, the other falls.
func pairsBelow(first, second []float64, bound float64) float64 {
	var count float64
	fitting := len(second)
	for _, a := range first {
		for fitting > 0 && a+second[fitting-1] >= bound {
			fitting--
		}
		count += float64(fitting)
	}
	return count
}

// String says it in words.
func (t SignFlipTest) String() string {
	if t.Pairs == 0 {
		return "not tested"
	}
	return fmt.Sprintf("mean %+.4g of %d pairs, against %+.4g: p = %.4g below, %.4g above", t.Mean, t.Pairs, t.Delta, t.Less, t.Greater)
}
