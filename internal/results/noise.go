package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	// leastShifts is the least number of shifts with which a floor can cover 95%.
	leastShifts = 19
	million     = 1_000_000
)

// NoiseFloor is the difference of one metric between equal runs. A difference that is not larger does not count as a change.
type NoiseFloor struct {
	Phase, Metric string
	// NoisePartsPerMillion is the absolute shift, ln(B/A), that is rarely exceeded, rounded up.
	NoisePartsPerMillion int64
	// Shifts is the number of pairs of runs.
	Shifts int32
	// CoveragePartsPerMillion is the chance that one more such pair stays within it, rounded down: 950000 or more from 19 shifts on.
	CoveragePartsPerMillion int64
}

// MakeCalibration is like MakeBaseline, but for results from which the noise is determined, and with other warnings.
func MakeCalibration(e Experiment, options AcceptOptions) (baseline Baseline, warnings []string, err error) {
	if baseline, warnings, err = accept(e, options); err != nil {
		return Baseline{}, nil, err
	}
	floors, left := baseline.Floors()
	if len(floors) == 0 {
		return Baseline{}, nil,
			fmt.Errorf("experiment %s of %s/%s has no metric with two pairs of valid runs: use at least 4 repetitions of a variant, preferably 38%s",
				e.Experiment, e.Benchmark.Namespace, e.Benchmark.Name, alsoLeft(left))
	}
	for _, words := range left {
		warnings = append(warnings, "no floor for "+words)
	}
	if few := fewShifts(floors); few != "" {
		warnings = append(warnings, few)
	}
	return baseline, warnings, nil
}

func alsoLeft(left []string) string {
	if len(left) == 0 {
		return ""
	}
	return "; left out: " + spelling.Shorten(strings.Join(left, "; "), maxShownBytes*4)
}

// fewShifts warns of floors that are exceeded too often.
func fewShifts(floors []NoiseFloor) string {
	least := slices.MinFunc(floors, func(a, b NoiseFloor) int { return int(a.Shifts - b.Shifts) })
	if least.Shifts >= leastShifts {
		return ""
	}
	return fmt.Sprintf("with %d shifts a floor covers %d%% of the differences between equal runs, not 95%%: it needs %d shifts, from %d "+
		"repetitions of one variant",
		least.Shifts, least.CoveragePartsPerMillion/(million/100), leastShifts, 2*leastShifts)
}

// Floors returns the noise floors of all metrics with a better direction. left lists the metrics without a floor, and the reason.
func (b Baseline) Floors() (floors []NoiseFloor, left []string) {
	var zero, few []string
	seen := map[string]bool{}
	for _, variant := range b.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				name := phase.Name + "." + metric.Name
				if seen[name] || metric.Better == string(Neither) {
					continue
				}
				seen[name] = true
				shifts, whole := b.shifts(phase.Name, metric.Name)
				noise, err := stats.NoiseFloor(shifts)
				switch {
				case !whole:
					zero = append(zero, name)
				case err != nil:
					few = append(few, name)
				default:
					floors = append(floors, floorOf(phase.Name, metric.Name, noise))
				}
			}
		}
	}
	if len(zero) > 0 {
		left = append(left, "metrics that were 0 or not measured in a run: "+strings.Join(zero, ", "))
	}
	if len(few) > 0 {
		left = append(left, "metrics with fewer than two pairs of runs: "+strings.Join(few, ", "))
	}
	return floors, left
}

// Floor returns the noise floor of a metric in a phase, or false if there is none.
func (b Baseline) Floor(phase, metric string) (NoiseFloor, bool) {
	known, _ := LookupMetric(metric)
	if known.Better == Neither {
		return NoiseFloor{}, false
	}
	shifts, whole := b.shifts(phase, metric)
	noise, err := stats.NoiseFloor(shifts)
	if !whole || err != nil {
		return NoiseFloor{}, false
	}
	return floorOf(phase, metric, noise), true
}

