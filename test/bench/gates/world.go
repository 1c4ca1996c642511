package main

import (
	"math"
	"math/rand/v2"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

const (
	phase     = "scan"
	metric    = "readBytesPerSecond"
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

// bimodal is of a disk that is slower in one run of so many, as after its cache was full.
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

// world is a storage and the way in which it is measured.
type world struct {
	name   string
	spread spread
	// drift is by how much each run is slower than the one before it.
	drift float64
	order v1alpha1.RunOrder
	// baseline compares with stored results instead of a variant.
	baseline bool
	// repetitions, if not the default.
	repetitions int
	// noise is the floor of a calibration, if there is one.
	noise float64
}

// runs is the number of runs of each variant.
func (w world) runs() int {
	if w.repetitions > 0 {
		return w.repetitions
	}
	return repetitions
}

// gateOf compiles the gate that a world is judged by.
func (w world) gateOf() (*gate.Set, error) {
	compare := v1alpha1.CompareGate{Metric: phase + "." + metric, To: "Variant", Variant: "old", Tolerance: "5%"}
	variants := []string{"new", "old"}
	if w.baseline {
		compare.To, compare.Variant, variants = "Baseline", "", []string{"new"}
		compare.AcceptSingleDay = true // in these worlds, days do not differ
	}
	return gate.Compile([]v1alpha1.Gate{{Name: "g", Compare: &compare}}, []v1alpha1.Phase{{Name: phase}}, variants)
}

// evidence is one experiment in which the new variant is worse by a share.
func (w world) evidence(random *rand.Rand, worse float64) gate.Evidence {
	evidence := gate.Evidence{Order: w.order}
	if w.noise > 0 {
		evidence.Noise.Floor = func(_, _ string) (float64, bool) { return w.noise, true }
	}
	moment := 0
	run := func(variant string, repetition int) int64 {
		level := typical * w.spread(random) * math.Pow(1-w.drift, float64(moment))
		moment++
		if variant == "new" {
			level *= 1 - worse
		}
		value := int64(math.Round(level))
		evidence.Runs = append(evidence.Runs, results.RunResult{Variant: variant, Repetition: int32(repetition + 1), Index: int32(moment),
			Valid:  true,
			Phases: []results.RunPhase{{Name: phase, Outcome: results.OutcomeValid, Metrics: map[string]int64{metric: value}}}})
		return value
	}
	switch {
	case w.baseline:
		var stored []int64
		for repetition := range w.runs() {
			stored = append(stored, run("old", repetition))
		}
		evidence.Runs = nil
		for repetition := range w.runs() {
			run("new", repetition)
		}
		evidence.Baseline.Values = func(_, _, _ string) gate.Stored {
			return gate.Stored{Values: [][]int64{stored}, Unit: results.UnitBytesPerSecond}
		}
	case w.order == v1alpha1.OrderSequential:
		for _, variant := range []string{"old", "new"} {
			for repetition := range w.runs() {
				run(variant, repetition)
			}
		}
	default:
		for repetition := range w.runs() {
			order := []string{"old", "new"}
			if random.IntN(2) == 1 {
				order[0], order[1] = order[1], order[0]
			}
			for _, variant := range order {
				run(variant, repetition)
			}
		}
	}
	evidence.Summary = results.Summarise(evidence.Runs)
	return evidence
}

// tally counts the verdicts of so many experiments.
func (w world) tally(random *rand.Rand, worse float64, experiments int) (map[v1alpha1.Verdict]int, error) {
	set, err := w.gateOf()
	if err != nil {
		return nil, err
	}
	verdicts := map[v1alpha1.Verdict]int{}
	for range experiments {
		verdicts[set.Judge(w.evidence(random, worse))[0].Verdict]++
	}
	return verdicts, nil
}
