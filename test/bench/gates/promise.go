package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
)

// promise is a rate that is stated in the docs, with the simulation that measures it.
type promise struct {
	// world and rate name what is simulated and counted.
	world, rate string
	// promised is the largest rate; with atLeast, the smallest one.
	promised float64
	atLeast  bool
	// series marks a long simulation: fewer of them are made.
	series bool
	// happens runs one simulation, and reports whether the event happened.
	happens func(random *rand.Rand) (bool, error)
}

// seriesShare is how many ordinary simulations one series replaces.
const seriesShare = 40

// simulations returns how many simulations to make, given their number for ordinary promises.
func (p promise) simulations(others int) int {
	if p.series {
		return max(10, others/seriesShare)
	}
	return others
}

// measure returns the rate over a number of simulations.
func (p promise) measure(random *rand.Rand, simulations int) (float64, error) {
	count := 0
	for range simulations {
		happened, err := p.happens(random)
		if err != nil {
			return 0, err
		}
		if happened {
			count++
		}
	}
	return float64(count) / float64(simulations), nil
}

// broken reports whether a measured rate breaks the promise by more than chance explains with this number of simulations.
func (p promise) broken(measured float64, simulations int) bool {
	chance := 3 * math.Sqrt(p.promised*(1-p.promised)/float64(simulations))
	return p.atLeast && measured < p.promised-chance || !p.atLeast && measured > p.promised+chance
}

// keep prints the promised and the measured rate of each promise, and returns those that are broken.
func keep(out io.Writer, promises []promise, simulations int, seed uint64) (broken []string, err error) {
	fmt.Fprintf(out, "\n%-52s %-44s %12s %9s\n", "world", "share of", "promised", "measured")
	for i, p := range promises {
		made := p.simulations(simulations)
		measured, err := p.measure(rand.New(rand.NewPCG(seed, uint64(2000+i))), made)
		if err != nil {
			return nil, err
		}
		bound := "at most"
		if p.atLeast {
			bound = "at least"
		}
		fmt.Fprintf(out, "%-52s %-44s %8s %2g%% %8.2f%%\n", p.world, p.rate, bound, 100*p.promised, 100*measured)
		if p.broken(measured, made) {
			broken = append(broken, p.world+": "+p.rate)
		}
	}
	return broken, nil
}
