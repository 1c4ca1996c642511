package stats

import (
	"math"
	"slices"
)

const (
	// farAway is how many typical deviations an outlier is away: of normal values, one in 20,000 is as far.
	farAway = 6
	// leastAway is how far an outlier is away at least, as a logarithm: values that hardly differ have none.
	leastAway = 0.02
	// leastSample is the number of values from which on a sample can have outliers: the middle of fewer is not known.
	leastSample = 4
)

// Outliers says of each value, a logarithm, whether it is much further from the median than is typical: than the median deviation.
func Outliers(values []float64) []bool { return OutliersBeyond(values, farAway) }

// OutliersBeyond is Outliers with another number of median deviations: with many values, a larger one makes fewer false alarms.
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

// OutlyingPairs are those whose sum is an outlier, because one of the two runs hung. This does not depend on which of the two it was, nor
// on any shift between them, so pairs can be ranked by it without changing the chances.
func OutlyingPairs(before, now []float64) []bool {
	sums := make([]float64, len(before))
	for i := range sums {
		sums[i] = before[i] + now[i]
	}
	return Outliers(sums)
}
