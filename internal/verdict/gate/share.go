package gate

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

// doubt is the reason why the true value may differ from the measured one, and what to do about it.
type doubt struct{ reason, why, remedy string }

var (
	fewOperations = doubt{ReasonTooFewOperations, "fewer than ten operations lie beyond its bound",
		"measure longer, or move the bound to where more operations lie beyond it"}
	powerOfTwo = doubt{ReasonTooCoarse, "the largest piece is only known down to a power of two, and may be up to twice as large",
		"use freeSegments"}
	binned = doubt{ReasonTooCoarse, "a percentile is only as exact as its bin, which is up to 1.6% wide",
		"use a mean, or a limit that is farther away"}
	wholeSeconds = doubt{ReasonTooCoarse,
		"the duration is the difference of two times in whole seconds, and its end may be known a second late",
		"let it take longer, or use a limit that is farther away"}
)

// doubtAbout says why there is doubt about one of the metrics, if there is any.
func doubtAbout(metrics ...reference) doubt {
	for _, one := range metrics {
		metric, _ := results.LookupMetric(one.metric)
		switch {
		case metric.PowerOfTwo():
			return powerOfTwo
		case metric.Binned():
			return binned
		case metric.Unit == results.UnitNanoseconds:
			return wholeSeconds
		}
	}
	return fewOperations
}

// roundedDown reports whether the metric is only known down to a power of two.
func (r reference) roundedDown() bool {
	metric, _ := results.LookupMetric(r.metric)
	return metric.PowerOfTwo()
}

// endsOf returns the smallest and the largest value that one value of the metric may stand for.
func (r reference) endsOf(value int64) (low, high int64) {
	metric, _ := results.LookupMetric(r.metric)
	return metric.Ends(value)
}

// step is the step to which the values of a metric are rounded.
func (r reference) step() int64 {
	metric, _ := results.LookupMetric(r.metric)
	return metric.Step()
}

// tooCoarse reports whether a step is so large a part of a value that rounding alone could show a difference of the tolerance.
func (r reference) tooCoarse(least, tolerance float64) bool {
	step := r.step()
	return step > 0 && float64(step)/least > max(tolerance, finest)/2
}

func (d doubt) String() string { return d.why + ": " + d.remedy }

// doubtful returns the other values that a share may have if fewer than ten of its operations lie beyond its bound, or within it: in truth,
// it may be as many as ten operations. Likewise, a percentile needs ten operations beyond it.
func doubtful(partsPerMillion, operations int64) []int64 {
	few := stats.ShareOfTen(operations)
	var others []int64
	if partsPerMillion < few {
		others = append(others, few)
	}
	if least := 1_000_000 - few; partsPerMillion > least {
		others = append(others, least)
	}
	return others
}

// countOf returns the reference to the number of operations of a share. It returns false for a metric that such a number casts no doubt on.
func countOf(of reference) (reference, bool) {
	at := strings.LastIndexByte(of.metric, '.') + 1
	if own := of.metric[at:]; strings.HasPrefix(own, "shareOver") && strings.HasSuffix(own, "PartsPerMillion") { // a share of appends
		of.metric = of.metric[:at] + "writeLatency." + results.StatisticCount // on several nodes, that of the worst, as for the share
		return of, true
	}
	derived, err := results.ParseDerived(of.metric)
	if err != nil || !derived.Share || derived.Kind.Whole {
		return reference{}, false
	}
	of.metric = derived.Distribution + "." + results.StatisticCount
	return of, true
}

// doubts returns the other values that a median may have.
func (m measurements) doubts(of reference, median int64) []int64 {
	operations, is := countOf(of)
	if !is {
		low, high := of.endsOf(median)
		return slices.DeleteFunc([]int64{low, high}, func(end int64) bool { return end == median })
	}
	count, missing := m.find(operations)
	if missing != "" {
		return nil
	}
	return doubtful(median, count.Median)
}

// ends returns the smallest and the largest value that a metric may have, for each repetition.
func (e *Evidence) ends(of reference, found []sample) (low, high []int64) {
	counts := map[int32]int64{}
	if operations, is := countOf(of); is {
		counted, _ := e.samples(operations)
		for _, one := range counted {
			counts[one.repetition] = one.value
		}
	}
	for _, one := range found {
		least, most := of.endsOf(one.value)
		if count, known := counts[one.repetition]; known {
			least, most = endsOfShare(one.value, count)
		}
		low, high = append(low, least), append(high, most)
	}
	return low, high
}

// endsOfShare returns the smallest and the largest value that a share of this number of operations may have.
func endsOfShare(partsPerMillion, operations int64) (least, most int64) {
	all := append(doubtful(partsPerMillion, operations), partsPerMillion)
	return slices.Min(all), slices.Max(all)
}

// span holds the smallest and the largest value that a metric may have on one side of a comparison. few is true if there are too few
// operations to know it exactly.
type span struct {
	low, high float64
	few       bool
}

// spanOf returns the span of values that may each be between low and high.
func spanOf(plain, low, high []int64) span {
	return span{float64(slices.Min(low)), float64(slices.Max(high)), !slices.Equal(plain, low) || !slices.Equal(plain, high)}
}

// span returns the span of the samples of a metric. The tolerance already allows for the bins of a percentile.
func (e *Evidence) span(of reference, found []sample) span {
	plain := exact(found)
	low, high := plain, plain
	if _, is := countOf(of); is {
		low, high = e.ends(of, found)
	}
	return spanOf(plain, low, high)
}

// span returns the span of the stored values of a metric. Without their numbers of operations, they count as exact: baselines that were
// accepted for other gates lack these numbers.
func (b Earlier) span(of reference) span {
	plain := slices.Concat(b.Values(of.variant, of.phase, of.metric).Values...)
	low, high := slices.Clone(plain), slices.Clone(plain)
	if operations, is := countOf(of); is {
		counts := slices.Concat(b.Values(of.variant, of.phase, operations.metric).Values...)
		for i := 0; len(counts) == len(plain) && i < len(plain); i++ {
			low[i], high[i] = endsOfShare(plain[i], counts[i])
		}
	}
	return spanOf(plain, low, high)
}
