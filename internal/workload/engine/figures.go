//go:build linux

package engine

import (
	"math/bits"
	"time"

	"github.com/storagebench/storagebench/internal/fio"
)

// addFigures puts what fio has measured into the metrics. What did not happen has no figures.
func (s *session) addFigures(sum fio.Sum) {
	nanoseconds := sum.Duration.Nanoseconds()
	if nanoseconds <= 0 {
		return
	}
	s.metrics["durationNanoseconds"] = nanoseconds
	s.metrics["ioErrors"] = sum.Errors
	for _, d := range []struct {
		direction                            fio.Direction
		prefix, bytes, operations, perSecond string
	}{
		{sum.Read, "read", "readBytes", "readOperations", "readOperationsPerSecond"},
		{sum.Write, "write", "writtenBytes", "writeOperations", "writeOperationsPerSecond"},
	} {
		if d.direction.Operations == 0 {
			continue
		}
		s.metrics[d.bytes], s.metrics[d.operations] = d.direction.Bytes, d.direction.Operations
		s.metrics[d.prefix+"BytesPerSecond"] = perSecond(d.direction.Bytes, sum.Duration)
		s.metrics[d.perSecond] = perSecond(d.direction.Operations, sum.Duration)
		s.addLatency(d.prefix, d.direction.Latency)
	}
	if sum.Sync.Count > 0 {
		s.metrics["syncOperations"], s.metrics["syncOperationsPerSecond"] = sum.Sync.Count, perSecond(sum.Sync.Count, sum.Duration)
		s.addLatency("sync", sum.Sync)
	}
}

func (s *session) addLatency(prefix string, latency fio.Latency) {
	if mean, known := latency.Mean(); known {
		s.metrics[prefix+"LatencyMeanNanoseconds"] = mean
		s.metrics[prefix+"LatencyMaxNanoseconds"] = latency.Max
	}
	for suffix, share := range map[string]int64{"P50": 500_000, "P95": 950_000, "P99": 990_000, "P999": 999_000} {
		if value, known := latency.Percentile(share); known {
			s.metrics[prefix+"Latency"+suffix+"Nanoseconds"] = value
		}
	}
	if s.details.Latencies == nil {
		s.details.Latencies = map[string][]fio.Bin{}
	}
	s.details.Latencies[prefix] = latency.Bins()
}

// addShares of slow operations.
func (s *session) addShares(latency fio.Latency) {
	for name, limit := range map[string]time.Duration{
		"shareOver1MillisecondPartsPerMillion": time.Millisecond, "shareOver10MillisecondsPartsPerMillion": 10 * time.Millisecond,
		"shareOver20MillisecondsPartsPerMillion": 20 * time.Millisecond,
	} {
		if share, known := latency.ShareOver(limit.Nanoseconds()); known {
			s.metrics[name] = share
		}
	}
}

// perSecond rounds to the nearest whole number, without overflow.
func perSecond(count int64, during time.Duration) int64 {
	if count <= 0 || during <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(count), uint64(time.Second))
	low, carry := bits.Add64(low, uint64(during)/2, 0)
	if high += carry; high >= uint64(during) {
		return 0
	}
	quotient, _ := bits.Div64(high, low, uint64(during))
	return int64(min(quotient, 1<<63-1))
}
