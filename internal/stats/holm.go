package stats

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Holm adjusts the p-values of several tests, so that the chance of even one false alarm is at most the level that they are then compared
// with: the k-th smallest of m becomes max(the one before, min(1, (m-k+1) p)). The result is in the order of the input.
func Holm(p []float64) ([]float64, error) {
	if len(p) == 0 {
		return nil, errors.New("no p-values")
	}
	order := make([]int, len(p))
	for i, value := range p {
		if !(value >= 0 && value <= 1) {
			return nil, fmt.Errorf("p-value %d is %g", i+1, value)
		}
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	adjusted := make([]float64, len(p))
	var before float64
	for k, i := range order {
		before = max(before, min(1, float64(len(p)-k)*p[i]))
		adjusted[i] = before
	}
	return adjusted, nil
}
