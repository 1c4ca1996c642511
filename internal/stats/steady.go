// Package stats judges series of measurements. It works on plain numbers, and does not know what they measure.
package stats

import (
	"fmt"
	"math"
	"slices"
)

// SteadyRule says when a series has stopped changing. The rule of the SNIA performance test specification judges the last Window rounds:
// the largest and the smallest value differ by at most MaxRange of the mean, and the best straight line through them rises or falls by at
// most MaxSlope of the mean from the first to the last of these rounds. A slow decay satisfies that while most of it is still to come.
// Therefore the line through the later half of all rounds, and at least through the window, may also rise or fall by at most MaxDrift of
// its mean.
type SteadyRule struct {
	Window                       int
	MaxRange, MaxSlope, MaxDrift float64
}

// SNIA is the rule with the figures of the specification, which has no limit for drift.
func SNIA() SteadyRule {
	return SteadyRule{Window: 5, MaxRange: 0.20, MaxSlope: 0.10, MaxDrift: math.Inf(1)}
}

// DefaultSteady is the rule of SNIA, with a drift of at most 5%. A decay with a time constant of up to 15 rounds is not called steady while
// more than 5% of it is left, if the noise of a round is 1%.
func DefaultSteady() SteadyRule {
	rule := SNIA()
	rule.MaxDrift = 0.05
	return rule
}

// MaxRounds is the number of rounds that the specification waits for steady state.
const MaxRounds = 25

// Steady is the result of a SteadyRule for a series.
type Steady struct {
	// Reached is true if the last rounds satisfy the rule. Known is false if there are too few rounds, or no positive and finite mean.
	Reached, Known bool
	// Range and Slope are shares of Mean, the mean of the window.
	Range, Slope, Mean float64
	// Drift is the rise of the line through the later half of the rounds over that half, as a share of its mean. It may be negative.
	Drift float64
}

// Judge applies the rule to the last rounds of a series.
func (r SteadyRule) Judge(values []float64) Steady {
	if r.Window < 2 || len(values) < r.Window {
		return Steady{}
	}
	window := values[len(values)-r.Window:]
	half := values[len(values)-max(r.Window, (len(values)+1)/2):]
	mean, level := mean(window), mean(half)
	if !(mean > 0) || math.IsInf(mean, 0) || !(level > 0) || math.IsInf(level, 0) {
		return Steady{}
	}
	steady := Steady{Known: true, Mean: mean}
	steady.Range = (slices.Max(window) - slices.Min(window)) / mean
	steady.Slope = math.Abs(slope(window)) * float64(len(window)-1) / mean
	steady.Drift = slope(half) * float64(len(half)) / level
	steady.Reached = steady.Range <= r.MaxRange && steady.Slope <= r.MaxSlope && math.Abs(steady.Drift) <= r.MaxDrift
	return steady
}

// String describes the result in words.
func (s Steady) String() string {
	if !s.Known {
		return "too few rounds to tell"
	}
	return fmt.Sprintf("range %.1f%% and slope %.1f%% of the mean, drift %+.1f%% over the later half of the rounds", 100*s.Range, 100*s.Slope,
		100*s.Drift)
}

func mean(values []float64) float64 {
	var sum float64
	for _, value := range values {
		sum += value
	}
	return sum / float64(len(values))
}

// slope is the rise per round of the least-squares line.
func slope(values []float64) float64 {
	middle, average := float64(len(values)-1)/2, mean(values)
	var above, below float64
	for i, value := range values {
		distance := float64(i) - middle
		above += distance * (value - average)
		below += distance * distance
	}
	return above / below
}
