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
	// fewOutliers is the share of all values that may be outliers. More are not: the values have several levels.
	fewOutliers = 0.25
	// leastSample is from how many values on a sample can have outliers: the middle of fewer is not known.
	leastSample = 4
)

// Outliers says of each value, as a logarithm, whether it is far from the median of its sample. The typical deviation is the median over
// all samples. It does not depend on which sample is larger, so it favours none.
func Outliers(samples ...[]float64) [][]bool {
	far, sizes := make([][]bool, len(samples)), []float64{}
	deviations := make([][]float64, len(samples))
	for i, sample := range samples {
		far[i], deviations[i] = make([]bool, len(sample)), make([]float64, len(sample))
		if len(sample) < leastSample || check(sample, 1) != nil {
			continue
		}
		middle := quantile(slices.Sorted(slices.Values(sample)), 0.5)
		for j, value := range sample {
			deviations[i][j] = math.Abs(value - middle)
			sizes = append(sizes, deviations[i][j])
		}
	}
	if len(sizes) == 0 {
		return far
	}
	slices.Sort(sizes)
	limit := max(leastAway, farAway*quantile(sizes, 0.5))
	if beyond := len(sizes) - upTo(sizes, limit); float64(beyond) > fewOutliers*float64(len(sizes)) {
		return far
	}
	for i := range deviations {
		for j, size := range deviations[i] {
			far[i][j] = size > limit
		}
	}
	return far
}
