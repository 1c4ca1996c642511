package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

const (
	metric = "readBytesPerSecond"
	// phase is the only phase of worlds with a single gate.
	phase     = "p0"
	tolerance = 0.05
	// repetitions is the default of the API.
	repetitions = 6
	// typical is the value of a metric: large enough that rounding to whole numbers plays no part.
	typical = 1e9
)

// spread makes the deviation of one run, as a factor around 1.
type spread func(random *rand.Rand) float64

func normal(deviation float64) spread {
	return func(random *rand.Rand) float64 { return max(0.01, 1+deviation*random.NormFloat64()) }
}

func logNormal(deviation float64) spread {
	return func(random *rand.Rand) float64 { return math.Exp(deviation * random.NormFloat64()) }
}

// bimodal returns the spread of a disk that is slower in a share of the runs, for example after its cache was full, or when it hangs.
func bimodal(deviation, slower, often float64) spread {
	return func(random *rand.Rand) float64 {
		value := 1 + deviation*random.NormFloat64()
		if random.Float64() < often {
			value *= slower
		}
		return max(0.01, value)
	}
}

// measured draws from runs of the same thing, which deviate from their median as a real disk does.
func measured(values []float64) spread {
	return func(random *rand.Rand) float64 { return values[random.IntN(len(values))] }
}

// world is a storage and how it is measured.
type world struct {
	name   string
	spread spread
	// drift is by how much each run is slower than the one before it.
	drift float64
	order v1alpha1.RunOrder
	// baseline compares with stored results instead of a variant.
	baseline bool
	// repetitions is their number if it is not the default. mostRepetitions is the total with adaptive repetitions, if they are used.
	repetitions, mostRepetitions int
	// noise is the floor of a calibration, if there is one.
	noise float64
	// gates is the number of phases with a gate each, if not one. correlation is that of their noise. Only the first phase is worse, unless
	// allWorse is set.
	gates       int
	correlation float64
	allWorse    bool
	// bound judges the new variant by a lower bound, instead of comparing it.
	bound bool
	// ratio judges the first phase of the new variant by its ratio to the second one of the same run.
	ratio bool
}

// runs returns the number of runs of each variant.
func (w world) runs() int { return max(w.mostRepetitions, cmp.Or(w.repetitions, repetitions)) }

func phaseName(i int) string { return fmt.Sprintf("p%d", i) }

// gatesOf compiles the gates that a world is judged by.
func (w world) gatesOf() (*gate.Set, error) {
	var gates []v1alpha1.Gate
	var phases []v1alpha1.Phase
	variants := []string{"new", "old"}
	for i := range cmp.Or(w.gates, 1) {
		of := v1alpha1.MetricPath(phaseName(i) + "." + metric)
		one := v1alpha1.Gate{Name: v1alpha1.GateName(phaseName(i))}
		switch compare := (v1alpha1.CompareGate{Metric: of, To: "Variant", Variant: "old", Tolerance: "5%"}); {
		case w.ratio && i > 0: // the first gate refers to this phase
			phases = append(phases, v1alpha1.Phase{Name: v1alpha1.PhaseName(phaseName(i))})
			continue
		case w.ratio:
			one.Ratio, variants = &v1alpha1.RatioGate{Of: of, To: "p1." + metric, Min: "100%"}, []string{"new"}
		case w.bound:
			one.Bound, variants = &v1alpha1.BoundGate{Metric: of, Min: boundAt(typical)}, []string{"new"}
		case w.baseline:
			compare.To, compare.Variant, variants = "Baseline", "", []string{"new"}
			compare.AcceptSingleDay = true // in these worlds, days do not differ
			one.Compare = &compare
		default:
			one.Compare = &compare
		}
		gates, phases = append(gates, one), append(phases, v1alpha1.Phase{Name: v1alpha1.PhaseName(phaseName(i))})
	}
	return gate.Compile(gates, phases, variants)
}

// turns returns the order of the runs: variants by repetition.
func (w world) turns(random *rand.Rand) [][]string {
	var turns [][]string
	switch {
	case w.baseline || w.order == v1alpha1.OrderSequential:
		for _, variant := range []string{"old", "new"} {
			for range w.runs() {
				turns = append(turns, []string{variant})
			}
		}
	default:
		for _, order := range design.Order(2, w.runs(), random.Uint64()) {
			turns = append(turns, []string{[]string{"old", "new"}[order[0]], []string{"old", "new"}[order[1]]})
		}
	}
	return turns
}

