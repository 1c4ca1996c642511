package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestStudent compares with tables and closed forms: with 1 degree of freedom it is the Cauchy distribution.
func TestStudent(t *testing.T) {
	for _, c := range []struct{ x, freedom, above float64 }{
		{6.313751514675, 1, 0.05}, {1, 1, 0.25}, {-1, 1, 0.75}, {2.919985580354, 2, 0.05}, {1.729132811521, 19, 0.05}, {2.861, 19, 0.005},
		{4.4177, 19, 0.000148}, {0, 5, 0.5}, {1.959963984540, 1e7, 0.025}, {math.Inf(1), 3, 0}, {math.Inf(-1), 3, 1},
	} {
		if got := studentAbove(c.x, c.freedom); math.Abs(got-c.above) > 2e-5 {
			t.Errorf("above %g with %g degrees: %g, want %g", c.x, c.freedom, got, c.above)
		}
		if c.above > 0 && c.above < 0.5 {
			if got := studentQuantile(c.above, c.freedom); math.Abs(got-c.x) > 0.02 {
				t.Errorf("quantile of %g with %g degrees: %g, want %g", c.above, c.freedom, got, c.x)
			}
		}
	}
	if studentAbove(math.NaN(), 3) != 1 || studentAbove(3, 0) != 1 {
		t.Error("what is not known is significant")
	}
}

func TestLevelTest(t *testing.T) {
	test := LevelTest{Estimate: 0.1, Error: 0.02, Freedom: 1}
	if got := test.Above(0.08); math.Abs(got-0.25) > 1e-12 {
		t.Errorf("above: %g", got)
	}
	if got := test.Below(0.12); math.Abs(got-0.25) > 1e-12 {
		t.Errorf("below: %g", got)
	}
	interval := test.Shift(0.9).Interval
	if !interval.Known || math.Abs(interval.High-0.1-0.02*6.3137515) > 1e-6 || math.Abs(interval.High+interval.Low-0.2) > 1e-12 {
		t.Errorf("%+v", interval)
	}
	exact := LevelTest{Estimate: 0.1, Freedom: 3}
	if exact.Above(0.05) != 0 || exact.Above(0.1) != 0.5 || exact.Above(0.2) != 1 {
		t.Error("without any error, the estimate decides")
	}
}

// correlated returns values around 0 with standard deviation 1, whose neighbours have this correlation.
func correlated(random *rand.Rand, n int, correlation float64) []float64 {
	values, value := make([]float64, n), random.NormFloat64()
	for i := range values {
		values[i] = value
		value = correlation*value + math.Sqrt(1-correlation*correlation)*random.NormFloat64()
	}
	return values
}

// TestTrendKnowsItsError: the error is about the scatter of the estimates, also for correlated levels, and rarely much less.
func TestTrendKnowsItsError(t *testing.T) {
	for _, correlation := range []float64{0, 0.3, 0.6} {
		random := rand.New(rand.NewPCG(1, 2))
		var squares, errors float64
		const tries = 2000
		for range tries {
			trend, err := LevelTrend(correlated(random, 60, correlation), 30, 3)
			if err != nil {
				t.Fatal(err)
			}
			squares += trend.Estimate * trend.Estimate
			errors += trend.Error
		}
		if scatter, said := math.Sqrt(squares/tries), errors/tries; said < 0.98*scatter || said > 1.5*scatter {
			t.Errorf("correlation %g: scatter %g, error %g", correlation, scatter, said)
		}
	}
}

func TestTrendFindsDeclines(t *testing.T) {
	levels := make([]float64, 90)
	for i := range levels {
		levels[i] = 0.01*float64(i*7%5-2)/2 + 0.002*max(0, float64(i-40))
	}
	trend, err := LevelTrend(levels, 30, 3)
	if err != nil {
		t.Fatal(err)
	}
	if p, span := trend.Year(0.05); p > 1e-3 || span == 3 {
		t.Errorf("p = %g by %d levels", p, span)
	}
	if p, _ := trend.Year(0.2); p != 1 {
		t.Errorf("p = %g of a limit that was not reached", p)
	}
	recovered := append(append([]float64{}, levels...), 0, 0, 0)
	if trend, err = LevelTrend(recovered, 30, 3); err != nil {
		t.Fatal(err)
	}
	if p, _ := trend.Year(0.05); p != 1 {
		t.Errorf("p = %g of a decline that is over", p)
	}
	if _, err := LevelTrend(levels[:12], 10, 3); err == nil {
		t.Error("a trend of too few levels")
	}
	if _, err := LevelTrend(levels, 3, 3); err == nil {
		t.Error("a reference of three levels")
	}
}
