package gate

import (
	"strings"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	fewBeyond      = "fewer than ten operations lie beyond its bound"
	moreOperations = "measure longer, or move the bound to where more operations lie beyond it"
)

// doubtful are the values that a share may have as well, if fewer than ten of so many operations lie beyond its bound, or within it:
// the truth may be as much as ten of them. A percentile too needs ten beyond it.
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
		of.metric = of.metric[:at] + "writeLatency." + results.StatisticCount // on several nodes, as the share: of the worst
		return of, true
	}
	derived, err := results.ParseDerived(of.metric)
	if err != nil || !derived.Share || derived.Kind.Whole {
		return reference{}, false
	}
	of.metric = derived.Distribution + "." + results.StatisticCount
	return of, true
}

// doubts are the values that the median of a share may have as well.
func (m measurements) doubts(of reference, median int64) []int64 {
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

// ends are the smallest and the largest value that a metric may have in one repetition.
func (e *Evidence) ends(of reference, found []sample) (low, high []int64) {
	counts := map[int32]int64{}
	if operations, is := countOf(of); is {
		counted, _ := e.samples(operations)
		for _, one := range counted {
			counts[one.repetition] = one.value
		}
	}
	for _, one := range found {
		least, most := one.value, one.value
		if count, known := counts[one.repetition]; known {
			for _, other := range doubtful(one.value, count) {
				least, most = min(least, other), max(most, other)
			}
		}
		low, high = append(low, least), append(high, most)
	}
	return low, high
}
