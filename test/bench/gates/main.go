// Command gates simulates experiments whose truth is known, judges them with the product's own gates, and prints how often the verdict is
// wrong next to how often it may be. It fails if a verdict is wrong more often than promised, beyond the error of the simulation.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func main() {
	experiments := flag.Int("experiments", 6000, "experiments for each figure")
	seed := flag.Uint64("seed", 1, "seed of everything random")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	broken, err := report(out, *experiments, *seed)
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

// table prints figures next to promises, and collects the broken promises.
type table struct {
	out         io.Writer
	experiments int
	broken      []string
}

// error returns the error of a simulated share. It is so large that of all tables with hundreds of figures, only one in a hundred has a
// figure that is further off.
func (t *table) error(share float64) float64 {
	return 4*math.Sqrt(share*(1-share)/float64(t.experiments)) + 3/float64(t.experiments)
}

// atMost prints a share and its promised maximum.
func (t *table) atMost(what string, share, promised float64) {
	mark := " "
	if share > promised+t.error(promised)+1e-9 {
		mark = "!"
		t.broken = append(t.broken, fmt.Sprintf("%s: %.2f%%, promised %.2f%%", what, 100*share, 100*promised))
	}
	fmt.Fprintf(t.out, " | %6.2f%s≤%4.1f", 100*share, mark, 100*promised)
}

// report prints all tables and returns the broken promises.
func report(out io.Writer, experiments int, seed uint64) ([]string, error) {
	t := &table{out: out, experiments: experiments}
	all, err := comparisons()
	if err != nil {
		return nil, err
	}
	twice, err := adaptive()
	if err != nil {
		return nil, err
	}
	s := &simulation{experiments: experiments, seed: seed}
	sections := []func(){
		s.comparisons(t, "one comparison", all), s.comparisons(t, "adaptive: judged after 6 repetitions, and after 12 if undecided", twice),
		s.families(t, families()), s.bounds(t, "bounds", bounded()),
		s.growth(t), s.order(t), s.bounds(t, "ratios of phases", divided()),
	}
	if err := s.run(); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%d experiments for each figure, %d repetitions unless named, a tolerance of %g%%; shares of experiments in %%.\n"+
		"≤ is followed by what is promised at most, ! marks what is broken.\n", experiments, repetitions, 100*tolerance)
	for _, section := range sections {
		section()
	}
	return t.broken, nil
}

// way returns how the runs are compared.
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
