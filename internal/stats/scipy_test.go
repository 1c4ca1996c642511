package stats

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// scipy are values by SciPy and others; the file says how they were made.
type scipy struct {
	MannWhitney []struct {
		Kind          string
		Before, After []float64
		P             [3]float64
	}
	SignFlip []struct {
		Shifts []float64
		Delta  float64
		P      [3]float64
	}
	SignedRank []struct {
		Shifts []float64
		P      [3]float64
	}
	Describe []struct {
		Values                  []float64
		Share, Quantile, Median float64
	}
	Split []struct {
		Values    []float64
		Least, At int
		Score     float64
	}
}

func readSciPy(t *testing.T) scipy {
	t.Helper()
	text, err := os.ReadFile("testdata/scipy.json")
	if err != nil {
		t.Fatal(err)
	}
	var table scipy
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTestsAgainstSciPy(t *testing.T) {
	table := readSciPy(t)
	for _, c := range table.MannWhitney {
		got := must[MannWhitneyTest](t)(MannWhitney(c.Before, c.After, 0))
		if want := (Tails{Less: c.P[0], Greater: c.P[1], TwoSided: c.P[2]}); !sameTails(got.Tails, want) || got.Exact == (c.Kind == "normal") {
			t.Errorf("%s %v and %v: %+v, not %+v", c.Kind, c.Before, c.After, got, want)
		}
	}
	for _, c := range table.SignFlip {
		got := must[SignFlipTest](t)(SignFlip(c.Shifts, c.Delta))
		if want := (Tails{Less: c.P[0], Greater: c.P[1], TwoSided: c.P[2]}); !sameTails(got.Tails, want) {
			t.Errorf("%v against %g: %+v, not %+v", c.Shifts, c.Delta, got, want)
		}
	}
	for _, c := range table.SignedRank {
		below, w := signedRanksBelow(len(c.Shifts)), 0
		for i, a := range c.Shifts { // W is the number of Walsh averages above 0
			for _, b := range c.Shifts[i:] {
				if a+b > 0 {
					w++
				}
			}
		}
		greater := 1.0
		if w > 0 {
			greater = 1 - below[w-1]
		}
		if !near(below[w], c.P[0]) || !near(greater, c.P[1]) || !near(min(1, 2*below[w], 2*greater), c.P[2]) {
			t.Errorf("%v: W = %d, P(W <= w) = %g, P(W >= w) = %g, not %v", c.Shifts, w, below[w], greater, c.P)
		}
	}
}

func TestQuantilesAgainstNumPy(t *testing.T) {
	for _, c := range readSciPy(t).Describe {
		sorted := slices.Sorted(slices.Values(c.Values))
		if at, middle := quantile(sorted, c.Share), quantile(sorted, 0.5); !near(at, c.Quantile) || !near(middle, c.Median) {
			t.Errorf("%v at %g: %g, %g, not %+v", c.Values, c.Share, at, middle, c)
		}
	}
}

func TestSplitsAgainstECP(t *testing.T) {
	for _, c := range readSciPy(t).Split {
		if at, score := splitPart(c.Values, c.Least); at != c.At || !near(score, c.Score) {
			t.Errorf("%v: %d with %g, not %d with %g", c.Values, at, score, c.At, c.Score)
		}
	}
}
