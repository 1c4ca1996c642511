// Command gates simulates experiments whose truth is known, has them judged by the product's own gates, and prints how often the
// verdict is wrong. It fails if that is more often than promised.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

const (
	// mostFalseFailures is the promise on things that are the same.
	mostFalseFailures = 0.01
	// mostFalsePasses is the promise on things that are worse by twice the tolerance.
	mostFalsePasses = 0.05
)

// measuredRuns are figures of runs of the same thing in the lab, by what was measured.
//
//go:embed measured.json
var measuredRuns []byte

func main() {
	experiments := flag.Int("experiments", 20000, "experiments for each row and shift")
	seed := flag.Uint64("seed", 1, "seed of everything random")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	broken, err := table(out, *experiments, *seed)
	if err == nil {
		var others []string
		others, err = keep(out, slices.Concat(baselinePromises(), historyPromises()), *experiments, *seed)
		broken = append(broken, others...)
	}
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case len(broken) > 0:
		fmt.Fprintf(os.Stderr, "the promises are broken: %v\n", broken)
		os.Exit(1)
	}
}

// worlds that the promises are made for, then those that show why the defaults are as they are.
func worlds() (promised, shown []world, err error) {
	const interleaved, sequential = v1alpha1.OrderInterleaved, v1alpha1.OrderSequential
	for _, kind := range []struct {
		name   string
		spread spread
	}{
		{"normal 0.5%", normal(0.005)}, {"normal 2%", normal(0.02)}, {"normal 5%", normal(0.05)}, {"normal 20%", normal(0.2)},
		{"log-normal 10%", logNormal(0.1)}, {"bimodal 2%, 1 in 5 at 80%", bimodal(0.02, 0.8, 0.2)},
		{"bimodal 1%, half at 90%", bimodal(0.01, 0.9, 0.5)},
	} {
		promised = append(promised, world{name: kind.name, spread: kind.spread, order: interleaved},
			world{name: kind.name, spread: kind.spread, order: interleaved, baseline: true})
	}
	promised = append(promised, world{name: "normal 1%, drifting 1% a run", spread: normal(0.01), drift: 0.01, order: interleaved})
	var runs map[string][]float64
	if err := json.Unmarshal(measuredRuns, &runs); err != nil {
		return nil, nil, fmt.Errorf("measured.json: %w", err)
	}
	names := make([]string, 0, len(runs))
	for name := range runs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		factors := aroundMedian(runs[name])
		promised = append(promised, world{name: "measured: " + name, spread: measured(factors), order: interleaved},
			world{name: "measured: " + name, spread: measured(factors), order: interleaved, baseline: true})
	}
	for _, order := range []v1alpha1.RunOrder{interleaved, sequential} {
		shown = append(shown, world{name: "normal 1%, drifting 2% a run", spread: normal(0.01), drift: 0.02, order: order})
	}
	return promised, shown, nil
}

// aroundMedian are the values as factors around their median.
func aroundMedian(values []float64) []float64 {
	sorted := slices.Sorted(slices.Values(values))
	median := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	factors := make([]float64, 0, len(values))
	for _, value := range values {
		factors = append(factors, value/median)
	}
	return factors
}

// table prints a row for each world and returns those that break a promise.
func table(out io.Writer, experiments int, seed uint64) (broken []string, err error) {
	promised, shown, err := worlds()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%d experiments for each figure, %d repetitions, a tolerance of %g%%; shares of verdicts in %%\n\n", experiments,
		repetitions, 100*tolerance)
	fmt.Fprintf(out, "%-38s %-11s | %17s | %17s | %17s | %17s\n", "", "", "the same", "worse by 3%", "worse by 5%", "worse by 10%")
	fmt.Fprintf(out, "%-38s %-11s | %8s %8s | %8s %8s | %8s %8s | %8s %8s\n", "runs", "compared", "Failed", "Passed", "Failed", "Passed",
		"Failed", "Passed", "Failed", "Passed")
	for i, w := range promised {
		failures, passes, err := row(out, w, experiments, rand.New(rand.NewPCG(seed, uint64(i))))
		if err != nil {
			return nil, err
		}
		if failures > mostFalseFailures || passes > mostFalsePasses {
			broken = append(broken, fmt.Sprintf("%s, %s", w.name, w.way()))
		}
	}
	fmt.Fprintf(out,
		"\npromised above: at most %g%% of what is the same Failed, at most %g%% of what is worse by twice the tolerance Passed\n\n",
		100*mostFalseFailures, 100*mostFalsePasses)
	fmt.Fprintf(out, "why variants take turns: the storage drifts, and the runs of one variant come after those of the other\n")
	for i, w := range shown {
		if _, _, err := row(out, w, experiments, rand.New(rand.NewPCG(seed, uint64(1000+i)))); err != nil {
			return nil, err
		}
	}
	return broken, nil
}

// way in which the runs are compared.
func (w world) way() string {
	switch {
	case w.baseline:
		return "baseline"
	case w.order == v1alpha1.OrderSequential:
		return "sequential"
	default:
		return "interleaved"
	}
}

// row prints the verdicts on several shifts, and returns the shares that promises are made of.
func row(out io.Writer, w world, experiments int, random *rand.Rand) (falseFailures, falsePasses float64, err error) {
	fmt.Fprintf(out, "%-38s %-11s", w.name, w.way())
	for _, worse := range []float64{0, 0.03, tolerance, 2 * tolerance} {
		verdicts, err := w.tally(random, worse, experiments)
		if err != nil {
			return 0, 0, err
		}
		failed, passed := float64(verdicts[v1alpha1.VerdictFailed])/float64(experiments),
			float64(verdicts[v1alpha1.VerdictPassed])/float64(experiments)
		fmt.Fprintf(out, " | %8.2f %8.2f", 100*failed, 100*passed)
		switch worse {
		case 0:
			falseFailures = failed
		case 2 * tolerance:
			falsePasses = passed
		}
	}
	fmt.Fprintf(out, "\n")
	return falseFailures, falsePasses, nil
}
