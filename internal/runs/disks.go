package runs

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
)

// minCoveredPercent is the part of the measured time that samples must cover for disk metrics.
const minCoveredPercent = 50

// metricGang is the metric that ZFS counts for all pools of the node together.
const metricGang = "gangBlocks"

// diskMetrics are the metrics of a pool and its disks during a measured phase. Counters that an OpenZFS version lacks are absent. Beside an
// operation, the disks do not work only for the workload, so the metrics that relate their work to the workload are left out.
func diskMetrics(d poolseries.Document, phase results.PhaseDocument, beside bool) map[string]int64 {
	const partsPerMillionPerPercent = 10_000
	metrics := map[string]int64{}
	if d.After != nil {
		metrics["poolAllocatedBytes"] = d.After.AllocatedBytes
		if percent := d.After.FragmentationPercent; percent != nil {
			metrics["freeSpaceFragmentationPartsPerMillion"] = *percent * partsPerMillionPerPercent
		}
	}
	if groups := d.TransactionGroups; groups != nil {
		metrics["longestTransactionGroupNanoseconds"] = groups.LongestSyncNanoseconds
	}
	if d.Gang != nil {
		metrics[metricGang] = d.Gang.Writes
	}
	if share, any := smallReads(d); any {
		metrics["smallDiskReadsPartsPerMillion"] = share
	}
	if disks, elapsed, whole := disksWithin(d, phase.Times()); elapsed > 0 {
		rates(metrics, disks, elapsed)
		if !beside {
			relate(metrics, disks, elapsed, phase.Metrics, whole)
		}
	}
	return metrics
}

// relate adds the metrics for the work of the disks for each read, write and transaction of the workload.
func relate(metrics map[string]int64, disks poolseries.Counters, elapsed time.Duration, own map[string]int64, whole time.Duration) {
	inflation(metrics, "diskReadsPerReadMilli", perSecond(disks.ReadOperations, elapsed), perSecond(own["readOperations"], whole))
	inflation(metrics, "diskWritesPerWriteMilli", perSecond(disks.WriteOperations, elapsed), perSecond(own["writeOperations"], whole))
	if transactions := perSecond(own["transactions"], whole); transactions > 0 {
		metrics["diskReadBytesPerTransaction"] = int64(math.Round(perSecond(disks.ReadBytes, elapsed) / transactions))
		metrics["diskWrittenBytesPerTransaction"] = int64(math.Round(perSecond(disks.WriteBytes, elapsed) / transactions))
	}
}

// inflation adds the number of requests or bytes of the disks per 1000 of the workload. The samples do not cover all of the workload's
// time, so it compares rates instead of counts, and before they are rounded: an aged disk may do only three reads a second. Both rates
// refer to the same wall-clock time, because the workload's own duration excludes the pauses between its jobs, in which the disks rest too.
func inflation(metrics map[string]int64, name string, disks, workload float64) {
	if workload > 0 {
		metrics[name] = int64(math.Round(disks * 1000 / workload))
	}
}

func perSecond(count int64, during time.Duration) float64 {
	if during <= 0 {
		return 0
	}
	return float64(count) / during.Seconds()
}

// disksWithin adds up the work of the disks in some intervals, and returns the time covered by samples and the total time. Only samples
// within the intervals count: an earlier sample would make the disks look less busy.
func disksWithin(d poolseries.Document, times []results.Interval) (sum poolseries.Counters, elapsed, whole time.Duration) {
	for _, interval := range times {
		whole += interval.To.Sub(interval.From)
	}
	for _, vdev := range d.Vdevs {
		if !vdev.Disk || len(vdev.ReadOperations) != len(d.Series.OffsetMilliseconds) {
			continue
		}
		elapsed = 0
		for _, interval := range times {
			first, last := samplesWithin(d, interval)
			if last <= first {
				continue
			}
			sum.ReadOperations += vdev.ReadOperations[last] - vdev.ReadOperations[first]
			sum.WriteOperations += vdev.WriteOperations[last] - vdev.WriteOperations[first]
			sum.ReadBytes += vdev.ReadBytes[last] - vdev.ReadBytes[first]
			sum.WriteBytes += vdev.WriteBytes[last] - vdev.WriteBytes[first]
			elapsed += time.Duration(d.Series.OffsetMilliseconds[last]-d.Series.OffsetMilliseconds[first]) * time.Millisecond
		}
	}
	if elapsed < whole*minCoveredPercent/100 {
		return poolseries.Counters{}, 0, whole
	}
	return sum, elapsed, whole
}

