// Package bench judges the product's own numbers: it compares paired measurements, and measured figures with known limits.
package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// confidence is the least confidence of an interval.
const confidence = 0.95

// Ratio says how many times as large the first of two figures is as the second.
type Ratio struct {
	Pairs int
	// Medians is the median of the first figures divided by that of the second.
	Medians float64
	// Estimate is the Hodges-Lehmann estimate of the ratio within a pair; it lies between Low and High with Confidence.
	Estimate, Low, High float64
	Confidence          float64
}

// Compare compares figures that were measured in pairs. The interval is that of the signed-rank test, which is exact for any number of
// pairs. It only assumes that the logarithms of the figures differ symmetrically.
func Compare(first, second []float64) (Ratio, error) {
	n := len(first)
	if n != len(second) || n < 6 || n > 50 {
		return Ratio{}, fmt.Errorf("there are %d and %d figures: give 6 to 50 pairs, for fewer have no interval at %.0f%%", n, len(second),
			100*confidence)
	}
	differences := make([]float64, n)
	for i := range first {
		if !(first[i] > 0) || !(second[i] > 0) || math.IsInf(first[i], 0) || math.IsInf(second[i], 0) {
			return Ratio{}, errors.New("a figure is not positive: nothing was measured, so there is no ratio")
		}
		differences[i] = math.Log(first[i] / second[i])
	}
	var means []float64 // of every two differences, and of each with itself
	for i := range differences {
		for j := i; j < n; j++ {
			means = append(means, (differences[i]+differences[j])/2)
		}
	}
	slices.Sort(means)
	cut, reached := signedRankCut(n)
	return Ratio{
		Pairs: n, Medians: Median(first) / Median(second), Estimate: math.Exp(Median(means)),
		Low: math.Exp(means[cut]), High: math.Exp(means[len(means)-1-cut]), Confidence: reached,
	}, nil
}

// signedRankCut returns how many of the sorted means lie outside the interval on each side, and the confidence of the interval. It cuts off
// as many as the required confidence allows. By chance alone each subset of the ranks is as likely as any other.
func signedRankCut(n int) (cut int, reached float64) {
	most := n * (n + 1) / 2
	subsets := make([]float64, most+1) // by the sum of their ranks
	subsets[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := most; sum >= rank; sum-- {
			subsets[sum] += subsets[sum-rank]
		}
	}
	all, tail := math.Ldexp(1, n), subsets[0]
	for cut = 0; 1-2*(tail+subsets[cut+1])/all >= confidence; cut++ {
		tail += subsets[cut+1]
	}
	return cut, 1 - 2*tail/all
}

// Median returns the middle value, or the mean of the middle two.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Within reports whether the ratio of the medians and the whole interval are within a tolerance of 1.
func (r Ratio) Within(tolerance float64) bool {
	low, high := min(r.Medians, r.Low), max(r.Medians, r.High)
	return low >= 1-tolerance && high <= 1+tolerance
}

func (r Ratio) String() string {
	return fmt.Sprintf("%.4f (%.4f..%.4f with %.1f%% confidence, %d pairs)", r.Medians, r.Low, r.High, 100*r.Confidence, r.Pairs)
}
