package gate

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

// acrossConfidence is the confidence of the intervals of Across, for which no gate sets a level.
const acrossConfidence = 0.95

// Across estimates the change of a metric from one experiment to another, as ln(now/before), for people and without a verdict: a verdict
// also needs a tolerance, and the variation between days. unknown says why there is no estimate.
func Across(before, now results.Experiment, variant, phase, metric string) (change stats.Shift, unknown string) {
	of := reference{variant, phase, metric}
	if of.roundedDown() {
		return change, "it is only known down to a power of two"
	}
	var lists [2][]float64
	for i, one := range []results.Experiment{before, now} {
		evidence := Evidence{Summary: one.Variants, Runs: one.Runs}
		found, kept := evidence.samples(of)
		summary, missing := evidence.measured().find(of)
		switch {
		case missing != "":
			return change, missing
		case kept != "":
			return change, fmt.Sprintf("run %s reused the pool of another run", plain(kept))
		case len(found) != int(summary.Runs):
			return change, fmt.Sprintf("the results have %d of its %d runs", len(found), summary.Runs)
		}
		lists[i] = values(found)
	}
	least := slices.Min(slices.Concat(lists[0], lists[1]))
	switch {
	case least <= 0:
		return change, "a run measured 0, so there is no ratio"
	case of.tooCoarse(least, 0):
		return change, fmt.Sprintf("%.0f is too coarse: it is rounded to %d", least, of.step())
	}
	one := &comparison{better: results.Lower, before: lists[0], now: lists[1]} // Lower keeps the sign: a positive shift means more
	from, to, err := one.logarithms()
	if err != nil {
		return change, err.Error()
	}
	ranked, err := stats.NewUnpaired(from, to)
	if err != nil {
		return change, err.Error()
	}
	return ranked.Shift((1-acrossConfidence)/2, (1-acrossConfidence)/2), ""
}
