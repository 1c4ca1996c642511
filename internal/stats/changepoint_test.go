package stats

import (
	"math"
	"slices"
	"testing"
)

// history returns a number of values for each level, with noise.
func history(seed uint64, noise float64, each int, levels ...float64) []float64 {
	r := seeded(seed)
	var values []float64
	for _, level := range levels {
		for range each {
			values = append(values, level+noise*r.NormFloat64())
		}
	}
	return values
}

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		history []float64
		want    []int
	}{
		"all equal":             {make([]float64, 40), nil},
		"only noise":            {history(1, 1, 60, 100), nil},
		"a step":                {history(2, 1, 30, 100, 95), []int{30}},
		"there and back":        {history(3, 1, 20, 100, 95, 100), []int{20, 40}},
		"a staircase":           {history(4, 1, 20, 100, 95, 90, 85), []int{20, 40, 60}},
		"a clean step":          {history(5, 0, 10, 100, 99), []int{10}},
		"wilder, not elsewhere": {append(history(6, 0.1, 60, 100), history(7, 5, 60, 100)...), []int{60}},
		"one wild value":        {append(append(history(8, 1, 20, 100), 500), history(9, 1, 20, 100)...), nil},
		"five new at the end":   {append(history(10, 1, 40, 100), history(11, 1, 5, 80)...), []int{40}},
		"three new at the end":  {append(history(10, 1, 90, 100), history(11, 1, 3, 80)...), []int{90}},
		"the shortest":          {[]float64{1, 1, 1, 9, 9, 9}, nil}, // 2 of the 20 ways to split them are as good
	} {
		rule := Changes(1)
		rule.Permutations = 99
		got := must[[]Change](t)(rule.Find(c.history))
		if !slices.EqualFunc(got, c.want, func(change Change, at int) bool { return change.At == at && change.P <= rule.Significance }) {
			t.Errorf("%s: %v", name, got)
		}
	}
	got := must[[]Change](t)(Changes(1).Find(history(5, 0, 10, 100, 99)))
	if want := (Change{At: 10, Before: 100, After: 99, P: 0.002}); len(got) != 1 || got[0] != want { // 1 of 500
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestFindRepeats: a seed gives the same changes each time, Find does not modify its input, and neither unit nor sign matters.
func TestFindRepeats(t *testing.T) {
	values := history(12, 1, 20, 100, 98, 100)
	kept := slices.Clone(values)
	rule := ChangeRule{MinSize: 3, Significance: 0.05, Permutations: 99, Seed: 7}
	first := must[[]Change](t)(rule.Find(values))
	if again := must[[]Change](t)(rule.Find(values)); !slices.Equal(first, again) || !slices.Equal(values, kept) {
		t.Errorf("%v, then %v", first, again)
	}
	for i := range values {
		values[i] *= -1024
	}
	scaled := must[[]Change](t)(rule.Find(values))
	if !slices.EqualFunc(first, scaled, func(a, b Change) bool { return a.At == b.At && a.P == b.P && b.After == -1024*a.After }) {
		t.Errorf("%v, scaled %v", first, scaled)
	}
}

// TestShuffleIsForever: a new release must find the same changes in a history.
func TestShuffleIsForever(t *testing.T) {
	values := []float64{0, 1, 2, 3, 4, 5, 6, 7}
	shuffle(values, newSource(42))
	if want := []float64{5, 4, 2, 1, 0, 3, 6, 7}; !slices.Equal(values, want) {
		t.Errorf("%v", values)
	}
}

// TestFindKeepsItsLevel counts the histories of pure noise in which a change is found: at a level of 10%, about 30 of 300.
func TestFindKeepsItsLevel(t *testing.T) {
	found := 0
	for seed := range uint64(300) {
		rule := ChangeRule{MinSize: 3, Significance: 0.1, Permutations: 19, Seed: seed}
		if len(must[[]Change](t)(rule.Find(history(1000+seed, 1, 20, 100)))) > 0 {
			found++
		}
	}
	if found < 12 || found > 48 { // 3.5 deviations
		t.Errorf("%d of 300", found)
	}
}

// TestSplitPart computes the energy of each split and end from all distances, as a reference.
func TestSplitPart(t *testing.T) {
	r := seeded(14)
	for turn := range 300 {
		values := sample(r, 4+r.IntN(16), turn%2 == 0)
		least := 2 + r.IntN(3)
		var want float64
		for end := 2 * least; end <= len(values); end++ {
			for at := least; at <= end-least; at++ {
				want = max(want, energy(values[:at], values[at:end]))
			}
		}
		at, got := splitPart(values, least)
		if !near(got, want) {
			t.Fatalf("%v: %g, not %g", values, got, want)
		}
		if at == 0 {
			continue
		}
		reached := false
		for end := at + least; end <= len(values); end++ {
			reached = reached || near(got, energy(values[:at], values[at:end]))
		}
		if !reached {
			t.Fatalf("%v: no end makes a split at %d give %g", values, at, got)
		}
	}
}

func energy(x, y []float64) float64 {
	m, n := float64(len(x)), float64(len(y))
	return m * n / (m + n) * (2*distances(x, y)/(m*n) - distances(x, x)/(m*(m-1)) - distances(y, y)/(n*(n-1)))
}

func distances(x, y []float64) (sum float64) {
	for _, a := range x {
		for _, b := range y {
			sum += math.Abs(a - b)
		}
	}
	return sum
}
