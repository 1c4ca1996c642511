package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	// mostDriftRuns is how many runs of a variant are compared with each other. If there are more, evenly spaced ones are chosen.
	mostDriftRuns = 100
	// driftOrders is how many random orders of the runs trends are compared with, and mostByChance how many of them may have a trend that is
	// as clear as that of a drift: 5%, with the order in which the runs were executed.
	driftOrders, mostByChance = 999, 49
)

// driftPoint is a run with its place in the order of execution, and the logarithm of its value.
type driftPoint struct {
	run   int
	index int32
	value float64
}

// driftWords says which primary metric drifted most from the first run to the last. Empty if no drift is clearer than chance makes one.
func driftWords(e results.Experiment) string {
	runs := slices.DeleteFunc(results.Repetitions(e.Runs), func(run results.RunResult) bool { return !run.Valid })
	all := driftPoints(runs)
	byName := func(a, b source) int { return slices.Compare([]string{a.phase, a.metric}, []string{b.phase, b.metric}) }
	var most float64
	words := ""
	for _, of := range slices.SortedFunc(maps.Keys(clearTrends(runs, all)), byName) {
		if drift, runs := drift(all[of]); math.Abs(drift) > math.Abs(most) {
			most = drift
			words = fmt.Sprintf("%+.1f%% from the first to the last of %d runs: %s.%s, the most of all primary metrics with a clear trend "+
				"(p at most 5%%)", 100*math.Expm1(drift), runs, of.phase, of.metric)
		}
	}
	return words
}

// driftPoints returns the points of each phase and primary metric, by variant and in the order of execution.
func driftPoints(runs []results.RunResult) map[source]map[string][]driftPoint {
	all := map[source]map[string][]driftPoint{}
	for i, run := range runs {
		for _, phase := range run.Phases {
			if phase.Outcome != results.OutcomeValid {
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
				all[of][run.Variant] = append(all[of][run.Variant], driftPoint{i, run.Index, math.Log(float64(value))})
			}
		}
	}
	return all
}

// trend shows how steadily a metric rises or falls from run to run of the same variant.
type trend struct {
	runs []int
	// scores are by how many more runs of its variant a run exceeds than exceed it. They do not depend on the scatter, so trends of all
	// metrics compare.
	scores []float64
	// size of the scores.
	size float64
}

func trendOf(variants map[string][]driftPoint) (t trend) {
	squares := 0.0
	for _, points := range variants {
		for _, point := range points {
			score := 0
			for _, other := range points {
				score += cmp.Compare(point.value, other.value)
			}
			t.runs, t.scores = append(t.runs, point.run), append(t.scores, float64(score))
			squares += float64(score * score)
		}
	}
	t.size = math.Sqrt(squares)
	return t
}

// clarity of the trend if the runs were executed at these places.
func (t trend) clarity(places []float64) float64 {
	sum := 0.0
	for i, run := range t.runs {
		sum += t.scores[i] * places[run]
	}
	return math.Abs(sum) / t.size
}

// clearTrends returns the metrics with a trend that is clearer than the clearest trend of all metrics in nearly all random orders of the
// runs of each variant. A metric that never changes has none.
func clearTrends(runs []results.RunResult, all map[source]map[string][]driftPoint) map[source]trend {
	places, own := make([]float64, len(runs)), map[string][]int{}
	for i, run := range runs {
		places[i], own[run.Variant] = float64(run.Index), append(own[run.Variant], i)
	}
	trends, observed, asClear := map[source]trend{}, map[source]float64{}, map[source]int{}
	for of, variants := range all {
		if t := trendOf(variants); t.size > 0 {
			trends[of], observed[of] = t, t.clarity(places)
		}
	}
	variants, random := sortedKeys(own), rand.New(rand.NewPCG(1, 2))
	for range driftOrders {
		for _, variant := range variants {
			random.Shuffle(len(own[variant]), func(i, j int) {
				a, b := own[variant][i], own[variant][j]
				places[a], places[b] = places[b], places[a]
			})
		}
		clearest := 0.0
		for _, t := range trends {
			clearest = max(clearest, t.clarity(places))
		}
		for of := range trends {
			if clearest >= observed[of] {
				asClear[of]++
			}
		}
	}
	maps.DeleteFunc(trends, func(of source, _ trend) bool { return asClear[of] > mostByChance })
	return trends
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