func floorOf(phase, metric string, noise stats.Noise) NoiseFloor {
	return NoiseFloor{
		Phase: phase, Metric: metric, Shifts: int32(noise.Shifts), NoisePartsPerMillion: int64(math.Ceil(noise.Floor * million)),
		// The share is a fraction of two small numbers: this correction of 1e-12 undoes its rounding.
		CoveragePartsPerMillion: int64(math.Floor(noise.Coverage*million + 1e-6)),
	}
}

// shifts pools the shifts of all experiments and variants. Pairs are consecutive repetitions of a variant, the first with the second,
// the third with the fourth. If all variants are declared equal, they are consecutive runs in the order of execution: no run is in two
// pairs, because then they would not be independent and the coverage would be wrong. whole is false if a value is 0 or missing.
func (b Baseline) shifts(phase, metric string) (shifts []float64, whole bool) {
	for day := range b.Experiments {
		together, measured := b.runsOf(phase, metric, day)
		if !measured {
			return nil, false
		}
		for _, values := range together {
			if slices.Contains(values, 0) {
				return nil, false
			}
			if len(values) < 2 {
				continue
			}
			pooled, err := stats.ConsecutiveShifts(values)
			if err != nil {
				return nil, false
			}
			shifts = append(shifts, pooled...)
		}
	}
	return shifts, true
}

// runsOf returns the values of an experiment, in lists whose neighbours measure the same thing. whole is false if a run lacks the metric.
func (b Baseline) runsOf(phase, metric string, day int) (lists [][]float64, whole bool) {
	type run struct {
		index int32
		value float64
	}
	var all []run
	for _, v := range b.Variants {
		for _, p := range v.Phases {
			if p.Name != phase {
				continue
			}
			values := p.values(metric, day)
			if len(values) != p.runs(day) {
				return nil, false
			}
			var list []float64
			for i, value := range values {
				list = append(list, float64(value))
				if b.SameVariants && i < len(p.Order[day]) {
					all = append(all, run{p.Order[day][i], float64(value)})
				}
			}
			lists = append(lists, list)
		}
	}
	if !b.SameVariants {
		return lists, true
	}
	slices.SortStableFunc(all, func(x, y run) int { return cmp.Compare(x.index, y.index) })
	var list []float64
	for _, one := range all {
		list = append(list, one.value)
	}
	return [][]float64{list}, true
}

// values returns the values of a metric in an experiment.
func (p BaselinePhase) values(metric string, day int) []int64 {
	for _, m := range p.Metrics {
		if m.Name == metric {
			return m.Values[day]
		}
	}
	return nil
}

// runs is the number of runs of an experiment that have the phase.
func (p BaselinePhase) runs(day int) int {
	most := 0
	for _, metric := range p.Metrics {
		most = max(most, len(metric.Values[day]))
	}
	return most
}

// Days is the variation of a metric between experiments, averaged over the variants. The variants of one experiment see the same day, so
// several of them say no more about the variation between days than one.
func (b Baseline) Days(phase, metric string) stats.Days {
	var pooled stats.Days
	var freedom float64
	for _, variant := range b.Variants {
		days, err := Logarithms(b.Values(variant.Name, phase, metric))
		if err != nil || len(days) == 0 {
			continue
		}
		if found, err := stats.VarianceOfDays(days); err == nil {
			pooled = pooled.Join(found)
			freedom = max(freedom, found.LevelFreedom)
		}
	}
	pooled.LevelFreedom = freedom
	return pooled
}

// Logarithms returns the logarithms of the values of each experiment. It fails for a value of 0, which has none.
func Logarithms(experiments [][]int64) ([]stats.Day, error) {
	var days []stats.Day
	for _, values := range experiments {
		day := make(stats.Day, 0, len(values))
		for _, value := range values {
			if value <= 0 {
				return nil, fmt.Errorf("a value of %d has no logarithm", value)
			}
			day = append(day, math.Log(float64(value)))
		}
		days = append(days, day)
	}
	return days, nil
}
