package gate

import (
	"math"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

// comparison is a metric measured twice: how much worse it is now, and how certain that is.
type comparison struct {
	of     reference
	better results.Direction
	// than names the reference.
	than string
	// before and now are the values of the repetitions. If they are pairs, values at the same index belong together, and repetitions holds
	// the repetition of each pair.
	before, now []float64
	repetitions []int32
	// ofDays, if set, is tested instead of single runs. oneDay is true if the variation between days is not known, and oneDayAccepted if
	// the gate decides without it.
	ofDays                 *dayTest
	oneDay, oneDayAccepted bool
	// ageing describes the condition of the pool.
	ageing string
	// tolerance is the accepted change for the worse.
	tolerance float64
	// noise is the difference between equal runs, as a logarithm.
	noise      float64
	noiseKnown bool

	// The results of test. pWorse is the chance of the values if the metric were worse by no more than limit, and pWithin their chance if
	// it were worse by the tolerance. smallest is the smallest p that they can have.
	pWorse, pWithin, smallest float64
	ranked                    *stats.Ranked
	// shifts are those of the pairs, where more is worse. outlying marks the pairs with a run that is far from the others.
	shifts   []float64
	outlying []bool

	// What the family of all comparisons adds: pWorse corrected for it, and the largest pWorse that is Failed, in this experiment and
	// at best. shift is ln(now/before), worse the same with more being worse; the interval ends where the verdict changes.
	pFamily, failing, failingAtBest float64
	shift, worse                    stats.Shift
}

func (c *comparison) paired() bool { return c.repetitions != nil }

// accepted is the logarithm of the accepted change: a share less if higher is better, a share more if lower is better.
func (c *comparison) accepted() float64 {
	if c.better == results.Higher {
		return -math.Log1p(-c.tolerance)
	}
	return math.Log1p(c.tolerance)
}

// limit is the change beyond which the metric counts as worse. It exceeds the accepted change if the noise does, because differences
// between equal runs are not a failure.
func (c *comparison) limit() float64 {
	if c.noiseKnown {
		return max(c.accepted(), c.estimateNoise())
	}
	return c.accepted()
}

// estimateNoise is the noise of an estimate from this many runs: that of one pair of runs, divided by the square root of their number.
func (c *comparison) estimateNoise() float64 {
	return c.noise * math.Sqrt((1/float64(len(c.before))+1/float64(len(c.now)))/2)
}

// test computes the p-values, for pairs and for unpaired samples.
func (c *comparison) test() error {
	if c.ofDays != nil {
		return c.testDays()
	}
	before, now, err := c.logarithms()
	if err != nil {
		return err
	}
	if c.paired() {
		err = c.rankPairs(before, now)
	} else {
		c.ranked, err = stats.NewUnpaired(before, now)
	}
	if err != nil {
		return err
	}
	above, err := c.ranked.Test(c.limit())
	if err != nil {
		return err
	}
	below, err := c.ranked.Test(c.accepted())
	c.pWorse, c.smallest = above.Greater, above.Smallest
	// A metric is within its tolerance only if the runs that hung do not say otherwise either.
	c.pWithin = max(below.Less, c.ranked.CountBelow(c.accepted()))
	return err
}

// rankPairs marks the pairs with a run that is far from the others, such as one that hung: they have the lowest ranks.
func (c *comparison) rankPairs(before, now []float64) (err error) {
	if c.shifts, err = stats.LogRatios(c.before, c.now); err != nil {
		return err
	}
	for i := range c.shifts {
		c.shifts[i] *= c.sign()
	}
	c.outlying = stats.OutlyingPairs(before, now)
	c.ranked, err = stats.NewPaired(c.shifts, c.outlying)
	return err
}

// member is the comparison as one of a family.
func (c *comparison) member() stats.Member {
	beyond := make([]float64, len(c.shifts))
	for i, shift := range c.shifts {
		beyond[i] = shift - c.limit()
	}
	return stats.Member{Shifts: beyond, Outlying: c.outlying, Repetitions: c.repetitions}
}

// logarithms returns the logarithms of both samples, turned so that more is worse. The first value is subtracted from all, because near 0
// they keep more digits.
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

// turn converts a shift for which more is worse to ln(now/before).
func (c *comparison) turn(shift stats.Shift) stats.Shift {
	if c.sign() < 0 {
		shift.Estimate = -shift.Estimate
		shift.Interval.Low, shift.Interval.High = -shift.Interval.High, -shift.Interval.Low
	}
	return shift
}
