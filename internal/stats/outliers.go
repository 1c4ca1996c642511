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

// Outliers says of each value, as a logarithm, whether it is far from the median of its sample: further than is typical of the sample, and of
// all samples. Typical is the median deviation.
func Outliers(samples ...[]float64) [][]bool {
	far, sizes := make([][]bool, len(samples)), []float64{}
	deviations, typical := make([][]float64, len(samples)), make([]float64, len(samples))
	for i, sample := range samples {
		far[i] = make([]bool, len(sample))
		if len(sample) < leastSample || check(sample, 1) != nil {
			continue
		}
		middle := quantile(slices.Sorted(slices.Values(sample)), 0.5)
		for _, value := range sample {
			deviations[i] = append(deviations[i], math.Abs(value-middle))
		}
		typical[i] = quantile(slices.Sorted(slices.Values(deviations[i])), 0.5)
		sizes = append(sizes, deviations[i]...)
	}
	if len(sizes) == 0 {
		return far
	}
	ofAll, count := quantile(slices.Sorted(slices.Values(sizes)), 0.5), 0
	for i := range deviations {
		for j, size := range deviations[i] {
			if far[i][j] = size > max(leastAway, farAway*max(ofAll, typical[i])); far[i][j] {
				count++
			}
		}
	}
	if float64(count) > fewOutliers*float64(len(sizes)) {
		for i := range far {
			clear(far[i])
		}
	}
	return far
}
