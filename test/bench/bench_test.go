package bench

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/onsi/gomega"
)

// TestSignedRankCut compares the cut with printed tables of the signed-rank test (two-sided, 5%): they give the largest sum that is
// significant.
func TestSignedRankCut(t *testing.T) {
	for n, significant := range map[int]int{6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 12: 13, 15: 25, 20: 52, 25: 89, 30: 137} {
		cut, reached := signedRankCut(n)
		if cut != significant || reached < confidence || reached > confidence+0.025 {
			t.Errorf("%d pairs: %d means are cut off with confidence %.4f, and tables say %d", n, cut, reached, significant)
		}
	}
}

func TestCompare(t *testing.T) {
	second := []float64{100, 101, 99, 100, 102, 98, 100, 101, 99, 100}
	for _, c := range []struct {
		name   string
		times  float64
		within bool
	}{
		{"alike", 1, true}, {"half a percent more", 1.005, true}, {"two percent more", 1.02, false}, {"two percent less", 0.98, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			first := make([]float64, len(second))
			for i := range second {
				first[i] = second[i] * c.times
			}
			ratio, err := Compare(first, second)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			for _, figure := range []float64{ratio.Medians, ratio.Estimate, ratio.Low, ratio.High} {
				g.Expect(figure).To(gomega.BeNumerically("~", c.times, 1e-9))
			}
			g.Expect(ratio.Within(0.01)).To(gomega.Equal(c.within), ratio.String())
		})
	}
}

// TestWithinNeedsTheWholeInterval: equal medians of scattered figures prove nothing.
func TestWithinNeedsTheWholeInterval(t *testing.T) {
	g := gomega.NewWithT(t)
	ratio, err := Compare([]float64{90, 110, 100, 95, 105, 100}, []float64{110, 90, 100, 105, 95, 100})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(ratio.Medians).To(gomega.Equal(1.0))
	g.Expect(ratio.Within(0.01)).To(gomega.BeFalse(), ratio.String())
}

// TestIntervalCovers: the interval contains the true ratio about as often as promised.
func TestIntervalCovers(t *testing.T) {
	const times, pairs, truth = 4000, 10, 1.03
	random := rand.New(rand.NewPCG(4711, 0))
	var covered int
	for range times {
		first, second := make([]float64, pairs), make([]float64, pairs)
		for i := range pairs {
			second[i] = 100 * math.Exp(0.02*random.NormFloat64())
			first[i] = truth * second[i] * math.Exp(0.01*random.NormFloat64())
		}
		ratio, err := Compare(first, second)
		if err != nil {
			t.Fatal(err)
		}
		if ratio.Low <= truth && truth <= ratio.High {
			covered++
		}
	}
	if share := float64(covered) / times; share < 0.94 || share > 0.965 {
		t.Errorf("the interval covers the truth in %.1f%% of the cases instead of 95.1%%", 100*share)
	}
}

func TestCompareRefuses(t *testing.T) {
	good := []float64{1, 1, 1, 1, 1, 1}
	for name, pair := range map[string][2][]float64{
		"no pairs": {nil, nil}, "five pairs": {good[:5], good[:5]}, "not paired": {good, append([]float64{1}, good...)},
		"nothing measured": {good, {1, 1, 0, 1, 1, 1}}, "no number": {{1, 1, math.NaN(), 1, 1, 1}, good},
		"infinite": {good, {1, 1, math.Inf(1), 1, 1, 1}},
	} {
		if ratio, err := Compare(pair[0], pair[1]); err == nil {
			t.Errorf("%s: got %v", name, ratio)
		}
	}
}

func TestPoints(t *testing.T) {
	for _, c := range []struct {
		limit, measured float64
		within          bool
	}{
		{2000, 2000, true}, {2000, 2039, true}, {2000, 1961, true}, {2000, 2041, false}, {2000, 1959, false}, {2000, 0, false}, {0, 2000, false},
		{2000, math.NaN(), false},
	} {
		point := Point{Name: "oltp", Unit: "IOPS", Limit: c.limit, Measured: c.measured}
		if point.Within(0.02) != c.within {
			t.Errorf("%+v: within 2%% is %t, and should not be", point, !c.within)
		}
		if table := Table([]Point{point}, 0.02); strings.Contains(table, "OFF") == c.within {
			t.Errorf("the table does not say how it is:\n%s", table)
		}
	}
}
