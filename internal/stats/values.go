package stats

import (
	"errors"
	"fmt"
	"math"
)

const (
	// largest is beyond anything that is measured. No sum or product in this package overflows for values up to it.
	largest = 1e150
	// closeness is the relative difference up to which numbers count as equal, because a logarithm or a shift leaves a rounding error.
	closeness = 1e-12
)

// check requires at least this many values, all finite: a NaN compares false with everything, and would pass for the best value of all.
func check(values []float64, least int) error {
	if len(values) < least {
		return fmt.Errorf("%d values: at least %d are needed", len(values), least)
	}
	for i, value := range values {
		if !finite(value) {
			return fmt.Errorf("value %d of %d is %g", i+1, len(values), value)
		}
	}
	return nil
}

// finite is false for a NaN too.
func finite(value float64) bool { return math.Abs(value) <= largest }

// LogRatios returns ln(after/before) of each pair: 0 if nothing changed, as far above 0 for twice as much as below 0 for half as much.
func LogRatios(before, after []float64) ([]float64, error) {
	if len(before) != len(after) {
		return nil, fmt.Errorf("%d values before and %d after are no pairs", len(before), len(after))
	}
	if err := errors.Join(check(before, 1), check(after, 1)); err != nil {
		return nil, err
	}
	ratios := make([]float64, len(before))
	for i := range before {
		if before[i] <= 0 || after[i] <= 0 {
			return nil, fmt.Errorf("pair %d is %g and %g: only values above 0 have a ratio", i+1, before[i], after[i])
		}
		ratios[i] = math.Log(after[i] / before[i]) // of the quotient: a difference of logarithms would lose digits
		if !finite(ratios[i]) {
			return nil, fmt.Errorf("pair %d is %g and %g: their ratio is out of range", i+1, before[i], after[i])
		}
	}
	return ratios, nil
}

// Tails holds the p-values of a test, one for each question that it can answer. Each is the chance, if nothing differed, to see the
// measured values or more extreme ones.
type Tails struct {
	// Less is small if the values lie below, Greater if they lie above, TwoSided = min(1, 2 min(Less, Greater)) if they differ.
	Less, Greater, TwoSided float64
	// Smallest is the smallest p that Less and Greater can have with this number of values. A test at a smaller level cannot succeed.
	Smallest float64
}

func tails(less, greater, smallest float64) Tails {
	less, greater = min(1, less), min(1, greater)
	return Tails{less, greater, min(1, 2*less, 2*greater), smallest}
}

// normalBelow is the share of the standard normal distribution below z.
func normalBelow(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
