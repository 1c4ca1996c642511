package gate

import (
	"fmt"
	"math"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/stats"
)

// dayTest makes a comparison compare experiments instead of runs, because days differ by more than the runs of one day show.
type dayTest struct {
	test stats.LevelTest
	// before and now are the numbers of experiments.
	before, now int
	// trend is that of a history. It is nil for a baseline.
	trend *stats.Trend
	// change describes the last change in the history.
	change func() string
	// span is the number of last experiments that show best that the metric is worse.
	span int
	// passing is the level of Passed.
	passing float64
}

// testDays computes the p-values from the levels of experiments.
func (c *comparison) testDays() error {
	of := c.ofDays
	c.pWorse, c.pWithin = of.test.Above(c.limit()), of.test.Below(c.accepted())
	if of.trend != nil {
		c.pWorse, of.span = of.trend.Year(c.limit())
		if of.trend.NewestAlone.Estimate > c.accepted() {
			c.pWithin = 1 // the experiments before it must not vouch for the newest one
		}
	}
	return nil
}

// logarithmsOf returns the logarithms of values, turned so that more is worse, as differences from the logarithm of first.
func (c *comparison) logarithmsOf(values []float64, first float64) ([]float64, error) {
	unit := make([]float64, len(values))
	for i := range unit {
		unit[i] = first
	}
	shifts, err := stats.LogRatios(unit, values)
	for i := range shifts {
		shifts[i] *= c.sign()
	}
	return shifts, err
}

// words says how many experiments were compared.
func (d *dayTest) words() string {
	return fmt.Sprintf("%s, %d there", spelling.Count(d.now, "experiment"), d.before)
}

// explain completes the message of a decided comparison with what its p value covers or does not cover, and says what would decide an
// undecided one.
func (c *comparison) explain(one *opinion) {
	defer func() { one.text += c.ageing }()
	switch {
	case c.oneDay:
		c.explainOneDay(one)
	case c.ofDays == nil:
	case one.verdict == v1alpha1.VerdictFailed && c.ofDays.trend != nil:
		one.text += fmt.Sprintf(" in a year of nights, by the last %d experiments", c.ofDays.span)
		if change := c.ofDays.change(); change != "" {
			one.text += "; " + change
		}
	case one.verdict == v1alpha1.VerdictInconclusive && c.ofDays.trend != nil:
		one.reason, one.text = ReasonDaysDiffer, c.openTrend()
	case one.verdict == v1alpha1.VerdictInconclusive:
		one.reason = ReasonDaysDiffer
		one.text = fmt.Sprintf("%s: neither worse than %s (p = %s) nor within the tolerance of %s (p = %s), as the difference from day to day "+
			"has a standard error of %s: accept more experiments into the baseline, or interleave both as variants of one experiment",
			c.words(), c.limitWords(), probability(c.pFamily), share(c.tolerance), probability(c.pWithin),
			share(math.Expm1(c.ofDays.test.Error)))
	}
}

// openTrend explains why a history decides nothing yet, and what would help.
func (c *comparison) openTrend() string {
	trend := c.ofDays.trend
	advice := ""
	more, found := trend.MoreUntil(c.accepted(), c.ofDays.passing, mostReference)
	switch least := math.Expm1(trend.Reach(c.ofDays.passing)); {
	case found:
		advice = fmt.Sprintf("%s like these would decide", spelling.Count(more, "more experiment"))
	case trend.NewestAlone.Estimate > c.accepted() && trend.Estimate <= c.accepted():
		advice = "the newest experiment is worse than the ones before: the next ones will show whether that lasts"
	case trend.Estimate > c.accepted():
		advice = "it seems worse, and that is not certain yet: the next experiments will show it"
	default:
		advice = fmt.Sprintf("experiments differ by %s: more of them would not decide, but a tolerance above %s could",
			share(math.Expm1(trend.Deviation)), share(math.Ceil(1000*least)/1000))
	}
	return fmt.Sprintf("%s: neither worse than %s (p = %s in a year of nights) nor within the tolerance of %s (p = %s): %s", c.words(),
		c.limitWords(), probability(c.pFamily), share(c.tolerance), probability(c.pWithin), advice)
}

// explainOneDay adds that the p value of a comparison of two days does not cover other differences between these days. Unless the gate
// accepts that, a decided verdict becomes Inconclusive.
func (c *comparison) explainOneDay(one *opinion) {
	const missing = "the variation between days is not in the p value, as the baseline has a single experiment"
	if c.oneDayAccepted || one.verdict == v1alpha1.VerdictInconclusive {
		one.text += "; " + missing
		return
	}
	one.text = fmt.Sprintf("would be %s, but %s: accept more experiments with 'kubectl storagebench baseline accept', interleave both as "+
		"variants of one experiment, or set acceptSingleDay in the gate: %s", one.verdict, missing, one.text)
	one.verdict, one.reason = v1alpha1.VerdictInconclusive, ReasonSingleDay
}
