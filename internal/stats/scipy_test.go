package stats

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// pValues are those of less, greater and two-sided.
type pValues struct{ P [3]float64 }

func (p pValues) want() Tails { return Tails{Less: p.P[0], Greater: p.P[1], TwoSided: p.P[2]} }

// scipy holds values computed by SciPy and others. The file says how they were made.
type scipy struct {
	MannWhitney []struct {
		Before, After []float64
		pValues
	}
	SignedRank []struct {
		Shifts []float64
		pValues
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

// TestRankedAgainstSciPy: for values without ties, the tests for pairs and for samples have the p-values of SciPy. The same holds for joint
// tests with the same pairs as one member, and as two.
func TestRankedAgainstSciPy(t *testing.T) {
	table := readSciPy(t)
	for _, c := range table.MannWhitney {
		if got := unpaired(t, c.Before, c.After, 0); !sameTails(got, c.want()) {
			t.Errorf("%v and %v: %+v, not %v", c.Before, c.After, got, c.P)
		}
	}
	twice := 0
	for _, c := range table.SignedRank {
		if got := paired(t, c.Shifts, 0); !sameTails(got, c.want()) {
			t.Errorf("%v: %+v, not %v", c.Shifts, got, c.P)
		}
		member := memberOf(c.Shifts)
		if got := must[JointTest](t)(Joint([]Member{member}, 0.05)); !near(got.P[0], c.P[1]) {
			t.Errorf("%v, joint: %+v, not %v", c.Shifts, got, c.P)
		}
		if len(c.Shifts) > maxAllFlips {
			continue
		}
		twice++
		if got := must[JointTest](t)(Joint([]Member{member, member}, 0.05)); !near(got.P[0], c.P[1]) || !near(got.P[1], c.P[1]) {
			t.Errorf("%v, joint with itself: %+v, not %v", c.Shifts, got, c.P)
		}
	}
	if len(table.MannWhitney) < 80 || len(table.SignedRank) < 60 || twice < 16 {
		t.Errorf("%d unpaired, %d paired, %d joint: the table has lost values", len(table.MannWhitney), len(table.SignedRank), twice)
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
