package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

// outside is the chance that the true ratio lies beyond one end of its interval.
const outside = 0.025

// source is where a sample comes from.
type source struct{ variant, phase, metric string }

// samples are the values of the valid runs by repetition.
type samples struct {
	values map[source]map[int32]int64
	// runs are the repetitions of each variant, and summary is that of all their metrics.
	runs    map[string][]results.RunResult
	summary map[source]results.MetricResult
	paired  bool
	// kept are the variants with runs that reused the pool of an earlier run.
	kept map[string]bool
}

func samplesOf(e results.Experiment) samples {
	s := samples{values: map[source]map[int32]int64{}, runs: map[string][]results.RunResult{}, summary: maps.Collect(eachMetric(e.Variants)),
		kept: results.KeptVariants(e.Runs), paired: e.Order != "Sequential"}
	for _, run := range results.Repetitions(e.Runs) {
		s.runs[run.Variant] = append(s.runs[run.Variant], run)
		for _, phase := range run.Phases {
			if !run.Valid || phase.Outcome != results.OutcomeValid {
				continue
			}
			for metric, value := range phase.Metrics {
				from := source{run.Variant, phase.Name, metric}
				if s.values[from] == nil {
					s.values[from] = map[int32]int64{}
				}
				s.values[from][run.Repetition] = value
			}
		}
	}
	return s
}

const (
	// notMeasured stands for the missing value of a variant: it has no valid run, or each run has too few operations for a percentile.
	notMeasured = "not measured"
	// notInAll marks figures that do not count, because not all valid runs have them, and those that do may be the good ones.
	notInAll = ", not in all valid runs"
)

// ratio formats the ratio of two variants with its interval, as "×0.902 (0.893..0.921)". If the runs are too few or not independent, it is
// that of the medians. "-" if a valid run of one of them has no value.
func (s samples) ratio(base, other source, than, found results.MetricResult) string {
	if s.eitherLacks(base, other) {
		return "-"
	}
	if shift, known := s.shift(base, other, outside); known {
		return fmt.Sprintf("×%.3f (%.3f..%.3f)", math.Exp(shift.Estimate), math.Exp(shift.Interval.Low), math.Exp(shift.Interval.High))
	}
	return ratio(found.Median, than.Median)
}

// lacks reports whether a valid run has no value of a metric. The values of the other runs do not count then.
func (s samples) lacks(of source) bool {
	return results.Lacks(s.runs[of.variant], of.variant, s.summary[of])
}

func (s samples) eitherLacks(base, other source) bool { return s.lacks(base) || s.lacks(other) }

// shift returns the logarithm of the ratio of two variants, with an interval. outside is the chance, on each side, that the interval misses
// the true value. Pairs of repetitions are compared as in gates.
func (s samples) shift(base, other source, outside float64) (shift stats.Shift, known bool) {
	if s.kept[base.variant] || s.kept[other.variant] || s.eitherLacks(base, other) {
		return shift, false
	}
	before, now := s.logarithms(base, other)
	if len(before) == 0 || len(now) == 0 {
		return shift, false
	}
	var ranked *stats.Ranked
	var err error
	if s.paired {
		shifts := make([]float64, len(before))
		for i := range shifts {
			shifts[i] = now[i] - before[i]
		}
		ranked, err = stats.NewPaired(shifts, stats.OutlyingPairs(before, now))
	} else {
		ranked, err = stats.NewUnpaired(before, now)
	}
	if err != nil {
		return shift, false
	}
	shift = ranked.Shift(outside, outside)
	low, high := ranked.CountEnds(outside, outside)
	shift.Interval.Low, shift.Interval.High = min(shift.Interval.Low, low), max(shift.Interval.High, high)
	return shift, shift.Interval.Known
}

// logarithms returns the logarithms of two samples. If the samples form pairs, only repetitions that both have count. A sample is empty if
// one of its values has no logarithm.
func (s samples) logarithms(base, other source) (before, now []float64) {
	take := func(from, with source) (logarithms []float64) {
		for _, repetition := range slices.Sorted(maps.Keys(s.values[from])) {
			_, both := s.values[with][repetition]
			value := s.values[from][repetition]
			switch {
			case s.paired && !both:
			case value <= 0:
				return nil
			default:
				logarithms = append(logarithms, math.Log(float64(value)))
			}
		}
		return logarithms
	}
	if before, now = take(base, other), take(other, base); s.paired && len(before) != len(now) {
		return nil, nil
	}
	return before, now
}

const outliersNote = "These are far from the other runs of their variant. They are part of every number of this report. In comparisons " +
	"of pairs they have the lowest ranks, but too many of them make an interval wide.\n" +
	"Look for the reason: storage that hangs now and then is a finding too."

// outliersTable names the runs that are far from the others of their variant, in a primary metric.
func outliersTable(e results.Experiment, all samples) table {
	t := table{Caption: "Outlying runs", Note: outliersNote,
		Head: []string{"Variant", "Repetition", "Phase", "Metric", "Value", "Of the median"}}
	for of, metric := range eachPrimary(e.Variants) {
		values, unit := all.values[of], scaleFor(metric)
		repetitions := slices.Sorted(maps.Keys(values))
		logarithms := make([]float64, 0, len(repetitions))
		for _, repetition := range repetitions {
			logarithms = append(logarithms, math.Log(float64(values[repetition]))) // log(0) is infinite: then nothing is an outlier
		}
		for i, far := range stats.Outliers(logarithms) {
			if far {
				value := values[repetitions[i]]
				t.add(named(of.variant), count(repetitions[i]), named(of.phase), named(of.metric), figure(unit.format(value)+unit.suffix),
					figure(ratio(value, metric.Median)))
			}
		}
	}
	return t
}
