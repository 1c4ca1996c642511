package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// maxHistory bounds the time that Find takes: each permutation takes n^2 steps.
const maxHistory = 500

// ChangeRule finds the points at which a history of runs changes, by the E-divisive means of Matteson and James (2014).
type ChangeRule struct {
	// MinSize is the least number of values between two changes, at least 2. A change is not found until that many values follow it.
	MinSize int
	// Significance is the largest share of shuffled histories with an equally good split at which a split still counts as a change.
	Significance float64
	Permutations int
	// Seed makes the shuffles the same each time.
	Seed uint64
}

// Changes is the rule for nightly runs: a change can be found after as few as three values, if it is large and the history long.
func Changes(seed uint64) ChangeRule {
	return ChangeRule{MinSize: 3, Significance: 0.01, Permutations: 499, Seed: seed}
}

// Change is a point at which the level of the values changes.
type Change struct {
	// At is the index of the first value after it.
	At int
	// Before and After are the medians since the previous change and until the next one.
	Before, After float64
	// P is the share of the histories, this one and the shuffled ones, that have a split at least as good.
	P float64
}

// Find splits the history where the energy distance between both sides is largest, then splits the part with the best split, and so on,
// until the best split is not significantly better than in shuffled parts: p = (1 + number of shuffles at least as good) / (1 + shuffles).
// It returns an empty list if there is no change.
func (r ChangeRule) Find(history []float64) ([]Change, error) {
	if err := r.check(history); err != nil {
		return nil, err
	}
	source := newSource(r.Seed)
	bounds := []int{0, len(history)}
	significance := map[int]float64{}
	for {
		at, score := r.bestSplit(history, bounds)
		if at == 0 {
			break
		}
		p := r.significance(history, bounds, score, source)
		if p > r.Significance {
			break
		}
		significance[at] = p
		place, _ := slices.BinarySearch(bounds, at)
		bounds = slices.Insert(bounds, place, at)
	}
	changes := make([]Change, 0, len(significance))
	for i := 1; i < len(bounds)-1; i++ {
		before := slices.Sorted(slices.Values(history[bounds[i-1]:bounds[i]]))
		after := slices.Sorted(slices.Values(history[bounds[i]:bounds[i+1]]))
		changes = append(changes, Change{bounds[i], quantile(before, 0.5), quantile(after, 0.5), significance[bounds[i]]})
	}
	return changes, nil
}

func (r ChangeRule) check(history []float64) error {
	if r.MinSize < 2 {
		return fmt.Errorf("a minimum size of %d: a spread needs 2 values", r.MinSize)
	}
	if !(r.Significance > 0 && r.Significance < 1) {
		return fmt.Errorf("a significance of %g: it lies between 0 and 1", r.Significance)
	}
	if err := check(history, 2*min(r.MinSize, maxHistory)); err != nil { // MinSize may be anything
		return err
	}
	if len(history) > maxHistory {
		return fmt.Errorf("a history of %d values: at most %d", len(history), maxHistory)
	}
	if r.Permutations < 1 || 1/float64(1+r.Permutations) > r.Significance {
		return fmt.Errorf("%d permutations never give a significance of %g", r.Permutations, r.Significance)
	}
	return nil
}

// significance is p of the best split. It shuffles only within the parts found so far, so that only a further change can stand out.
func (r ChangeRule) significance(history []float64, bounds []int, score float64, source *rand.PCG) float64 {
	shuffled := slices.Clone(history)
	asGood := 1
	for range r.Permutations {
		for i := 1; i < len(bounds); i++ {
			shuffle(shuffled[bounds[i-1]:bounds[i]], source)
		}
		if _, other := r.bestSplit(shuffled, bounds); other >= score*(1-closeness) {
			asGood++
		}
	}
	return float64(asGood) / float64(1+r.Permutations)
}

func newSource(seed uint64) *rand.PCG { return rand.NewPCG(seed, 0) }

// shuffle is a Fisher-Yates shuffle. It is written here because the changes found in a history must not depend on the version of a library.
func shuffle(values []float64, source *rand.PCG) {
	for i := len(values) - 1; i > 0; i-- {
		j := int(source.Uint64() % uint64(i+1))
		values[i], values[j] = values[j], values[i]
	}
}

// bestSplit is the best split of all parts. at is 0 if nothing differs, or no part is large enough.
func (r ChangeRule) bestSplit(history []float64, bounds []int) (at int, score float64) {
	for i := 1; i < len(bounds); i++ {
		inside, better := splitPart(history[bounds[i-1]:bounds[i]], r.MinSize)
		if better > score {
			at, score = bounds[i-1]+inside, better
		}
	}
	return at, score
}

// splitPart finds the split t, and the end e of the values after it, with the largest energy. If e were always the last value, a change
// that is reverted later would be averaged away. The energy of m = t values x and n = e-t values y is mn/(m+n) (2 mean|x-y| - mean|x-x'| -
// mean|y-y'|), with means over all pairs.
func splitPart(part []float64, least int) (at int, score float64) {
	head := make([]float64, len(part)+1) // sum of the distances among the first i values
	tail := make([]float64, len(part))   // sum of the distances among the values from i on, up to the current end
	for last, value := range part {
		var reach float64
		for from := last - 1; from >= 0; from-- {
			reach += math.Abs(value - part[from])
			tail[from] += reach
		}
		end := last + 1
		head[end] = tail[0]
		for t := least; t <= end-least; t++ {
			m, n := float64(t), float64(end-t)
			between := head[end] - head[t] - tail[t]
			energy := m * n / (m + n) * 2 * (between/(m*n) - head[t]/(m*(m-1)) - tail[t]/(n*(n-1)))
			if energy > score {
				at, score = t, energy
			}
		}
	}
	return at, score
}
