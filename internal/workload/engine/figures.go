//go:build linux

package engine

import (
	"fmt"
	"maps"
	"math/bits"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

// addFigures adds the measurements of fio to the metrics. Operations that did not happen have no metrics.
func (s *session) addFigures(sum fio.Sum) { s.addFiguresOf("", sum) }

// addFiguresOf adds them under the name of a job.
func (s *session) addFiguresOf(job string, sum fio.Sum) {
	nanoseconds := sum.Duration.Nanoseconds()
	if nanoseconds <= 0 {
		return
	}
	s.metrics[job+"durationNanoseconds"] = nanoseconds
	s.metrics[job+"ioErrors"] = sum.Errors
	if sum.Flush > 0 {
		s.metrics[job+"flushNanoseconds"] = sum.Flush.Nanoseconds()
	}
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
		s.metrics[job+d.bytes], s.metrics[job+d.operations] = d.direction.Bytes, d.direction.Operations
		s.metrics[job+d.prefix+"BytesPerSecond"] = perSecond(d.direction.Bytes, sum.Duration)
		s.metrics[job+d.perSecond] = perSecond(d.direction.Operations, sum.Duration)
		s.addLatency(job+d.prefix, d.direction.Latency)
	}
	if sum.Sync.Count > 0 {
		s.metrics[job+"syncOperations"], s.metrics[job+"syncOperationsPerSecond"] = sum.Sync.Count, perSecond(sum.Sync.Count, sum.Duration)
		s.addLatency(job+"sync", sum.Sync)
	}
}

// lasting returns the total length of the rounds that count.
func (s *session) lasting() (sum time.Duration) {
	for _, one := range s.measured {
		sum += one.Long()
	}
	return sum
}

// dropTotals removes the rates and latencies of all jobs together: for jobs that did not run at the same time, such a rate is not the rate
// of any of them. Only figures that can be added up stay.
func (s *session) dropTotals() {
	maps.DeleteFunc(s.metrics, func(name string, _ int64) bool {
		return strings.HasSuffix(name, "PerSecond") || strings.Contains(name, "Latency")
	})
	s.details.Latencies, s.distributions = nil, nil
}

func (s *session) addLatency(prefix string, latency fio.Latency) {
	if latency.Total() == 0 { // no operations, or their times are unknown
		return
	}
	if mean, known := latency.Mean(); known {
		s.metrics[prefix+"LatencyMeanNanoseconds"] = mean
		s.metrics[prefix+"LatencyMaxNanoseconds"] = latency.Max
	}
	s.addPercentiles(prefix, latency)
	if s.details.Latencies == nil {
		s.details.Latencies = map[string][]fio.Bin{}
	}
	s.details.Latencies[prefix] = latency.Bins()
	if vague := latency.Vague(); vague > 0 {
		s.note("%sLatency: %d operations took from 17 s to %s, and fio does not tell them apart: percentiles among them and the distribution "+
			"are left out", prefix, vague, time.Duration(latency.Max))
		return
	}
	var distribution results.Distribution
	latency.Ranges(distribution.Add)
	s.addDistribution(prefix+"Latency", results.UnitNanoseconds, distribution)
}

// addDistribution adds a distribution. One that does not fit into a document, or that is unknown, is left out with a note.
func (s *session) addDistribution(name, unit string, distribution results.Distribution) {
	if s.distributions == nil {
		s.distributions = map[string]results.Distribution{}
	}
	if _, known := results.LookupDistribution(name); !known || len(s.distributions) >= results.MaxDistributions {
		s.note("the distribution %s is left out", name)
		return
	}
	distribution.Unit = unit
	s.distributions[name] = distribution.Bounded()
}

// addPercentiles adds the percentiles for which there are enough operations, and notes which ones are left out.
func (s *session) addPercentiles(prefix string, latency fio.Latency) {
	for _, one := range stats.Percentiles {
		if latency.Count < stats.NeededFor(one.PartsPerMillion) {
			continue
		}
		if value, known := latency.Percentile(one.PartsPerMillion); known {
			s.metrics[prefix+"Latency"+one.Suffix+"Nanoseconds"] = value
		}
	}
	s.noteFew(prefix, latency.Count)
}

// noteFew notes the percentiles for which there are not enough operations.
func (s *session) noteFew(prefix string, count int64) {
	var left []string
	for _, one := range stats.Percentiles {
		if needed := stats.NeededFor(one.PartsPerMillion); count < needed {
			left = append(left, fmt.Sprintf("%s (%d)", one.Suffix, needed))
		}
	}
	more := "measure longer"
	if s.request.Phase.Measure == nil {
		more = "write more"
	}
	if len(left) > 0 {
		s.note("%sLatency: %d operations are too few for %s: %s", prefix, count, strings.Join(left, ", "), more)
	}
}

// addShares adds the shares of slow operations.
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
