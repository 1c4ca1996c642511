package main

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestPromises is a small report: make bench-gate makes it with more experiments.
func TestPromises(t *testing.T) {
	var first, second strings.Builder
	broken, err := report(&first, 60, 7)
	if err != nil || len(broken) > 0 {
		t.Errorf("%v: broken: %s\n%s", err, strings.Join(broken, "\n"), first.String())
	}
	if rows := strings.Count(first.String(), "\n"); rows < 60 {
		t.Errorf("only %d rows", rows)
	}
	if _, err := report(&second, 5, 7); err != nil {
		t.Fatal(err)
	}
	first.Reset()
	if _, err := report(&first, 5, 7); err != nil || first.String() != second.String() {
		t.Errorf("%v: the same seed gives another report", err)
	}
}

// TestABrokenPromiseIsSeen: variants measured one after the other, on storage that drifts, look different though they are not. An excess
// within the error of the simulation does not count as broken.
func TestABrokenPromiseIsSeen(t *testing.T) {
	drifting := world{name: "drifting", spread: normal(0.01), drift: 0.02, order: v1alpha1.OrderSequential}
	s := &simulation{experiments: 300, seed: 1}
	var out strings.Builder
	tables := &table{out: &out, experiments: 300}
	show := s.comparisons(tables, "sequential", []world{drifting})
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	if show(); len(tables.broken) < 2 || !strings.Contains(strings.Join(tables.broken, ";"), "the same is Failed") {
		t.Errorf("broken: %v\n%s", tables.broken, out.String())
	}
	tables.broken = nil
	if tables.atMost("within the error", 0.02, 0.01); len(tables.broken) > 0 {
		t.Error(tables.broken)
	}
}

// TestFound checks the lower limits: losses are found, and equal variants pass.
func TestFound(t *testing.T) {
	hanging := bimodal(0.02, 0.1, 0.05)
	for _, c := range []struct {
		w              world
		worse          float64
		failed, passed float64
	}{
		{world{name: "5% hang, n=6", spread: hanging, repetitions: 6}, 0.3, 0.65, 0},
		{world{name: "5% hang, n=7", spread: hanging, repetitions: 7}, 0.3, 0.85, 0},
		{world{name: "5% hang, n=11", spread: hanging, repetitions: 11}, 0.3, 0.95, 0},
		{world{name: "2% noise, calibrated", spread: normal(0.02), noise: 0.055}, 0.1, 0.75, 0},
		{world{name: "2% noise, the same", spread: normal(0.02)}, 0, 0, 0.9},
		{world{name: "drifting 6% a run", spread: normal(0.01), drift: 0.06}, 0.3, 0.9, 0},
		{world{name: "adaptive", spread: normal(0.02), mostRepetitions: 12}, 0.1, 0.95, 0},
		{world{name: "adaptive, the same", spread: normal(0.02), mostRepetitions: 12}, 0, 0, 0.95},
		{world{name: "one of 20 gates", spread: logNormal(0.01), gates: 20}, 0.1, 0.95, 0},
		{world{name: "20 gates alike", spread: logNormal(0.02), gates: 20, correlation: 0.9, allWorse: true}, 0.12, 0.8, 0},
		{world{name: "bound", spread: normal(0.05), bound: true}, 0.1, 0.8, 0},
		{world{name: "bound holds", spread: normal(0.05), bound: true}, -0.1, 0, 0.7},
		{world{name: "ratio", spread: logNormal(0.2), correlation: 0.99, gates: 2, ratio: true}, 0.1, 0.95, 0},
		{world{name: "ratio holds", spread: logNormal(0.2), correlation: 0.99, gates: 2, ratio: true}, -0.1, 0, 0.95},
		{world{name: "baseline", spread: normal(0.02), baseline: true}, 0.1, 0.8, 0},
	} {
		got, err := c.w.tally(rand.New(rand.NewPCG(5, 5)), c.worse, 200)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.3f Failed, %.3f Passed", c.w.name, got.failed, got.passed)
		if got.failed < c.failed || got.passed < c.passed {
			t.Errorf("%s: %.3f Failed, %.3f Passed, expected %.2f and %.2f", c.w.name, got.failed, got.passed, c.failed, c.passed)
		}
	}
}

func TestAroundMedian(t *testing.T) {
	if got := aroundMedian([]float64{4, 1, 2, 8}); got[0] != 4.0/3 || got[1] != 1.0/3 {
		t.Error(got)
	}
}
