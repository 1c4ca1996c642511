package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// maxAverages bounds the memory for differences and Walsh averages: 32 MiB.
const maxAverages = 1 << 22

// Shift is an estimate of Hodges and Lehmann. It needs no normal distribution, and a few wild values move it little.
type Shift struct {
	Estimate float64
	Interval Interval
}

// Interval holds the true shift with at least this confidence.
type Interval struct {
	// Known is false if there are too few values for the confidence that was asked for. Low and High are infinite then, and
	// Confidence is the most that so few values could give.
	Known bool
	// Exact says that Confidence was counted; it is approximated for many values.
	Exact                 bool
	Low, High, Confidence float64
}

// PairedShift is the median of the Walsh averages (d_i + d_j)/2, i <= j, of paired shifts. The interval holds what the exact
// signed-rank test of Wilcoxon does not reject, so the shifts should spread alike to both sides.
func PairedShift(shifts []float64, confidence float64) (Shift, error) {
	if err := errors.Join(check(shifts, 1), checkConfidence(confidence)); err != nil {
		return Shift{}, err
	}
	n := len(shifts)
	if n > maxAverages/n {
		return Shift{}, fmt.Errorf("%d pairs have too many averages", n)
	}
	averages := make([]float64, 0, n*(n+1)/2)
	for i, a := range shifts {
		for _, b := range shifts[i:] {
			averages = append(averages, (a+b)/2)
		}
	}
	return shift(averages, signedRanksBelow(n), n <= exactValues, confidence), nil
}

// UnpairedShift is the median of the differences b_j - a_i of all values of two samples. The interval holds what the exact test of
// Mann and Whitney does not reject, so the samples should differ by a shift only.
func UnpairedShift(a, b []float64, confidence float64) (Shift, error) {
	if err := errors.Join(check(a, 1), check(b, 1), checkConfidence(confidence)); err != nil {
		return Shift{}, err
	}
	if len(a) > maxAverages/len(b) {
		return Shift{}, fmt.Errorf("samples of %d and %d values have too many differences", len(a), len(b))
	}
	differences := make([]float64, 0, len(a)*len(b))
	for _, from := range a {
		for _, to := range b {
			differences = append(differences, to-from)
		}
	}
	return shift(differences, mannWhitneyBelow(len(a), len(b)), len(a)+len(b) <= exactValues, confidence), nil
}

// shift takes the k-th value from below and from above as bounds, for the largest k with a confidence 1 - 2 P(S < k) that is
// enough. below[s] is P(S <= s) of the test's statistic S, which is the number of values above the true shift.
func shift(values, below []float64, exact bool, confidence float64) Shift {
	slices.Sort(values)
	estimate := quantile(values, 0.5)
	outside := 1 - confidence + closeness // a confidence of 0.9 is not held by floating point, but by 3 against 3 values
	k := sort.Search(len(values), func(k int) bool { return 2*below[k] > outside })
	if k == 0 {
		most := max(0, 1-2*below[0])
		return Shift{estimate, Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: most, Exact: exact}}
	}
	return Shift{estimate, Interval{Known: true, Exact: exact, Low: values[k-1], High: values[len(values)-k], Confidence: 1 - 2*below[k-1]}}
}

// checkConfidence wants one of at least 0.5: less is as good as a coin, and its bounds would cross.
func checkConfidence(confidence float64) error {
	if !(confidence >= 0.5 && confidence < 1) {
		return fmt.Errorf("a confidence of %g: it lies between 0.5 and 1", confidence)
	}
	return nil
}

// String says it in the unit of the values.
func (s Shift) String() string {
	return s.words(func(value float64) string { return fmt.Sprintf("%+.4g", value) })
}

// Percent says it of a shift of logarithms: ln 1.05 is +5%.
func (s Shift) Percent() string {
	return s.words(func(value float64) string { return fmt.Sprintf("%+.1f%%", 100*math.Expm1(value)) })
}

func (s Shift) words(unit func(float64) string) string {
	if !s.Interval.Known {
		return fmt.Sprintf("%s, no interval: so few values give a confidence of at most %.1f%%", unit(s.Estimate), 100*s.Interval.Confidence)
	}
	return fmt.Sprintf("%s, between %s and %s with a confidence of %.1f%%",
		unit(s.Estimate), unit(s.Interval.Low), unit(s.Interval.High), 100*s.Interval.Confidence)
}
