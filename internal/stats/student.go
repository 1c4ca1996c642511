package stats

import "math"

// LevelTest compares the mean level of some experiments with that of others, by Student's t. Levels are logarithms. The differences between
// experiments should be about normally distributed: a handful of them cannot show whether they are.
type LevelTest struct {
	// Estimate is the difference, and Error its standard error.
	Estimate, Error float64
	// Freedom is the number of degrees of freedom that the error was estimated with.
	Freedom float64
}

// Above is the chance of this estimate or a higher one, if the true difference is delta.
func (t LevelTest) Above(delta float64) float64 { return studentAbove(t.distance(delta), t.Freedom) }

// Below is the chance of this estimate or a lower one, if the true difference is delta.
func (t LevelTest) Below(delta float64) float64 { return studentAbove(-t.distance(delta), t.Freedom) }

// distance is the distance from delta in standard errors. Equal numbers have a distance of 0, even if the error is 0.
func (t LevelTest) distance(delta float64) float64 {
	apart := t.Estimate - delta
	if math.Abs(apart) <= closeness*max(1, math.Abs(delta)) {
		return 0
	}
	return apart / t.Error
}

// Shift is the estimate with the interval that leaves out the same chance on each side.
func (t LevelTest) Shift(confidence float64) Shift {
	reach := t.Error * studentQuantile((1-confidence)/2, t.Freedom)
	return Shift{t.Estimate, Interval{Known: true, Low: t.Estimate - reach, High: t.Estimate + reach, Confidence: confidence}}
}

// Reach is the least distance of the estimate from a limit at which a one-sided test at a level rejects the limit.
func (t LevelTest) Reach(level float64) float64 { return t.Error * studentQuantile(level, t.Freedom) }

// studentAbove is the share of Student's distribution above x.
func studentAbove(x, freedom float64) float64 {
	if math.IsNaN(x) || !(freedom > 0) {
		return 1
	}
	tail := incompleteBeta(freedom/2, 0.5, freedom/(freedom+x*x)) / 2
	if x < 0 {
		return 1 - tail
	}
	return tail
}

// studentQuantile is the value above which this share of the distribution lies. The share has to be below a half.
func studentQuantile(share, freedom float64) float64 {
	low, high := 0.0, 1.0
	for studentAbove(high, freedom) > share && high < largest {
		high *= 2
	}
	for high-low > closeness*high {
		middle := (low + high) / 2
		if studentAbove(middle, freedom) > share {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// incompleteBeta is the regularised incomplete beta function, by its continued fraction, with Lentz's algorithm.
func incompleteBeta(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - incompleteBeta(b, a, 1-x)
	}
	logA, _ := math.Lgamma(a)
	logB, _ := math.Lgamma(b)
	logAB, _ := math.Lgamma(a + b)
	front := math.Exp(logAB-logA-logB+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	apartFromZero := func(value float64) float64 {
		if math.Abs(value) < tiny {
			return tiny
		}
		return value
	}
	c, d, fraction := 1.0, 1/apartFromZero(1-(a+b)*x/(a+1)), 0.0
	fraction = d
	for m := 1.0; m <= 500; m++ {
		for _, numerator := range []float64{
			m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)), -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1)),
		} {
			d = 1 / apartFromZero(1+numerator*d)
			c = apartFromZero(1 + numerator/c)
			fraction *= c * d
		}
		if math.Abs(c*d-1) < 1e-14 {
			break
		}
	}
	return front * fraction
}
