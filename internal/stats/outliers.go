package stats

import (
	"math"
	"slices"
)

const (
	// farAway is the number of median deviations beyond which a value is an outlier: of normally distributed values, one in 20,000 is.
	farAway = 6
	// leastAway is the least distance of an outlier from the median, as a logarithm: values that hardly differ have no outliers.
	leastAway = 0.02
	// leastSample is the size of the smallest sample that can have outliers: the middle of fewer values is not known.
	leastSample = 4
)

// Outliers reports for each value, a logarithm, whether its distance from the median is much larger than the median of these distances.
func Outliers(values []float64) []bool { return OutliersBeyond(values, farAway) }

// OutliersBeyond is like Outliers, with another number of median deviations: for many values, a larger number makes fewer false alarms.
func OutliersBeyond(values []float64, times float64) []bool {
	far := make([]bool, len(values))
	if len(values) < leastSample || check(values, 1) != nil {
		return far
	}
	middle, deviations := quantile(slices.Sorted(slices.Values(values)), 0.5), make([]float64, len(values))
	for i, value := range values {
		deviations[i] = math.Abs(value - middle)
	}
	limit := max(leastAway, times*quantile(slices.Sorted(slices.Values(deviations)), 0.5))
	for i, deviation := range deviations {
		far[i] = deviation > limit
	}
	return far
}

// OutlyingPairs reports for each pair whether its sum is an outlier, because one of the two runs hung. This does not depend on which of the
// two runs hung, nor on any shift between them, so pairs can be ranked by it without changing the chances.
func OutlyingPairs(before, now []float64) []bool {
	sums := make([]float64, len(before))
	for i := range sums {
		sums[i] = before[i] + now[i]
	}
	return Outliers(sums)
}
