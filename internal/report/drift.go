package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/storagebench/storagebench/internal/results"
)

// leastDriftRuns is the number of runs from which on a drift can be told from the scatter of a few.
const leastDriftRuns = 6

// mostDriftRuns are compared with each other: of more, evenly chosen ones.
const mostDriftRuns = 400

// driftPoint is the place of a run in the order of execution, and how far its value is from the median of its variant, as a logarithm.
type driftPoint struct {
	index int32
	away  float64
}

// driftWords say which primary metric drifted most from the first run to the last, over all variants. Empty if there are too few runs. The
// drift is the median of the slopes between any two runs, so a run that hung plays no part.
func driftWords(e results.Experiment) string {
	type metricOf struct{ phase, metric string }
	points := map[metricOf][]driftPoint{}
	var order []metricOf
	for from, found := range driftSamples(e) {
		of := metricOf{from.phase, from.metric}
		if points[of] == nil {
			order = append(order, of)
		}
		points[of] = append(points[of], found...)
	}
	slices.SortFunc(order, func(a, b metricOf) int {
		return slices.Compare([]string{a.phase, a.metric}, []string{b.phase, b.metric})
	})
	var most float64
	words := ""
	for _, of := range order {
		drift, known := drift(points[of])
		if known && (words == "" || math.Abs(drift) > math.Abs(most)) {
			most = drift
			words = fmt.Sprintf("%+.1f%% from the first to the last of %d runs: %s.%s, of all primary metrics the most", 100*math.Expm1(drift),
				len(points[of]), of.phase, of.metric)
		}
	}
	return words
}

// driftSamples are the values of each variant, phase and primary metric. Values of 0 have no logarithm, so their sample is left out.
func driftSamples(e results.Experiment) map[source][]driftPoint {
	all := map[source][]driftPoint{}
	for _, run := range results.Repetitions(e.Runs) {
		for _, phase := range run.Phases {
			if !run.Valid || phase.Outcome != results.OutcomeValid {
				continue
			}
			for metric, value := range phase.Metrics {
				if known, _ := results.LookupMetric(metric); known.Primary {
					from := source{run.Variant, phase.Name, metric}
					all[from] = append(all[from], driftPoint{run.Index, math.Log(float64(value))})
				}
			}
		}
	}
	for from, points := range all {
		values := make([]float64, 0, len(points))
		for _, point := range points {
			values = append(values, point.away)
		}
		middle, known := middleOf(values)
		if !known {
			delete(all, from)
			continue
		}
		for i := range points {
			points[i].away -= middle
		}
	}
	return all
}

// drift from the first to the last point.
func drift(points []driftPoint) (float64, bool) {
	slices.SortFunc(points, func(a, b driftPoint) int { return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.away, b.away)) })
	if step := (len(points) + mostDriftRuns - 1) / mostDriftRuns; step > 1 {
		var some []driftPoint
		for i := 0; i < len(points); i += step {
			some = append(some, points[i])
		}
		points = some
	}
	var slopes []float64
	first, last := int32(math.MaxInt32), int32(math.MinInt32)
	for i, a := range points {
		first, last = min(first, a.index), max(last, a.index)
		for _, b := range points[i+1:] {
			if a.index != b.index {
				slopes = append(slopes, (b.away-a.away)/float64(b.index-a.index))
			}
		}
	}
	slope, known := middleOf(slopes)
	return slope * float64(last-first), known && len(points) >= leastDriftRuns
}

// middleOf finite values is their median.
func middleOf(values []float64) (float64, bool) {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 || math.IsInf(sorted[0], 0) {
		return 0, false
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2, true
}
