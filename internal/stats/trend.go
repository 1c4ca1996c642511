package stats

import (
	"errors"
	"math"
)

const (
	// nightsAYear is how often a history is judged in the year that its rate of false alarms is stated for.
	nightsAYear = 365
	// mostCorrelation bounds the estimate: beyond it no number of levels says anything.
	mostCorrelation = 0.95
)

// spans are the numbers of last levels in which a change for the worse is looked for: a drop in the shortest, a slow decline in the
// longest.
var spans = []int{3, 10, 30}

// Trend compares the newest levels of a series with a fixed reference, which are its first ones. Levels are logarithms, and more is
// worse.
type Trend struct {
	// LevelTest of the newest levels together, NewestAlone of the last one.
	LevelTest
	NewestAlone LevelTest
	// Reference and Newest are the numbers of levels in the reference and among the newest.
	Reference, Newest int
	// Deviation of one level. Correlation of neighbours is the upper end of what the reference allows, which widens the errors.
	Deviation, Correlation float64
	// Last are the newest levels, as differences from the reference.
	Last []float64

	// later are the levels after the reference, as differences from it.
	later []float64
}

// LevelTrend makes a trend of the first and the last levels of a series.
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

// testOf is the test of the last levels against a reference of some size.
func (t *Trend) testOf(reference, newest int) LevelTest {
	last := t.later[len(t.later)-newest:]
	return LevelTest{
		Estimate: mean(last),
		Error:    t.Deviation * math.Sqrt(meanVariance(reference, t.Correlation)+meanVariance(newest, t.Correlation)),
		Freedom:  freedom(reference, t.Correlation),
	}
}

// correlationOf is the upper end of the correlation of neighbours. It is taken from blocks of a size, each around its own line: a slow
// decline is not correlation. Too low a correlation gives false alarms, too high a one only waits longer.
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

// meanVariance is the variance of the mean of n neighbours with variance 1 and this correlation, which falls as a power of the distance.
func meanVariance(n int, correlation float64) float64 {
	sum, power := float64(n), 1.0
	for lag := 1; lag < n; lag++ {
		power *= correlation
		sum += 2 * float64(n-lag) * power
	}
	return sum / float64(n*n)
}

// freedom is how many independent values would estimate the variance as well, less one.
func freedom(n int, correlation float64) float64 {
	squared := correlation * correlation
	return max(1, float64(n)*(1-squared)/(1+squared)-1)
}

// Year is the chance that one of a year of nightly judgements finds such levels, or worse ones, in a series that is always worse than its
// reference by limit. span is the number of last levels that show it best. Most of the newest levels have to exceed the limit: one bad
// night is no change, and a bad month that has ended is none any more.
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

// MoreUntil is how many more levels like these it takes until a test at a level finds the newest levels below a limit, with the reference
// limited to a size. False if no number is enough.
func (t *Trend) MoreUntil(limit, level float64, mostReference int) (more int, found bool) {
	for reference := t.Reference + 1; reference <= mostReference; reference++ {
		if test := t.testOf(reference, t.Newest); test.Estimate+test.Reach(level) <= limit {
			return reference - t.Reference, true
		}
	}
	return 0, false
}
