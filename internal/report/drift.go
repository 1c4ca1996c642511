package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	// leastDriftRuns is the smallest number of runs in which a drift can be distinguished from scatter.
	leastDriftRuns = 6
	// mostDriftRuns is how many runs of a variant are compared with each other. If there are more, evenly spaced ones are chosen.
	mostDriftRuns = 100
)

// driftPoint is the place of a run in the order of execution, and the logarithm of its value.
type driftPoint struct {
	index int32
	value float64
}

// driftWords says which primary metric drifted most from the first run to the last. Empty if there are too few runs.
func driftWords(e results.Experiment) string {
	all := driftPoints(e)
	byName := func(a, b source) int { return slices.Compare([]string{a.phase, a.metric}, []string{b.phase, b.metric}) }
	var most float64
	words := ""
	for _, of := range slices.SortedFunc(maps.Keys(all), byName) {
		drift, runs := drift(all[of])
		if !math.IsNaN(drift) && runs >= leastDriftRuns && (words == "" || math.Abs(drift) > math.Abs(most)) {
			most = drift
			words = fmt.Sprintf("%+.1f%% from the first to the last of %d runs: %s.%s, of all primary metrics the most", 100*math.Expm1(drift),
				runs, of.phase, of.metric)
		}
	}
	return words
}

// driftPoints returns the points of each phase and primary metric, by variant and in the order of execution.
func driftPoints(e results.Experiment) map[source]map[string][]driftPoint {
	all := map[source]map[string][]driftPoint{}
	for _, run := range results.Repetitions(e.Runs) {
		for _, phase := range run.Phases {
			if !run.Valid || phase.Outcome != results.OutcomeValid {
				continue
			}
			for metric, value := range phase.Metrics {
				if !results.IsPrimary(metric) || value <= 0 {
					continue
				}
				of := source{phase: phase.Name, metric: metric}
				if all[of] == nil {
					all[of] = map[string][]driftPoint{}
				}
				all[of][run.Variant] = append(all[of][run.Variant], driftPoint{run.Index, math.Log(float64(value))})
			}
		}
	}
	return all
}

// drift is the median of the slopes between any two runs of the same variant, times the distance from the first run to the last. So neither
// the differences between variants nor a run that hung affect it. NaN if there is none.
func drift(variants map[string][]driftPoint) (drift float64, runs int) {
	var slopes []float64
	first, last := int32(math.MaxInt32), int32(math.MinInt32)
	for _, points := range variants {
		runs += len(points)
		for _, point := range points {
			first, last = min(first, point.index), max(last, point.index)
		}
		step := (len(points) + mostDriftRuns - 1) / mostDriftRuns
		for i := 0; i < len(points); i += step {
			for j := i + step; j < len(points); j += step {
				if apart := points[j].index - points[i].index; apart != 0 {
					slopes = append(slopes, (points[j].value-points[i].value)/float64(apart))
				}
			}
		}
	}
	return stats.Median(slopes) * float64(last-first), runs
}
