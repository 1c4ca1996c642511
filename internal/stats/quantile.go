package stats

import (
	"math"
	"slices"
)

// Median returns the median of finite values. It returns NaN if there are no values, or if one of them is not finite.
func Median(values []float64) float64 {
	if check(values, 1) != nil {
		return math.NaN()
	}
	return quantile(slices.Sorted(slices.Values(values)), 0.5)
}

// quantile is the value below which a share of the sorted values lies, interpolated linearly between the two values at the positions next
// to (n-1)*share: type 7 of Hyndman and Fan, as in R, NumPy and spreadsheets.
func quantile(sorted []float64, share float64) float64 {
	whole, part := math.Modf(share * float64(len(sorted)-1))
	low := int(whole)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + part*(sorted[high]-sorted[low])
}
