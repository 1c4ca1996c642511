package stats

import (
	"fmt"
	"math"
	"slices"
)

// Quantile is the value below which a share of the values lies, on the straight line between the two sorted values x next to
// (n-1)*share: type 7 of Hyndman and Fan, as in R, NumPy and spreadsheets.
func Quantile(values []float64, share float64) (float64, error) {
	if err := check(values, 1); err != nil {
		return 0, err
	}
	if !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("a quantile of %g: it lies between 0 and 1", share)
	}
	return quantile(slices.Sorted(slices.Values(values)), share), nil
}

// Median is the middle value, or the mean of both in the middle.
func Median(values []float64) (float64, error) { return Quantile(values, 0.5) }

func quantile(sorted []float64, share float64) float64 {
	whole, part := math.Modf(share * float64(len(sorted)-1))
	low := int(whole)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + part*(sorted[high]-sorted[low])
}
