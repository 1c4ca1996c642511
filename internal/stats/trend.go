package stats

import (
	"errors"
	"math"
)

const (
	// nightsAYear is the number of times that a history is judged in a year, the period for which the rate of false alarms is stated.
	nightsAYear = 365
	// mostCorrelation bounds the estimate of the correlation: above it, no number of levels says anything.
	mostCorrelation = 0.95
)

// spans are the numbers of last levels that are searched for a change for the worse: the shortest shows a sudden drop, the longest a slow
// decline.
var spans = []int{3, 10, 30}

// Trend compares the newest levels of a series with a fixed reference, its first levels. Levels are logarithms, and higher is worse.
type Trend struct {
	// LevelTest tests the newest levels together, NewestAlone only the last one.
	LevelTest
	NewestAlone LevelTest
	// Reference and Newest are the numbers of levels in the reference and among the newest.
	Reference, Newest int
	// Deviation is the standard deviation of one level. Correlation is that of neighbouring levels, at the upper end of its estimate, which
	// widens the errors.
	Deviation, Correlation float64
	// Last are the newest levels, as differences from the reference.
	Last []float64

	// later are the levels after the reference, as differences from it.
	later []float64
}

// LevelTrend returns the trend from the first to the last levels of a series.
func LevelTrend(levels []float64, reference, newest int) (Trend, error) {
	if err := check(levels, reference+newest); err != nil {
		return Trend{}, err
	}
	if reference < 4 || newest < 1 {
		return Trend{}, errors.New("a trend needs a reference of 4 levels, and a level after it")
	}
	first := levels[:reference]
	middle, n := mean(first), float64(reference)
	trend := Trend{Reference: reference, Newest: newest, Correlation: correlationOf(levels, reference)}
	squares := squaresAround(first)
	for _, level := range levels[reference:] {
		trend.later = append(trend.later, level-middle)
	}
	trend.Last = trend.later[len(trend.later)-newest:]
	// The squares around the mean of correlated values miss the variance of that mean.
	trend.Deviation = math.Sqrt(squares / (n * (1 - meanVariance(reference, trend.Correlation))))
	trend.LevelTest = trend.testOf(reference, newest)
	trend.NewestAlone = trend.testOf(reference, 1)
	return trend, nil
}

// testOf is the test of this number of last levels against a reference of this size.
func (t *Trend) testOf(reference, newest int) LevelTest {
	last := t.later[len(t.later)-newest:]
	return LevelTest{
		Estimate: mean(last),
		Error:    t.Deviation * math.Sqrt(meanVariance(reference, t.Correlation)+meanVariance(newest, t.Correlation)),
		Freedom:  freedom(reference, t.Correlation),
	}
}

// correlationOf is the correlation of neighbouring levels, at the upper end of its estimate. It is taken from blocks of the given size,
// each around its own straight line, because a slow decline is not correlation. Too low a correlation gives false alarms, too high a one
// only waits longer.
func correlationOf(levels []float64, size int) float64 {
	var squares, products, count float64
	for start := 0; start+size <= len(levels); start += size {
		rest := aroundLine(levels[start : start+size])
		for i := range rest {
			squares += rest[i] * rest[i]
			if i > 0 {
				products += rest[i] * rest[i-1]
			}
		}
		count += float64(size)
	}
	if squares == 0 {
		return 0
	}
	// Around a line, the correlation r of n values comes out too low by about (2+4r)/n.
	n := float64(size)
	corrected := min(max((products/squares+2/n)/(1-4/n), 0), mostCorrelation)
	return min(corrected+math.Sqrt((1-corrected*corrected)/count), mostCorrelation)
}

// aroundLine is the distance of values from the straight line through them.
func aroundLine(values []float64) []float64 {
	middle, centre := mean(values), float64(len(values)-1)/2
	var slope, squares float64
	for i, value := range values {
		slope += (float64(i) - centre) * (value - middle)
		squares += (float64(i) - centre) * (float64(i) - centre)
	}
	rest := make([]float64, len(values))
	for i, value := range values {
		rest[i] = value - middle - slope/squares*(float64(i)-centre)
	}
	return rest
}

// meanVariance is the variance of the mean of n consecutive values with variance 1. The correlation of two of them is this correlation to
// the power of their distance.
func meanVariance(n int, correlation float64) float64 {
	sum, power := float64(n), 1.0
	for lag := 1; lag < n; lag++ {
		power *= correlation
		sum += 2 * float64(n-lag) * power
	}
	return sum / float64(n*n)
}

// freedom is the number of independent values that would estimate the variance equally well, less one, and at least 1.
func freedom(n int, correlation float64) float64 {
	squared := correlation * correlation
	return max(1, float64(n)*(1-squared)/(1+squared)-1)
}

// Year returns the chance that one of a year of nightly judgements finds these levels, or worse ones, in a series that is always worse than
// its reference by limit. span is the number of last levels that show it best. Most of the newest levels have to exceed the limit,
// otherwise p is 1: one bad night is not a change, and a bad month that has ended is no longer one.
func (t *Trend) Year(limit float64) (p float64, span int) {
	beyond := 0
	for _, level := range t.Last {
		if level > limit {
			beyond++
		}
	}
	if 2*beyond <= len(t.Last) {
		return 1, t.Newest
	}
	p, span = 1, t.Newest
	for _, length := range spans {
		if length > len(t.later) {
			break
		}
		if at := nightsAYear * t.testOf(t.Reference, length).Above(limit); at < p {
			p, span = at, length
		}
	}
	return p, span
}

// MoreUntil returns the number of further levels like these after which a test at a level finds the newest levels below a limit, with a
// reference of at most mostReference levels. found is false if no number is enough.
func (t *Trend) MoreUntil(limit, level float64, mostReference int) (more int, found bool) {
	for reference := t.Reference + 1; reference <= mostReference; reference++ {
		if test := t.testOf(reference, t.Newest); test.Estimate+test.Reach(level) <= limit {
			return reference - t.Reference, true
		}
	}
	return 0, false
}
