package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// near allows for rounding only.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// sample draws values without ties, or from a few whole numbers, so that nearly all are tied.
func sample(r *rand.Rand, n int, ties bool) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = r.NormFloat64()
		if ties {
			values[i] = float64(r.IntN(5) - 2)
		}
	}
	return values
}

// must returns the value, and fails the test on an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// paired and unpaired are the tests against delta.
func paired(t *testing.T, shifts []float64, delta float64) Tails {
	t.Helper()
	return must[Tails](t)(must[*Ranked](t)(NewPaired(shifts, nil)).Test(delta))
}

func unpaired(t *testing.T, a, b []float64, delta float64) Tails {
	t.Helper()
	return must[Tails](t)(must[*Ranked](t)(NewUnpaired(a, b)).Test(delta))
}

func unpairedShift(t *testing.T, a, b []float64, confidence float64) Shift {
	t.Helper()
	return must[*Ranked](t)(NewUnpaired(a, b)).Shift((1-confidence)/2, (1-confidence)/2)
}

// subsets calls each for every set of this size out of n elements, as bits. A negative size means any size.
func subsets(n, size int, each func(set uint)) {
	for set := range uint(1) << n {
		if size < 0 || bits.OnesCount(set) == size {
			each(set)
		}
	}
}

func holds(set uint, i int) bool { return set>>i&1 == 1 }

func mirrored(values []float64) []float64 {
	mirror := make([]float64, len(values))
	for i, value := range values {
		mirror[i] = -value
	}
	return mirror
}

func sameTails(a, b Tails) bool {
	return near(a.Less, b.Less) && near(a.Greater, b.Greater) && near(a.TwoSided, b.TwoSided)
}
