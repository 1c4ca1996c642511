package main

import (
	"math"
	"math/rand/v2"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// daily is a storage whose days differ, and a baseline of experiments on some days.
type daily struct {
	// day and within are the deviations of a day, and of a run within a day, as shares.
	day, within float64
	// experiments is their number in the baseline, each on its own day, and calibrated their number in the calibration.
	experiments, calibrated int
	// worse is the true loss now.
	worse float64
	// acceptSingleDay of the gate.
	acceptSingleDay bool
}

// experiment returns the values of the runs of one day.
func (d daily) experiment(random *rand.Rand, worse float64) []int64 {
	level := typical * (1 - worse) * math.Exp(d.day*random.NormFloat64())
	var values []int64
	for range repetitions {
		values = append(values, int64(math.Round(level*math.Exp(d.within*random.NormFloat64()))))
	}
	return values
}

func (d daily) experimentsOf(random *rand.Rand, count int) [][]int64 {
	var all [][]int64
	for range count {
		all = append(all, d.experiment(random, 0))
	}
	return all
}

// judge simulates a baseline, and one more experiment that is judged by it.
func (d daily) judge(random *rand.Rand) (v1alpha1.GateStatus, error) {
	compare := v1alpha1.CompareGate{Metric: phase + "." + metric, To: "Baseline", Tolerance: "5%", AcceptSingleDay: d.acceptSingleDay}
	set, err := gate.Compile([]v1alpha1.Gate{{Name: "g", Compare: &compare}}, []v1alpha1.Phase{{Name: phase}}, []string{"new"})
	if err != nil {
		return v1alpha1.GateStatus{}, err
	}
	var evidence gate.Evidence
	stored := d.experimentsOf(random, d.experiments)
	evidence.Baseline.Values = func(_, _, _ string) gate.Stored {
		return gate.Stored{Values: stored, Unit: results.UnitBytesPerSecond}
	}
	if d.calibrated > 0 {
		days, err := results.Logarithms(d.experimentsOf(random, d.calibrated))
		if err != nil {
			return v1alpha1.GateStatus{}, err
		}
		variation, err := stats.VarianceOfDays(days)
		if err != nil {
			return v1alpha1.GateStatus{}, err
		}
		evidence.Noise.Days = func(_, _, _ string) stats.Days { return variation }
	}
	for i, value := range d.experiment(random, d.worse) {
		evidence.Runs = append(evidence.Runs, results.RunResult{Variant: "new", Repetition: int32(i + 1), Index: int32(i), Valid: true,
			Phases: []results.RunPhase{{Name: phase, Outcome: results.OutcomeValid, Metrics: map[string]int64{metric: value}}}})
	}
	evidence.Summary = results.Summarise(evidence.Runs)
	return set.Judge(evidence)[0], nil
}

// is returns a function that simulates once and reports whether the verdict was this one.
func (d daily) is(verdict v1alpha1.Verdict) func(*rand.Rand) (bool, error) {
	return func(random *rand.Rand) (bool, error) {
		status, err := d.judge(random)
		return status.Verdict == verdict, err
	}
}

// covered simulates once and reports whether the interval contains the true change.
func (d daily) covered(random *rand.Rand) (bool, error) {
	status, err := d.judge(random)
	if err != nil || len(status.Comparisons) != 1 || status.Comparisons[0].LowPartsPerMillion == nil {
		return false, err
	}
	shown, truth := status.Comparisons[0], int64(math.Round(-1e6*d.worse))
	return *shown.LowPartsPerMillion <= truth && truth <= *shown.HighPartsPerMillion, nil
}

// baselinePromises returns the promises of the docs about gates that compare with a baseline, on storage whose days differ.
func baselinePromises() []promise {
	const passed, failed = v1alpha1.VerdictPassed, v1alpha1.VerdictFailed
	worse := func(d daily, share float64) daily {
		d.worse = share
		return d
	}
	var all []promise
	for _, c := range []struct {
		name string
		of   daily
	}{
		{"baseline: days 4%, runs 1%, 1 experiment", daily{day: 0.04, within: 0.01, experiments: 1}},
		{"baseline: days 4%, runs 1%, 2 experiments", daily{day: 0.04, within: 0.01, experiments: 2}},
		{"baseline: days 4%, runs 1%, 5 experiments", daily{day: 0.04, within: 0.01, experiments: 5}},
		{"baseline: days 4%, runs 1%, 20 experiments", daily{day: 0.04, within: 0.01, experiments: 20}},
		{"baseline: days 4%, runs 1%, 1, calibrated on 10", daily{day: 0.04, within: 0.01, experiments: 1, calibrated: 10}},
		{"baseline: days 1%, runs 5%, 5 experiments", daily{day: 0.01, within: 0.05, experiments: 5}},
		{"baseline: days 30%, runs 30%, 10 experiments", daily{day: 0.3, within: 0.3, experiments: 10}},
	} {
		all = append(all, promise{world: c.name, rate: "equal: Failed", promised: 0.05, happens: c.of.is(failed)},
			promise{world: c.name, rate: "worse by 5%: Failed", promised: 0.05, happens: worse(c.of, 0.05).is(failed)},
			promise{world: c.name, rate: "worse by 5%: Passed", promised: 0.05, happens: worse(c.of, 0.05).is(passed)},
			promise{world: c.name, rate: "worse by 10%: Passed", promised: 0.05, happens: worse(c.of, 0.1).is(passed)},
			promise{world: c.name, rate: "worse by 20%: Passed", promised: 0.05, happens: worse(c.of, 0.2).is(passed)},
			promise{world: c.name, rate: "half: Passed", promised: 0.01, happens: worse(c.of, 0.5).is(passed)})
		if c.of.experiments > 1 || c.of.calibrated > 0 {
			all = append(all, promise{world: c.name, rate: "90% intervals that hold the truth", promised: 0.9, atLeast: true, happens: c.of.covered})
		}
	}
	quiet := daily{day: 0.01, within: 0.01, experiments: 10}
	return append(all,
		promise{world: "baseline: days 1%, runs 1%, 10 experiments", rate: "equal: Passed", promised: 0.9, atLeast: true, happens: quiet.is(passed)},
		promise{world: "baseline: days 1%, runs 1%, 10 experiments", rate: "worse by 10%: Failed", promised: 0.85, atLeast: true,
			happens: worse(quiet, 0.1).is(failed)})
}
