package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/stats"
)

// The promises, as shares of experiments.
const (
	// The largest shares of Failed: for equal variants, for a variant that is worse by exactly the tolerance, and for families of gates in
	// which nothing is beyond the tolerance.
	mostFalseFailures, mostFailuresAtTolerance, mostFamilyFailures = 0.01, 0.02, 0.05
	// mostFalsePasses is the largest share of Passed for variants that are worse by the tolerance or more.
	mostFalsePasses = 0.05
	// mostAtBound is the largest share of each verdict for medians that are at their bound.
	mostAtBound = 0.05
)

// measuredRuns has figures of repeated measurements in the lab, by the name of the measurement.
//
//go:embed measured.json
var measuredRuns []byte

func boundAt(value int64) v1alpha1.Bound { return v1alpha1.Bound(strconv.FormatInt(value, 10)) }

func spreads() ([]world, error) {
	worlds := []world{
		{name: "normal 0.5%", spread: normal(0.005)}, {name: "normal 2%", spread: normal(0.02)}, {name: "normal 5%", spread: normal(0.05)},
		{name: "normal 20%", spread: normal(0.2)}, {name: "log-normal 10%", spread: logNormal(0.1)},
		{name: "bimodal 2%, 1 in 5 at 80%", spread: bimodal(0.02, 0.8, 0.2)},
		{name: "bimodal 1%, half at 90%", spread: bimodal(0.01, 0.9, 0.5)},
		{name: "normal 2%, 1 in 20 hangs", spread: bimodal(0.02, 0.1, 0.05)},
	}
	var runs map[string][]float64
	if err := json.Unmarshal(measuredRuns, &runs); err != nil {
		return nil, fmt.Errorf("measured.json: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		worlds = append(worlds, world{name: "measured: " + name, spread: measured(aroundMedian(runs[name]))})
	}
	return worlds, nil
}

// comparisons returns the worlds of single comparisons.
func comparisons() ([]world, error) {
	spreads, err := spreads()
	var worlds []world
	for _, w := range spreads {
		stored := w
		stored.baseline = true
		worlds = append(worlds, w, stored)
	}
	for _, n := range []int{7, 8, 9, 12} {
		worlds = append(worlds,
			world{name: fmt.Sprintf("normal 5%%, %d repetitions", n), spread: normal(0.05), repetitions: n},
			world{name: fmt.Sprintf("1 in 20 hangs, %d repetitions", n), spread: bimodal(0.02, 0.1, 0.05), repetitions: n},
			world{name: fmt.Sprintf("bimodal 1 in 5, %d repetitions", n), spread: bimodal(0.02, 0.8, 0.2), repetitions: n})
	}
	return append(worlds, world{name: "normal 1%, drifting 1% a run", spread: normal(0.01), drift: 0.01},
		world{name: "normal 1%, drifting 6% a run", spread: normal(0.01), drift: 0.06},
		world{name: "normal 1%, drifting 6%, 7 repetitions", spread: normal(0.01), drift: 0.06, repetitions: 7},
		world{name: "normal 2%, calibrated", spread: normal(0.02), noise: 0.055}), err
}

// adaptive returns worlds that are judged after 6 repetitions, and if necessary after 12.
func adaptive() ([]world, error) {
	worlds, err := spreads()
	for i := range worlds {
		worlds[i].mostRepetitions = 2 * repetitions
	}
	return worlds, err
}

// families returns worlds with many gates.
func families() []world {
	var worlds []world
	for _, noise := range []float64{0.01, 0.05, 0.2} {
		for _, correlation := range []float64{0, 0.9} {
			for _, gates := range []int{4, 20} {
				worlds = append(worlds, world{name: fmt.Sprintf("%d gates, correlation %.1f, log-normal %g%%", gates, correlation, 100*noise),
					spread: logNormal(noise), gates: gates, correlation: correlation})
			}
		}
	}
	return worlds
}

// bounded returns worlds whose new variant has a bound.
func bounded() []world {
	var worlds []world
	for _, n := range []int{6, 8, 12} {
		for _, w := range []world{{name: "normal 5%", spread: normal(0.05)}, {name: "log-normal 10%", spread: logNormal(0.1)}} {
			w.name, w.bound, w.repetitions = fmt.Sprintf("%s, %d repetitions", w.name, n), true, n
			worlds = append(worlds, w)
		}
	}
	return worlds
}

// divided returns worlds in which two phases of the same runs are compared. Each run has a deviation that both phases share, besides their
// own noise.
func divided() []world {
	var worlds []world
	for _, n := range []int{6, 12} {
		for _, correlation := range []float64{0, 0.9, 0.99} {
			worlds = append(worlds, world{name: fmt.Sprintf("log-normal 20%%, correlation %g, %d repetitions", correlation, n),
				spread: logNormal(0.2), correlation: correlation, gates: 2, ratio: true, repetitions: n})
		}
	}
	return worlds
}

// growing returns worlds in which more repetitions must not find less, with the losses to find.
func growing() (worlds []world, losses []float64) {
	return []world{
		{name: "1 in 20 hangs, 30% worse", spread: bimodal(0.02, 0.1, 0.05)}, {name: "1 in 10 hangs, 30% worse", spread: bimodal(0.02, 0.1, 0.1)},
		{name: "1 in 20 at 80%, 10% worse", spread: bimodal(0.01, 0.8, 0.05)},
		{name: "normal 5%, 12% worse", spread: normal(0.05)}, {name: "log-normal 10%, 20% worse", spread: logNormal(0.1)},
	}, []float64{0.3, 0.3, 0.1, 0.12, 0.2}
}

// sizes returns the numbers of repetitions of growing worlds.
func sizes() []int { return []int{6, 7, 8, 9, 10, 11, 12, 16, 24} }

// aroundMedian returns the values as factors of their median.
func aroundMedian(values []float64) []float64 {
	median := stats.Median(values)
	factors := make([]float64, 0, len(values))
	for _, value := range values {
		factors = append(factors, value/median)
	}
	return factors
}
