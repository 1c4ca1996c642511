package poolseries

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

// Unpack reads what Pack made.
func Unpack(packed []byte, digest string) (Document, error) {
	var document Document
	text, err := results.Unpack(packed)
	if err != nil {
		return document, err
	}
	if got := results.Digest(text); got != digest {
		return document, fmt.Errorf("%w: the observation has digest %s, its agent said %.80q", results.ErrCorrupt, got, digest)
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return document, fmt.Errorf("%w: the observation is no JSON: %w", results.ErrCorrupt, err)
	}
	if document.Version != Version {
		return document, fmt.Errorf("%w: the observation has version %d, this program speaks %d: use the agent image of the same release as the manager",
			results.ErrVersion, document.Version, Version)
	}
	return document, nil
}

// Measured is the time in which a phase took its numbers: a measure phase leaves out its ramp-up, which comes first.
func Measured(phase results.PhaseDocument) (from, to time.Time) {
	from, to = phase.StartedAt, phase.FinishedAt
	if duration := time.Duration(phase.Metrics["durationNanoseconds"]); phase.Kind == results.KindMeasure && duration > 0 && duration < to.Sub(from) {
		from = to.Add(-duration)
	}
	return from, to
}

// Join tells in the vocabulary of results what the disks did while a phase was measured. Counters are taken at the samples nearest to
// the ends of that time; what a version of OpenZFS does not count is absent.
func (d Document) Join(phase results.PhaseDocument) map[string]int64 {
	const partsPerMillionPerPercent = 10_000
	metrics := map[string]int64{"poolAllocatedBytes": d.After.AllocatedBytes}
	if percent := d.After.FragmentationPercent; percent != nil {
		metrics["freeSpaceFragmentationPartsPerMillion"] = *percent * partsPerMillionPerPercent
	}
	if groups := d.TransactionGroups; groups != nil {
		metrics["longestTransactionGroupNanoseconds"] = groups.LongestSyncNanoseconds
	}
	if d.Gang != nil {
		metrics["gangBlocks"] = d.Gang.Writes
	}
	if share, any := d.smallReads(); any {
		metrics["smallDiskReadsPartsPerMillion"] = share
	}
	if disks, elapsed := d.disksWithin(Measured(phase)); elapsed > 0 {
		disks.rates(metrics, elapsed)
		inflation(metrics, "diskReadsPerReadMilli", metrics["diskReadOperationsPerSecond"], phase.Metrics["readOperationsPerSecond"])
		inflation(metrics, "diskWritesPerWriteMilli", metrics["diskWriteOperationsPerSecond"], phase.Metrics["writeOperationsPerSecond"])
	}
	return metrics
}

// inflation is how many requests to the disks came of 1000 of the workload.
func inflation(metrics map[string]int64, name string, disks, workload int64) {
	if workload > 0 {
		metrics[name] = disks * 1000 / workload
	}
}

// disksWithin adds up the disks between two moments.
func (d Document) disksWithin(from, to time.Time) (sum Counters, elapsed time.Duration) {
	first, last := d.nearest(from), d.nearest(to)
	counted := false
	for _, vdev := range d.Vdevs {
		if !vdev.Disk || len(vdev.ReadOperations) != len(d.Series.OffsetMilliseconds) {
			continue
		}
		counted = true
		sum.ReadOperations += vdev.ReadOperations[last] - vdev.ReadOperations[first]
		sum.WriteOperations += vdev.WriteOperations[last] - vdev.WriteOperations[first]
		sum.ReadBytes += vdev.ReadBytes[last] - vdev.ReadBytes[first]
		sum.WriteBytes += vdev.WriteBytes[last] - vdev.WriteBytes[first]
	}
	if !counted {
		return sum, 0
	}
	return sum, time.Duration(d.Series.OffsetMilliseconds[last]-d.Series.OffsetMilliseconds[first]) * time.Millisecond
}

// nearest is the sample next to a moment.
func (d Document) nearest(at time.Time) (index int) {
	offset, best := at.Sub(d.StartedAt).Milliseconds(), int64(-1)
	for i, sampled := range d.Series.OffsetMilliseconds {
		distance := max(sampled-offset, offset-sampled)
		if best < 0 || distance < best {
			index, best = i, distance
		}
	}
	return index
}

func (c Counters) rates(metrics map[string]int64, elapsed time.Duration) {
	perSecond := func(count int64) int64 { return int64(float64(count) / elapsed.Seconds()) }
	metrics["diskReadOperationsPerSecond"] = perSecond(c.ReadOperations)
	metrics["diskWriteOperationsPerSecond"] = perSecond(c.WriteOperations)
	metrics["diskReadBytesPerSecond"] = perSecond(c.ReadBytes)
	metrics["diskWrittenBytesPerSecond"] = perSecond(c.WriteBytes)
	if c.ReadOperations > 0 {
		metrics["diskReadRequestBytes"] = c.ReadBytes / c.ReadOperations
	}
	if c.WriteOperations > 0 {
		metrics["diskWriteRequestBytes"] = c.WriteBytes / c.WriteOperations
	}
}

// smallRequestBytes is the last row of request sizes that counts as small: it ends below twice as much.
const smallRequestBytes = 16 << 10

// smallReads is the share of small ones among the pool's requests to read, over the whole window.
func (d Document) smallReads() (partsPerMillion int64, any bool) {
	if len(d.RequestSizes) == 0 {
		return 0, false
	}
	var small, all int64
	sizes := d.RequestSizes[0]
	for _, column := range []string{"sync_read_ind", "sync_read_agg", "async_read_ind", "async_read_agg"} {
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
