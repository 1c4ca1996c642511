package gate

import (
	"math"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	// level is the accepted chance of a wrong Failed over all comparisons of an experiment, and of a wrong Passed for each.
	level = 0.05
	// failingLevel is an additional condition for each Failed: it keeps wrong ones below 1%, even on storage so noisy that the
	// tolerance is negligible. `make bench-gate` shows it.
	failingLevel = 0.02
)

// comparison is a metric measured twice: how much worse it is now, and how certain that is.
type comparison struct {
	of     reference
	better results.Direction
	// than names the reference.
	than string
	// before and now are the values of the repetitions. paired says that equal positions belong together.
	before, now []float64
	paired      bool
	// ofDays, if set, are tested instead of single runs. oneDay says that the variation between days is not known, and oneDayAccepted
	// that the user decides without it.
	ofDays                 *dayTest
	oneDay, oneDayAccepted bool
	// tolerance is the accepted change for the worse.
	tolerance float64
	// noise is the difference between equal runs, as a logarithm.
	noise      float64
	noiseKnown bool

	// level of the test on each side, at one look. The interval leaves out as much on each side, so that it belongs to the decision.
	level float64

	// What test finds out. shift is ln(now/before), pWorse the chance of the numbers if the metric were worse by no more than the
	// tolerance and the noise, pWithin that if it were worse by the tolerance; smallest is what they can be at best.
	// pFamily is pWorse corrected for all comparisons of the experiment.
	shift                              stats.Shift
	pWorse, pFamily, pWithin, smallest float64
}

// accepted is the logarithm of the accepted change: a share less if higher is better, a share more if lower is better.
func (c *comparison) accepted() float64 {
	if c.better == results.Higher {
		return -math.Log1p(-c.tolerance)
	}
	return math.Log1p(c.tolerance)
}

// failing is the change at which the metric counts as worse: differences between equal runs are no failure. It may exceed the
// accepted change, although no user asked for that.
func (c *comparison) failing() float64 {
	if c.noiseKnown {
		return max(c.accepted(), c.estimateNoise())
	}
	return c.accepted()
}

// estimateNoise is the noise of an estimate from this many runs: that of one pair of runs, less by the root of their number.
func (c *comparison) estimateNoise() float64 {
	return c.noise * math.Sqrt((1/float64(len(c.before))+1/float64(len(c.now)))/2)
}

// test computes the p-values, for pairs and for unpaired samples.
func (c *comparison) test() error {
	if c.ofDays != nil {
		return c.testDays()
	}
	if c.paired {
		return c.testPairs()
	}
	before, now, err := c.logarithms()
	if err != nil {
		return err
	}
	above, err := stats.MannWhitney(before, now, c.failing())
	if err != nil {
		return err
	}
	below, err := stats.MannWhitney(before, now, c.accepted())
	if err != nil {
		return err
	}
	c.pWorse, c.pWithin, c.smallest = above.Greater, below.Less, above.Smallest
	c.shift, err = stats.UnpairedShift(before, now, 1-2*c.level)
	c.shift = c.turn(c.shift)
	return err
}

func (c *comparison) testPairs() error {
	shifts, err := stats.LogRatios(c.before, c.now)
	if err != nil {
		return err
	}
	for i := range shifts {
		shifts[i] *= c.sign()
	}
	above, err := stats.SignedRank(shifts, c.failing())
	if err != nil {
		return err
	}
	below, err := stats.SignedRank(shifts, c.accepted())
	if err != nil {
		return err
	}
	c.pWorse, c.pWithin, c.smallest = above.Greater, below.Less, above.Smallest
	c.shift, err = stats.PairedShift(shifts, 1-2*c.level)
	c.shift = c.turn(c.shift)
	return err
}

// logarithms of both samples, turned so that more is worse. The first value is taken off all: near 0 they keep more digits.
func (c *comparison) logarithms() (before, now []float64, err error) {
	if before, err = c.logarithmsOf(c.before, c.before[0]); err != nil {
		return nil, nil, err
	}
	now, err = c.logarithmsOf(c.now, c.before[0])
	return before, now, err
}

// sign converts a logarithm so that more is worse, and back.
func (c *comparison) sign() float64 {
	if c.better == results.Higher {
		return -1
	}
	return 1
}

// turn makes ln(now/before) of a shift for which more is worse.
func (c *comparison) turn(shift stats.Shift) stats.Shift {
	if c.sign() < 0 {
		shift.Estimate = -shift.Estimate
		shift.Interval.Low, shift.Interval.High = -shift.Interval.High, -shift.Interval.Low
	}
	return shift
}
