package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

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
	// phases have the repetitions in which a phase was measured; the metric is empty.
	phases map[source][]int32
	paired bool
	// kept are the variants with runs that reused the pool of an earlier run.
	kept map[string]bool
}

func samplesOf(e results.Experiment) samples {
	s := samples{values: map[source]map[int32]int64{}, phases: map[source][]int32{}, kept: map[string]bool{}, paired: e.Order != "Sequential"}
	for _, run := range e.Runs {
		s.kept[run.Variant] = s.kept[run.Variant] || run.KeptFrom != ""
	}
	for _, run := range results.Repetitions(e.Runs) {
		for _, phase := range run.Phases {
			if !run.Valid || phase.Outcome != results.OutcomeValid {
				continue
			}
			s.phases[source{run.Variant, phase.Name, ""}] = append(s.phases[source{run.Variant, phase.Name, ""}], run.Repetition)
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

// against returns the ratio of two variants with its interval, as "×0.902 (0.893..0.921)". It returns false if the runs are too few, or not
// independent.
func (s samples) against(base, other source) (string, bool) {
	shift, known := s.shift(base, other, outside)
	return fmt.Sprintf("×%.3f (%.3f..%.3f)", math.Exp(shift.Estimate), math.Exp(shift.Interval.Low), math.Exp(shift.Interval.High)), known
}

const (
	// notMeasured stands for the missing value of a variant: it has no valid run, or each run has too few operations for a percentile.
	notMeasured = "not measured"
	// notInAll marks figures that do not count, because not all valid runs have them, and those that do may be the good ones.
	notInAll = ", not in all valid runs"
)

// ratio formats the ratio of two medians, with its interval if there is one. "-" if a valid run of one of them has no value.
func (s samples) ratio(base, other source, than, found results.MetricResult) string {
	if s.eitherLacks(base, other) {
		return "-"
	}
	if words, known := s.against(base, other); known {
		return words
	}
	return ratio(found.Median, than.Median)
}

// lacks reports whether a run was measured but has no value of a metric. The values of the other runs do not count then: a run that
// stalled, for example, has too few operations for a percentile, and the remaining runs are the good ones.
func (s samples) lacks(of source) bool {
	return slices.ContainsFunc(s.phases[source{of.variant, of.phase, ""}], func(repetition int32) bool {
		_, has := s.values[of][repetition]
		return !has
	})
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

// outliersSection names the runs that are far from the others of their variant, in a primary metric.
func outliersSection(e results.Experiment, s samples) *section {
	out := newSection("Outlying runs", outlierBytes)
	for _, variant := range e.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if results.IsPrimary(metric.Name) {
					out.outliers(s, source{variant.Name, phase.Name, metric.Name}, metric)
				}
			}
		}
	}
	return out
}

func (s *section) outliers(all samples, from source, metric results.MetricResult) {
	repetitions := slices.Sorted(maps.Keys(all.values[from]))
	logarithms := make([]float64, 0, len(repetitions))
	for _, repetition := range repetitions {
		logarithms = append(logarithms, math.Log(float64(all.values[from][repetition]))) // log(0) is infinite: then nothing is an outlier
	}
	for i, far := range stats.Outliers(logarithms) {
		if !far {
			continue
		}
		if s.text.Len() == 0 {
			s.uncounted("These are far from the other runs of their variant. They are part of every number of this report. In comparisons of " +
				"pairs they count least.\nLook for the reason: storage that hangs now and then is a finding too.\n\n" +
				"| Variant | Repetition | Phase | Metric | Value | Of the median |\n|---|---|---|---|---|---|")
		}
		value, unit := all.values[from][repetitions[i]], scaleFor(metric)
		s.row("| %s | %d | %s | %s | %s%s | %s |", name(from.variant), repetitions[i], name(from.phase), name(from.metric), unit.format(value),
			unit.suffix, ratio(value, metric.Median))
	}
}

// repeatedAttempts counts the repeated attempts of each variant. Empty if there are none.
func repeatedAttempts(e results.Experiment) string {
	again, total := map[string]int{}, 0
	for _, run := range e.Runs {
		if run.Attempt > 1 && (run.Group == nil || run.Group.Index == 0) {
			again[run.Variant]++
			total++
		}
	}
	if total == 0 {
		return ""
	}
	var words []string
	for _, variant := range e.Variants {
		words = append(words, fmt.Sprintf("%s %d", name(variant.Name), again[variant.Name]))
	}
	return "Repeated attempts: " + strings.Join(words, ", ") + ". A variant that is repeated more often than the others may look " +
		"better than it is: what made its runs Invalid is not in its numbers.\n\n"
}
