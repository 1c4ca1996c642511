package fio

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/storagebench/storagebench/internal/stats"
)

// Latency has the latencies of one kind of operation, as fio reports them.
type Latency struct {
	Count  int64
	Min    int64
	Max    int64
	totals float64 // sum of all times
	// bins count operations by latency in nanoseconds. Each of fio's bins is up to 1.6% wide.
	bins map[int64]int64
	// vague is how many operations in lastBin may have taken any time up to Max.
	vague int64
}

// lastBin is the middle of fio's last bin. fio counts all longer latencies in it, too (plat_val_to_idx in its stat.c).
const lastBin = 17_112_760_320

// Add merges the times of other operations into these.
func (l *Latency) Add(other Latency) {
	if other.Count == 0 {
		return
	}
	if l.Count == 0 || other.Min < l.Min {
		l.Min = other.Min
	}
	l.Max = max(l.Max, other.Max)
	l.Count += other.Count
	l.vague += other.vague
	l.totals += other.totals
	if l.bins == nil {
		l.bins = make(map[int64]int64, len(other.bins))
	}
	for value, count := range other.bins {
		l.bins[value] += count
	}
}

// Observe adds one operation. Like fio's bins, its bin is at most 1.6% wide.
func (l *Latency) Observe(nanoseconds int64) {
	nanoseconds = max(nanoseconds, 1)
	if l.Count == 0 || nanoseconds < l.Min {
		l.Min = nanoseconds
	}
	if l.bins == nil {
		l.bins = map[int64]int64{}
	}
	l.Max = max(l.Max, nanoseconds)
	l.Count++
	l.totals += float64(nanoseconds)
	l.bins[middleOf(nanoseconds)]++
}

// middleOf returns the middle of the bin of a latency.
func middleOf(nanoseconds int64) int64 {
	if low, width := stats.Bin(nanoseconds); width > 0 {
		return low + width/2
	}
	return nanoseconds
}

// openLast finds out what fio's last bin hides. If Max is beyond its end, one of its operations took Max, and the others are vague.
func (l *Latency) openLast() {
	if low, width := stats.Bin(lastBin); l.bins[lastBin] == 0 || l.Max < low+width {
		return
	}
	l.bins[lastBin]--
	l.bins[middleOf(l.Max)]++
	if l.vague = l.bins[lastBin]; l.vague == 0 {
		delete(l.bins, lastBin)
	}
}

// Vague is how many operations took an unknown time of 17 s or more: neither their percentiles nor their distribution is known.
func (l Latency) Vague() int64 { return l.vague }

// Mean returns the mean in nanoseconds; false if there was no operation.
func (l Latency) Mean() (int64, bool) {
	if l.Count == 0 {
		return 0, false
	}
	return int64(math.Round(l.totals / float64(l.Count))), true
}

// Total is the sum of all times, in nanoseconds.
func (l Latency) Total() int64 { return int64(math.Round(l.totals)) }

// Bin is a latency, and how many operations had it.
type Bin struct {
	Nanoseconds int64
	Count       int64
}

// Bins returns the bins in the order of their latency.
func (l Latency) Bins() []Bin {
	bins := make([]Bin, 0, len(l.bins))
	for value, count := range l.bins {
		bins = append(bins, Bin{min(max(value, l.Min), l.Max), count}) // a bin is named by its middle, which can lie beyond
	}
	slices.SortFunc(bins, func(a, b Bin) int { return cmp.Compare(a.Nanoseconds, b.Nanoseconds) })
	return bins
}

// Ranges visits the bins in the order of their latency, with their ends and the number of their operations. They are cut at the shortest
// and the longest latency. Those of Vague operations have no known end.
func (l Latency) Ranges(visit func(from, to, count int64)) {
	for _, middle := range slices.Sorted(maps.Keys(l.bins)) {
		low, width := stats.Bin(middle)
		from, to := min(max(low, l.Min), l.Max), max(min(low+width, l.Max), l.Min)
		visit(from, to, l.bins[middle])
	}
}

// binned is the number of operations in bins. A percentile is known only if all operations are in them.
func (l Latency) binned() int64 {
	var sum int64
	for _, count := range l.bins {
		sum += count
	}
	return sum
}

// Percentile is the latency that the given share of the operations does not exceed. False if it is not known. A bin only shows that its
// operations took between its two ends, which are 0.8% to 1.6% apart, so the percentile is interpolated by its rank in the bin. Its error
// never exceeds the width of the bin, and is much smaller if latencies vary within the bin as they do around it.
func (l Latency) Percentile(partsPerMillion int64) (int64, bool) {
	if l.Count == 0 || l.binned() != l.Count {
		return 0, false
	}
	rank := max(int64(math.Ceil(float64(l.Count)*float64(partsPerMillion)/1e6)), 1)
	var seen int64
	for _, middle := range slices.Sorted(maps.Keys(l.bins)) {
		count := l.bins[middle]
		if seen+count < rank {
			seen += count
			continue
		}
		if l.vague > 0 && middle >= lastBin {
			return 0, false
		}
		low, width := stats.Bin(middle)
		inside := (float64(rank-seen) - 0.5) / float64(count)
		return min(max(low+int64(math.Round(inside*float64(width))), l.Min), l.Max), true
	}
	return l.Max, true
}

// ShareOver is the share of operations that took longer, in parts per million. False if it is not known.
func (l Latency) ShareOver(nanoseconds int64) (int64, bool) {
	if low, _ := stats.Bin(lastBin); l.Count == 0 || l.binned() != l.Count || l.vague > 0 && nanoseconds >= low && nanoseconds < l.Max {
		return 0, false
	}
	var over int64
	for value, count := range l.bins {
		if min(value, l.Max) > nanoseconds {
			over += count
		}
	}
	return int64(math.Round(float64(over) * 1e6 / float64(l.Count))), true
}
