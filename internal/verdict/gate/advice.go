package gate

import (
	"fmt"
	"math"
)

const (
	// mostAdvised is the largest number of repetitions that a spec may have.
	mostAdvised = 50
	// passingReserve and failingReserve multiply the number of repetitions at which the end of the interval just reaches a limit. With
	// them, 4 of 5 experiments are decided: ((z + 0.84) / z)^2 for a normal distribution, with the z of 5% and of 2%.
	passingReserve, failingReserve = 2.28, 1.99
)

// advice says how many repetitions would decide, if the runs continue to differ as much. passing is the largest p of Passed.
func (c *comparison) advice(passing float64) string {
	if c.ranked != nil && c.ranked.CountBelow(c.accepted()) > passing {
		return "too many pairs are worse than that, some of them by far: find out what happened in these runs. More repetitions decide only if " +
			"it happens less often"
	}
	n := c.enoughToDecide()
	switch {
	case n == 0:
		return "add repetitions, or increase the tolerance"
	case n > mostAdvised:
		return fmt.Sprintf("the change is so close to it that not even %d repetitions would decide: increase the tolerance, or find "+
			"what makes the runs differ", mostAdvised)
	default:
		return fmt.Sprintf("about %d repetitions would decide, if the runs continue to differ as much: add them, or increase the tolerance", n)
	}
}

// enoughToDecide is the number of repetitions with which 4 of 5 experiments like this one are decided, or 0 if that is not known. It is
// even, because orders are balanced over two repetitions, unless one more is enough. The interval and the noise become smaller with the
// square root of the number.
func (c *comparison) enoughToDecide() int {
	interval, estimate := c.worse.Interval, c.worse.Estimate
	if !interval.Known {
		return 0
	}
	gap, width, reserve := c.accepted()-estimate, interval.High-estimate, passingReserve
	if gap < 0 {
		gap, width, reserve = -gap, estimate-interval.Low, failingReserve
	}
	if gap == 0 {
		return mostAdvised + 1
	}
	times := reserve * (width / gap) * (width / gap)
	if c.noiseKnown && estimate > c.accepted() {
		beyond := (c.estimateNoise() + math.Sqrt(reserve)*width) / estimate
		times = max(times, beyond*beyond)
	}
	have := float64(len(c.now))
	if needed := have * times; needed < mostAdvised {
		return max(len(c.now)+1, 2*int(math.Ceil(needed/2)))
	}
	return mostAdvised + 1
}