// measure makes the runs of one experiment in which the new variant is worse by a share.
func (w world) measure(random *rand.Rand, worse float64) []results.RunResult {
	var runs []results.RunResult
	done := map[string]int32{}
	for _, turn := range w.turns(random) {
		for _, variant := range turn {
			done[variant]++
			run := results.RunResult{Name: variant, Variant: variant, Repetition: done[variant], Index: int32(len(runs)), Valid: true}
			common, drifted := w.spread(random), math.Pow(1-w.drift, float64(len(runs)))
			for i := range cmp.Or(w.gates, 1) {
				deviation := common
				if w.correlation < 1 && w.gates > 1 {
					deviation = math.Pow(common, math.Sqrt(w.correlation)) * math.Pow(w.spread(random), math.Sqrt(1-w.correlation))
				}
				level := typical * deviation * drifted
				if variant == "new" && (i == 0 || w.allWorse) {
					level *= 1 - worse
				}
				run.Phases = append(run.Phases, results.RunPhase{Name: phaseName(i), Outcome: results.OutcomeValid,
					Metrics: map[string]int64{metric: int64(math.Round(level))}})
			}
			runs = append(runs, run)
		}
	}
	return runs
}

// evidence returns what gates see of the runs up to a repetition.
func (w world) evidence(runs []results.RunResult, repetitions int, share float64) gate.Evidence {
	evidence := gate.Evidence{Order: w.order, Share: share}
	if w.noise > 0 {
		evidence.Noise.Floor = func(_, _ string) (float64, bool) { return w.noise, true }
	}
	var stored []int64
	for _, run := range runs {
		switch {
		case int(run.Repetition) > repetitions:
		case w.baseline && run.Variant == "old":
			stored = append(stored, run.Phases[0].Metrics[metric])
		default:
			evidence.Runs = append(evidence.Runs, run)
		}
	}
	if w.baseline {
		evidence.Baseline.Values = func(_, _, _ string) gate.Stored {
			return gate.Stored{Values: [][]int64{stored}, Unit: results.UnitBytesPerSecond}
		}
	}
	evidence.Summary = results.Summarise(evidence.Runs)
	return evidence
}

// judge returns the outcome of one experiment. An adaptive one is judged again with more repetitions if it is inconclusive.
func (w world) judge(set *gate.Set, random *rand.Rand, worse float64) []v1alpha1.GateStatus {
	runs, first := w.measure(random, worse), cmp.Or(w.repetitions, repetitions)
	if w.mostRepetitions == 0 {
		return set.Judge(w.evidence(runs, first, 1))
	}
	statuses := set.Judge(w.evidence(runs, first, gate.LargeShare))
	if verdict, _ := gate.Overall(statuses); verdict != v1alpha1.VerdictInconclusive {
		return statuses
	}
	return set.Judge(w.evidence(runs, w.mostRepetitions, gate.SmallShare))
}

// tallied are shares of experiments.
type tallied struct {
	failed, passed float64
	// held is the share of intervals of the first comparison that contain the truth, and confidence the mean of their confidence.
	held, confidence float64
}

// tally judges a number of experiments.
func (w world) tally(random *rand.Rand, worse float64, experiments int) (tallied, error) {
	set, err := w.gatesOf()
	if err != nil {
		return tallied{}, err
	}
	var failed, passed, intervals, held int
	var confidence float64
	for range experiments {
		statuses := w.judge(set, random, worse)
		switch verdict, _ := gate.Overall(statuses); verdict {
		case v1alpha1.VerdictFailed:
			failed++
		case v1alpha1.VerdictPassed:
			passed++
		}
		for _, one := range statuses[0].Comparisons {
			if one.LowPartsPerMillion == nil {
				continue
			}
			intervals++
			confidence += float64(one.ConfidencePartsPerMillion) / 1e6
			if truth := int64(math.Round(-worse * 1e6)); truth >= *one.LowPartsPerMillion && truth <= *one.HighPartsPerMillion {
				held++
			}
		}
	}
	share := func(count, of int) float64 { return float64(count) / float64(max(1, of)) }
	return tallied{share(failed, experiments), share(passed, experiments), share(held, intervals), confidence / float64(max(1, intervals))}, nil
}
