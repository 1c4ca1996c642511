package stats

import "fmt"

// maxAverages bounds the memory for differences and Walsh averages: 32 MiB.
const maxAverages = 1 << 22

// Shift is an estimate of Hodges and Lehmann. It does not assume a normal distribution, and a few wild values move it little.
type Shift struct {
	Estimate float64
	Interval Interval
}

// Interval holds the true shift with at least this confidence.
type Interval struct {
	// Known is false if there are too few values for the requested confidence. Then Low and High are infinite, and Confidence is the
	// highest that these values could give.
	Known bool
	// Exact is true if Confidence was counted. It is approximated for many values.
	Exact                 bool
	Low, High, Confidence float64
}

// PairedShift is the median of the Walsh averages (d_i + d_j)/2, i <= j, of paired shifts. The interval holds the values that the exact
// signed-rank test of Wilcoxon does not reject, so the distribution of the shifts should be symmetric.
func PairedShift(shifts []float64, confidence float64) (Shift, error) {
	if err := checkConfidence(confidence); err != nil {
		return Shift{}, err
	}
	ranked, err := NewPaired(shifts, nil)
	if err != nil {
		return Shift{}, err
	}
	return ranked.Shift((1-confidence)/2, (1-confidence)/2), nil
}

// checkConfidence requires at least 0.5: less is no better than a coin toss, and the bounds would cross.
func checkConfidence(confidence float64) error {
	if !(confidence >= 0.5 && confidence < 1) {
		return fmt.Errorf("a confidence of %g: it lies between 0.5 and 1", confidence)
	}
	return nil
}
