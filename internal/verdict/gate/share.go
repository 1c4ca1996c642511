package gate

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

// doubt is why the true value may differ from the measured one, and what to do about it.
type doubt struct{ reason, why, remedy string }

var (
	fewOperations = doubt{ReasonTooFewOperations, "fewer than ten operations lie beyond its bound",
		"measure longer, or move the bound to where more operations lie beyond it"}
	powerOfTwo = doubt{ReasonTooCoarse, "the largest piece is only known down to a power of two, and may be up to twice as large",
		"use freeSegments"}
)

// doubtAbout says why there is doubt about one of the metrics, if there is any.
func doubtAbout(metrics ...reference) doubt {
	if slices.ContainsFunc(metrics, reference.roundedDown) {
		return powerOfTwo
	}
	return fewOperations
}

// roundedDown says that the metric is only known down to a power of two.
func (r reference) roundedDown() bool {
	metric, _ := results.LookupMetric(r.metric)
	return metric.PowerOfTwo()
}

// step is what the values of a metric were rounded to.
func (r reference) step() int64 {
	metric, _ := results.LookupMetric(r.metric)
	return metric.Step()
}

// tooCoarse says that a step is so large a part of a value that rounding alone could show a difference of the tolerance.
func (r reference) tooCoarse(least, tolerance float64) bool {
	step := r.step()
	return step > 0 && float64(step)/least > max(tolerance, finest)/2
}

func (d doubt) String() string { return d.why + ": " + d.remedy }

// doubtful are the other values that a share may have if fewer than ten of its operations lie beyond its bound, or within it: the truth may
// be as much as ten operations. A percentile needs ten operations beyond it too.
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

// countOf is the reference to the number of operations that a share is of. False if nothing is doubtful about it.
func countOf(of reference) (reference, bool) {
	at := strings.LastIndexByte(of.metric, '.') + 1
	if own := of.metric[at:]; strings.HasPrefix(own, "shareOver") && strings.HasSuffix(own, "PartsPerMillion") { // of appends
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

// doubts are the values that a median may have as well.
func (m measurements) doubts(of reference, median int64) []int64 {
	if of.roundedDown() {
		return []int64{nextPowerOfTwo(median)}
	}
	operations, is := countOf(of)
	if !is {
		return nil
	}
	count, missing := m.find(operations)
	if missing != "" {
		return nil
	}
	return doubtful(median, count.Median)
}

// nextPowerOfTwo is the largest value that is rounded down to this power of two.
func nextPowerOfTwo(value int64) int64 { return 2*value - min(1, value) }

// ends are the smallest and the largest value that a metric may have in one repetition.
func (e *Evidence) ends(of reference, found []sample) (low, high []int64) {
	counts := map[int32]int64{}
	if operations, is := countOf(of); is {
		counted, _ := e.samples(operations)
		for _, one := range counted {
			counts[one.repetition] = one.value
		}
	}
	rounded := of.roundedDown()
	for _, one := range found {
		least, most := one.value, one.value
		if rounded {
			most = nextPowerOfTwo(one.value)
		}
		if count, known := counts[one.repetition]; known {
			least, most = endsOf(one.value, count)
		}
		low, high = append(low, least), append(high, most)
	}
	return low, high
}

// endsOf are the smallest and the largest value that a share of so many operations may have.
func endsOf(partsPerMillion, operations int64) (least, most int64) {
	all := append(doubtful(partsPerMillion, operations), partsPerMillion)
	return slices.Min(all), slices.Max(all)
}

// span is what a metric may be at least and at most on one side of a comparison. few says that there are too few operations to know it
// exactly.
type span struct {
	low, high float64
	few       bool
}

// spanOf some values, which may each be between low and high.
func spanOf(plain, low, high []int64) span {
	return span{float64(slices.Min(low)), float64(slices.Max(high)), !slices.Equal(plain, low) || !slices.Equal(plain, high)}
}

// span of the samples of a metric.
func (e *Evidence) span(of reference, found []sample) span {
	var plain []int64
	for _, one := range found {
		plain = append(plain, one.value)
	}
	low, high := e.ends(of, found)
	return spanOf(plain, low, high)
}

// span of the stored values of a metric. Without their numbers of operations, which baselines of other gates lack, they are taken as exact.
func (b Earlier) span(of reference) span {
	plain := slices.Concat(b.Values(of.variant, of.phase, of.metric).Values...)
	low, high := slices.Clone(plain), slices.Clone(plain)
	if operations, is := countOf(of); is {
		counts := slices.Concat(b.Values(of.variant, of.phase, operations.metric).Values...)
		for i := 0; len(counts) == len(plain) && i < len(plain); i++ {
			low[i], high[i] = endsOf(plain[i], counts[i])
		}
	}
	return spanOf(plain, low, high)
}