// samplesWithin returns the first and the last sample within an interval.
func samplesWithin(d poolseries.Document, interval results.Interval) (first, last int) {
	first, last = len(d.Series.OffsetMilliseconds), -1
	for i, offset := range d.Series.OffsetMilliseconds {
		at := d.StartedAt.Add(time.Duration(offset) * time.Millisecond)
		if at.Before(interval.From) || at.After(interval.To) {
			continue
		}
		first, last = min(first, i), i
	}
	return first, last
}

func rates(metrics map[string]int64, c poolseries.Counters, elapsed time.Duration) {
	rate := func(count int64) int64 { return int64(math.Round(perSecond(count, elapsed))) }
	metrics["diskReadOperationsPerSecond"] = rate(c.ReadOperations)
	metrics["diskWriteOperationsPerSecond"] = rate(c.WriteOperations)
	metrics["diskReadBytesPerSecond"] = rate(c.ReadBytes)
	metrics["diskWrittenBytesPerSecond"] = rate(c.WriteBytes)
	if c.ReadOperations > 0 {
		metrics["diskReadRequestBytes"] = c.ReadBytes / c.ReadOperations
	}
	if c.WriteOperations > 0 {
		metrics["diskWriteRequestBytes"] = c.WriteBytes / c.WriteOperations
	}
}

// smallRequestBytes is the bound of the last row of request sizes that counts as small: the requests in this row are smaller than twice
// that.
const smallRequestBytes = 16 << 10

// smallReads is the share of small requests among the pool's read requests, over the whole window.
func smallReads(d poolseries.Document) (partsPerMillion int64, any bool) {
	if len(d.RequestSizes) == 0 {
		return 0, false
	}
	var small, all int64
	sizes := d.RequestSizes[0]
	for _, column := range columnsOf("read") {
		for at, count := range sizes.Columns[column] {
			all += count
			if sizes.Bounds[at] <= smallRequestBytes {
				small += count
			}
		}
	}
	if all == 0 {
		return 0, false
	}
	return int64(float64(small) / float64(all) * 1e6), true
}

// foreignParts is the limit for work that the run did not start: one in foreignParts of all requests, or more, disturbs a measurement.
const foreignParts = 100

// foreignWork returns a message if the disks worked for a scrub, a resilver or a rebuild: another program has started it, or a disk was
// lost. The result is only used for phases beside which no operation ran.
func foreignWork(d poolseries.Document) string {
	if len(d.RequestSizes) == 0 {
		return ""
	}
	var foreign, all int64
	for column, counts := range d.RequestSizes[0].Columns {
		for _, count := range counts {
			all += count
			if strings.HasPrefix(column, "scrub_") || strings.HasPrefix(column, "rebuild_") {
				foreign += count
			}
		}
	}
	if foreign == 0 || foreign < all/foreignParts {
		return ""
	}
	return fmt.Sprintf("%d of the %d requests to the disks of pool %s were those of a scrub, a resilver or a rebuild, which the run did not "+
		"start: run none on the pools of benchmarks", foreign, all, d.Pool)
}

// columnsOf returns the columns that count the reads or writes to the disks: individual requests, and those that ZFS aggregated from
// several.
func columnsOf(direction string) []string {
	return []string{"sync_" + direction + "_ind", "sync_" + direction + "_agg", "async_" + direction + "_ind", "async_" + direction + "_agg"}
}

// withRequestSizes adds the sizes of the disks' requests, over the whole window. prefix is "NAME." if the phase runs several workloads.
func withRequestSizes(known map[string]results.Distribution, d poolseries.Document, prefix string) map[string]results.Distribution {
	if len(d.RequestSizes) == 0 {
		return known
	}
	all, sizes := maps.Clone(known), d.RequestSizes[0]
	for name, direction := range map[string]string{"diskReadRequestSize": "read", "diskWriteRequestSize": "write"} {
		var columns [][]int64
		for _, column := range columnsOf(direction) {
			columns = append(columns, sizes.Columns[column])
		}
		if one := results.Requests(sizes.Bounds, columns...); len(one.Counts) > 0 && len(all) < results.MaxDistributions {
			if all == nil {
				all = map[string]results.Distribution{}
			}
			all[prefix+name] = one
		}
	}
	return all
}
