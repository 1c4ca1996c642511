package main

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestHistoryPromises checks the history promises of make bench-gate with fewer simulations.
func TestHistoryPromises(t *testing.T) {
	var out strings.Builder
	broken, err := keep(&out, historyPromises(), 300, 3)
	t.Log(out.String())
	if err != nil || len(broken) > 0 {
		t.Errorf("%v: broken: %q", err, broken)
	}
}

// TestKeepSeesABrokenPromise: keep returns a promise whose rate is too high and one whose rate is too low, but none that holds.
func TestKeepSeesABrokenPromise(t *testing.T) {
	half := func(random *rand.Rand) (bool, error) { return random.IntN(2) == 0, nil }
	broken, err := keep(io.Discard, []promise{
		{world: "a", rate: "too high", promised: 0.05, happens: half}, {world: "b", rate: "high enough", promised: 0.4, atLeast: true, happens: half},
		{world: "c", rate: "too low", promised: 0.9, atLeast: true, happens: half}, {world: "d", rate: "low enough", promised: 0.6, happens: half},
	}, 1000, 1)
	if err != nil || strings.Join(broken, "; ") != "a: too high; c: too low" {
		t.Errorf("%v: %q", err, broken)
	}
}

// TestNightlyIsAsStated checks the noise and the correlation of the simulated nights: if they were wrong, the promises would mean nothing.
func TestNightlyIsAsStated(t *testing.T) {
	series := nightly{noise: 0.02, correlation: 0.6}.series(rand.New(rand.NewPCG(1, 1)), 20_000)
	var squares, products float64
	for i, value := range series {
		deviation := value/typical - 1
		squares += deviation * deviation
		if i > 0 {
			products += deviation * (series[i-1]/typical - 1)
		}
	}
	if noise, correlation := squares/20_000, products/squares; noise < 0.019*0.019 || noise > 0.021*0.021 || correlation < 0.57 || correlation > 0.63 {
		t.Errorf("variance %g, correlation %g", noise, correlation)
	}
	set, err := historyGate()
	if err != nil {
		t.Fatal(err)
	}
	if verdict := judged(set, series[:12]); verdict != v1alpha1.VerdictInconclusive {
		t.Errorf("12 nights are %s", verdict)
	}
}

// TestBaselinePromises checks the baseline promises of make bench-gate with fewer simulations.
func TestBaselinePromises(t *testing.T) {
	var out strings.Builder
	broken, err := keep(&out, baselinePromises(), 400, 3)
	t.Log(out.String())
	if err != nil || len(broken) > 0 {
		t.Errorf("%v: broken: %q", err, broken)
	}
}

// TestASingleDayIsWrong shows why a baseline of one experiment decides only if the gate accepts that.
func TestASingleDayIsWrong(t *testing.T) {
	of := daily{day: 0.04, within: 0.01, experiments: 1, acceptSingleDay: true}
	failed, err := promise{happens: of.is(v1alpha1.VerdictFailed)}.measure(rand.New(rand.NewPCG(1, 1)), 1000)
	if err != nil || failed < 0.08 {
		t.Errorf("%v: %g of what is equal Failed", err, failed)
	}
	of.acceptSingleDay = false
	if failed, err = (promise{happens: of.is(v1alpha1.VerdictFailed)}).measure(rand.New(rand.NewPCG(1, 1)), 1000); err != nil || failed != 0 {
		t.Errorf("%v: %g Failed without being accepted", err, failed)
	}
}
