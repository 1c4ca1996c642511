package gate

import (
	"testing"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

// TestBaselineOfDays: experiments are compared, not runs, and a single one decides only if the gate accepts that.
func TestBaselineOfDays(t *testing.T) {
	with := func(now float64, days ...float64) Evidence {
		evidence := evidenceOf(measured("new", scanned, scaled(now)...), measured("old", scanned, scaled(now)...))
		var stored [][]int64
		for _, level := range days {
			stored = append(stored, scaled(level))
		}
		evidence.Baseline.Values = func(_, _, _ string) Stored { return Stored{Values: stored, Unit: results.UnitBytesPerSecond} }
		return evidence
	}
	calibrated := func(evidence Evidence, variance, freedom float64) Evidence {
		evidence.Noise.Days = func(_, _, _ string) stats.Days { return stats.Days{Levels: variance, LevelFreedom: freedom} }
		return evidence
	}
	quiet := []float64{1, 1.005, 0.995, 1.002, 0.998}
	const noDays = "the variation between days is not in the p value, as the baseline has a single experiment"
	for name, c := range map[string]comparing{
		"one day": {evidence: with(1, 1), verdict: inconclusive, reason: ReasonSingleDay, message: "would be Passed, but " + noDays},
		"one day, worse": {evidence: with(0.8, 1), verdict: inconclusive, reason: ReasonSingleDay,
			message: "interleave both as variants of one experiment, or set acceptSingleDay in the gate"},
		"one day, accepted":        {evidence: with(1, 1), acceptSingleDay: true, verdict: passed, reason: ReasonHolds, message: noDays},
		"one day, accepted, worse": {evidence: with(0.8, 1), acceptSingleDay: true, verdict: failed, reason: ReasonWorse, message: noDays},
		"quiet days":               {evidence: with(1, quiet...), verdict: passed, reason: ReasonHolds, message: "1 experiment, 5 there): within"},
		"quiet days, worse":        {evidence: with(0.8, quiet...), verdict: failed, reason: ReasonWorse, message: "20.0% lower than in the baseline"},
		"days differ": {evidence: with(0.9, 1, 1.04, 0.96, 1.05, 0.95), verdict: inconclusive, reason: ReasonDaysDiffer,
			message: "accept more experiments into the baseline, or interleave"},
		"two days are few":        {evidence: with(0.9, 1, 1.01), verdict: inconclusive, reason: ReasonDaysDiffer},
		"one day, calibrated":     {evidence: calibrated(with(1, 1), 0.0001, 9), verdict: passed, reason: ReasonHolds, message: "1 experiment, 1 there"},
		"one day, unquiet":        {evidence: calibrated(with(1, 1), 0.01, 9), verdict: inconclusive, reason: ReasonDaysDiffer},
		"calibrated on one day":   {evidence: calibrated(with(1, 1), 0, 0), verdict: inconclusive, reason: ReasonSingleDay},
		"halved":                  {evidence: with(0.5, quiet...), verdict: failed, reason: ReasonWorse},
		"a day with a value of 0": {evidence: with(1, 1, 0), verdict: inconclusive, reason: ReasonNoRatio},
		"better on quiet days":    {evidence: with(1.5, quiet...), verdict: passed, reason: ReasonHolds},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, toBaseline) })
	}
}
