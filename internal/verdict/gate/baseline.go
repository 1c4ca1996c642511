package gate

import (
	"fmt"
	"math"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/stats"
)

// baseline compares with the experiments of the baseline. With several of them, or a calibration with several, the variation between days
// is known. Otherwise only the runs of two days can be compared.
func (c compareRule) baseline(evidence *Evidence, of reference, now []sample) (*comparison, *opinion) {
	earlier, unknown := c.earlier(evidence.Baseline, of)
	if unknown != nil {
		return nil, unknown
	}
	one := &comparison{better: c.metric.Better, before: slices.Concat(earlier...), now: values(now), than: "in the baseline"}
	test, known, err := one.variationTest(earlier, evidence.Noise.variation(of))
	switch {
	case err != nil:
		return nil, &opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonNoRatio, text: fmt.Sprintf(
			"%s cannot be compared as a share: %v: use a bound or an expression", c.of, err)}
	case known:
		one.ofDays = &dayTest{test: test, before: len(earlier), now: 1}
	default:
		if _, kept := evidence.samples(of); kept != "" { // the runs of one day are all there is to test, and they depend on each other
			return nil, notIndependent(kept, of.variant, "accept more experiments into the baseline, so that experiments are compared")
		}
		one.oneDay, one.oneDayAccepted = true, c.acceptOneDay
	}
	return one, nil
}

// variation returns the variation of a metric between the experiments of the calibration.
func (n Noise) variation(of reference) stats.Days {
	if n.Days == nil {
		return stats.Days{}
	}
	return n.Days(of.variant, of.phase, of.metric)
}

// variationTest tests the level of this experiment against those before. known is false if nothing shows how levels vary.
func (c *comparison) variationTest(earlier [][]float64, calibrated stats.Days) (test stats.LevelTest, known bool, err error) {
	first := c.before[0]
	var before []stats.Day
	for _, values := range earlier {
		day, err := c.logarithmsOf(values, first)
		if err != nil {
			return test, false, err
		}
		before = append(before, day)
	}
	now, err := c.logarithmsOf(c.now, first)
	if err != nil {
		return test, false, err
	}
	variation, err := stats.VarianceOfDays(before)
	if err != nil {
		return test, false, err
	}
	if variation = variation.Join(calibrated); variation.LevelFreedom == 0 {
		return test, false, nil
	}
	within, err := stats.VarianceOfDays([]stats.Day{now})
	if err != nil {
		return test, false, err
	}
	// Runs that scatter more today make today's level less certain.
	variation.Within = math.Max(variation.Within, within.Within)
	test, err = stats.CompareDays(before, now, variation)
	return test, err == nil, err
}
