package main

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/internal/verdict/history"
)

const year = 365

// nightly is a benchmark that is measured each night.
type nightly struct {
	// noise of a night, as a share, and the correlation of neighbouring nights.
	noise, correlation float64
	// steady nights come before the level changes.
	steady int
	// level returns the level a number of nights after the change, as a share of the level before.
	level func(after int) float64
}

// series returns the values of a number of nights.
func (n nightly) series(random *rand.Rand, nights int) []float64 {
	values := make([]float64, nights)
	deviation := random.NormFloat64()
	for i := range values {
		level := typical
		if n.level != nil && i >= n.steady {
			level *= n.level(i - n.steady + 1)
		}
		values[i] = math.Round(level * math.Exp(n.noise*deviation))
		deviation = n.correlation*deviation + math.Sqrt(1-n.correlation*n.correlation)*random.NormFloat64()
	}
	return values
}

// historyGate returns a gate that compares with earlier experiments.
func historyGate() (*gate.Set, error) {
	compare := v1alpha1.CompareGate{Metric: phase + "." + metric, To: "History", Tolerance: "5%"}
	return gate.Compile([]v1alpha1.Gate{{Name: "g", Compare: &compare}}, []v1alpha1.Phase{{Name: phase}}, []string{"new"})
}

// judged returns the verdict on the last night of a series. It cuts the series to the newest points, as a history does.
func judged(set *gate.Set, series []float64) v1alpha1.Verdict {
	series = series[max(0, len(series)-history.MaxPoints):]
	value := int64(series[len(series)-1])
	evidence := gate.Evidence{
		Runs: []results.RunResult{{Variant: "new", Repetition: 1, Valid: true, Phases: []results.RunPhase{{Name: phase,
			Outcome: results.OutcomeValid, Metrics: map[string]int64{metric: value}}}}},
		History: func(_, _, _ string, _ time.Time) gate.Trend {
			return gate.Trend{Values: series, Change: func() string { return "" }}
		},
	}
	evidence.Summary = results.Summarise(evidence.Runs)
	return set.Judge(evidence)[0].Verdict
}

// ever returns a function that simulates once and reports whether a verdict comes in any night from one to another, both counted from 1.
func (n nightly) ever(verdict v1alpha1.Verdict, from, to int) func(*rand.Rand) (bool, error) {
	return func(random *rand.Rand) (bool, error) {
		set, err := historyGate()
		if err != nil {
			return false, err
		}
		series := n.series(random, to)
		for night := from; night <= to; night++ {
			if judged(set, series[:night]) == verdict {
				return true, nil
			}
		}
		return false, nil
	}
}

// on is like ever for a single night.
func (n nightly) on(verdict v1alpha1.Verdict, night int) func(*rand.Rand) (bool, error) {
	return n.ever(verdict, night, night)
}

// historyPromises returns the promises of the docs about gates that compare with the history.
func historyPromises() []promise {
	const passed, failed = v1alpha1.VerdictPassed, v1alpha1.VerdictFailed
	const first, whole, steady = gate.LeastHistory, 33, 40 // whole is the first night with the largest reference
	falls := func(share float64) func(int) float64 { return func(int) float64 { return share } }
	declines := func(after int) float64 { return math.Pow(0.998, float64(min(after, 45))) }
	quiet, correlated, wild := nightly{noise: 0.01}, nightly{noise: 0.02, correlation: 0.6}, nightly{noise: 0.3, correlation: 0.6}
	halved := nightly{noise: 0.02, steady: steady, level: falls(0.5)}
	lost := nightly{noise: 0.3, steady: steady, level: falls(0.8)}
	twice := nightly{noise: 0.05, steady: steady, level: falls(0.9)}
	decline := nightly{noise: 0.01, steady: steady, level: declines}
	rough := nightly{noise: 0.02, correlation: 0.3, steady: steady, level: declines}
	const never, ever = "years with a Failed", "series with a Failed"
	return []promise{
		{world: "history: noise 2%, no change", rate: never, promised: 0.05, series: true,
			happens: nightly{noise: 0.02}.ever(failed, first, first+year)},
		{world: "history: noise 30%, no change", rate: never, promised: 0.05, series: true,
			happens: nightly{noise: 0.3}.ever(failed, first, first+year)},
		{world: "history: noise 2%, correlation 0.6, no change", rate: never, promised: 0.05, series: true,
			happens: correlated.ever(failed, first, first+year)},
		{world: "history: noise 30%, correlation 0.6, no change", rate: never, promised: 0.05, series: true,
			happens: wild.ever(failed, first, first+year)},
		{world: "history: noise 1%, no change", rate: "Passed on night 33", promised: 0.95, atLeast: true, happens: quiet.on(passed, whole)},
		{world: "history: noise 2%, then half", rate: "Passed on the first night", promised: 0, happens: halved.on(passed, steady+1)},
		{world: "history: noise 2%, then half", rate: "Passed on the second night", promised: 0, happens: halved.on(passed, steady+2)},
		{world: "history: noise 2%, then half", rate: "Failed on the second night", promised: 0.9, atLeast: true,
			happens: halved.on(failed, steady+2)},
		{world: "history: noise 30%, then 20% less", rate: "Passed on the first night", promised: 0.05, happens: lost.on(passed, steady+1)},
		{world: "history: noise 30%, then 20% less", rate: "Passed on the third night", promised: 0.05, happens: lost.on(passed, steady+3)},
		{world: "history: noise 5%, then 10% less", rate: "Passed on the first night", promised: 0.05, happens: twice.on(passed, steady+1)},
		{world: "history: noise 5%, then 10% less", rate: "Passed on the third night", promised: 0.05, happens: twice.on(passed, steady+3)},
		{world: "history: noise 1%, 0.2% less each night, 9% in all", rate: ever + " within 60 nights", promised: 0.9, atLeast: true,
			series: true, happens: decline.ever(failed, steady, steady+60)},
		{world: "history: noise 1%, 0.2% less each night, 9% in all", rate: "Passed on the 45th night", promised: 0.05,
			happens: decline.on(passed, steady+45)},
		{world: "history: noise 2%, correlation 0.3, the same decline", rate: "Passed on the 45th night", promised: 0.05,
			happens: rough.on(passed, steady+45)},
	}
}
