package postgres

import (
	"math"
	"math/bits"
)

const (
	// exactBits: latencies below 2^exactBits microseconds (32.768 ms) have a bucket each. Above, a bucket is at most 2^-14 of its
	// value wide (61 ppm). 442,368 buckets hold any number of latencies up to 2^40 microseconds in 3.4 MiB.
	exactBits  = 15
	halfRange  = 1 << (exactBits - 1)
	maxBits    = 40
	maxLatency = 1<<maxBits - 1
	buckets    = 1<<exactBits + halfRange*(maxBits-exactBits)
)

// histogram counts latencies in microseconds, the unit of pgbench's logs.
type histogram struct {
	counts   []uint64
	total    uint64
	sum      float64 // exact up to 2^53 microseconds, 285 years
	mean, m2 float64 // Welford
	largest  int64
}

func newHistogram() *histogram { return &histogram{counts: make([]uint64, buckets)} }

func (h *histogram) add(microseconds int64) {
	microseconds = min(max(microseconds, 0), maxLatency)
	h.counts[bucketOf(microseconds)]++
	h.total++
	h.largest = max(h.largest, microseconds)
	value := float64(microseconds)
	h.sum += value
	delta := value - h.mean
	h.mean += delta / float64(h.total)
	h.m2 += delta * (value - h.mean)
}

func bucketOf(microseconds int64) int {
	if microseconds < 1<<exactBits {
		return int(microseconds)
	}
	shift := bits.Len64(uint64(microseconds)) - exactBits
	return 1<<exactBits + (shift-1)*halfRange + int(microseconds>>shift) - halfRange
}

// bucketEnd is the largest latency of a bucket.
func bucketEnd(bucket int) int64 {
	if bucket < 1<<exactBits {
		return int64(bucket)
	}
	shift := (bucket-1<<exactBits)/halfRange + 1
	first := int64((bucket-1<<exactBits)%halfRange + halfRange)
	return (first+1)<<shift - 1
}

// quantile is the smallest latency that perMille of all do not exceed (nearest rank), never less than the true one.
func (h *histogram) quantile(perMille uint64) int64 {
	if h.total == 0 {
		return 0
	}
	rank := max(1, h.total/1000*perMille+(h.total%1000*perMille+999)/1000)
	var seen uint64
	for bucket, count := range h.counts {
		if seen += count; seen >= rank {
			return min(bucketEnd(bucket), h.largest)
		}
	}
	return h.largest
}

func (h *histogram) average() float64 {
	if h.total == 0 {
		return 0
	}
	return h.sum / float64(h.total)
}

// deviation is the standard deviation of the whole population, as pgbench computes it.
func (h *histogram) deviation() float64 {
	if h.total == 0 {
		return 0
	}
	return math.Sqrt(h.m2 / float64(h.total))
}

// coarse counts the latencies below powers of two microseconds, for a chart.
func (h *histogram) coarse() []Bucket {
	var result []Bucket
	for bucket, count := range h.counts {
		if count == 0 {
			continue
		}
		below := int64(1) << bits.Len64(uint64(bucketEnd(bucket)))
		if last := len(result) - 1; last >= 0 && result[last].BelowNanoseconds == below*1000 {
			result[last].Transactions += int64(count)
			continue
		}
		result = append(result, Bucket{BelowNanoseconds: below * 1000, Transactions: int64(count)})
	}
	return result
}
