package results

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/stats"
)

// Direction is the direction in which a metric is better.
type Direction string

// The values of Direction.
const (
	Higher  Direction = "Higher"
	Lower   Direction = "Lower"
	Neither Direction = "Neither"
)

// Units of metrics.
const (
	UnitBytes           = "bytes"
	UnitBytesPerSecond  = "bytes/s"
	UnitCount           = "count"
	UnitPerSecond       = "1/s"
	UnitNanoseconds     = "ns"
	UnitPartsPerMillion = "ppm"
	UnitMilli           = "1/1000"
)

// Metric describes one number that a phase can have.
type Metric struct {
	// Name in lowerCamel, with the unit in it.
	Name string
	// Unit of the number.
	Unit string
	// Description for a person.
	Description string
	// Better is the direction in which the number is better.
	Better Direction
	// Primary marks the few metrics that people gate on and that summaries show.
	Primary bool
}

var (
	vocabulary = slices.Concat(throughputMetrics(), latencyMetrics(), shareMetrics(), metadataMetrics(), postgresMetrics(),
		preparationMetrics(), systemMetrics(),
		operationMetrics(), diskMetrics(), poolMetrics(), groupMetrics())
	byName = indexMetrics(vocabulary)
)

// Metrics returns the whole vocabulary, primary metrics first, then by name.
func Metrics() []Metric { return slices.Clone(vocabulary) }

// LookupMetric returns the metric with that name. JOB.METRIC is a metric of one job of several in a fio job file, or of one workload of
// several that ran together. DISTRIBUTION.STATISTIC is a statistic of a distribution.
func LookupMetric(name string) (Metric, bool) {
	metric, found := byName[name]
	if at := strings.LastIndexByte(name, '.'); !found && jobName.MatchString(name[:max(at, 0)]) {
		if metric, found = byName[name[at+1:]]; found {
			metric.Name, metric.Description, metric.Primary = name, "Of "+name[:at]+", a job or workload: "+metric.Description, false
		}
	}
	if found { // most names are, and each metric of each run is looked up
		return metric, true
	}
	derived, err := ParseDerived(name)
	return derived.Metric, err == nil
}

// IsPrimary reports whether people gate on a metric, and summaries show it. A metric of one of several jobs or workloads is primary if it
// would be primary in a phase of its own: without these metrics, such a phase would have only sums.
func IsPrimary(name string) bool {
	return byName[name[strings.LastIndexByte(name, '.')+1:]].Primary
}

// binned matches the percentiles that are read from bins: those of fio, and those of operations on files, whose bins are as wide.
var binned = regexp.MustCompile(`(^|\.)(read|write|sync|create|stat|list|unlink)LatencyP[0-9]+Nanoseconds$`)

// Binned reports whether the metric is only as exact as a bin is wide: up to 1.6%.
func (m Metric) Binned() bool { return binned.MatchString(m.Name) }

// Step is the step to which numbers of the metric are rounded. It is 0 if they are counts, or so large that rounding never matters.
func (m Metric) Step() int64 {
	switch {
	case m.Name[strings.LastIndexByte(m.Name, '.')+1:] == "freeSpaceFragmentationPartsPerMillion":
		return 10_000 // zpool reports whole percents
	case m.Unit == UnitPerSecond, m.Unit == UnitMilli, m.Unit == UnitPartsPerMillion:
		return 1
	case m.Unit == UnitBytes && strings.HasSuffix(m.Name, "PerTransaction"):
		return 1 // for a database in memory, it is a few bytes
	}
	return 0
}

// Ends returns the smallest and the largest value that a number of the metric may stand for: a percentile may be anywhere in its bin, a
// duration of whole seconds is the difference of two of them, whose end may have been seen a second late, and a power of two was rounded
// down. Steps are not included.
func (m Metric) Ends(value int64) (low, high int64) {
	switch {
	case value <= 0:
		return value, value
	case m.PowerOfTwo():
		return value, 2*value - 1
	case m.Binned():
		from, width := stats.Bin(value)
		return from, from + width
	case m.WholeSeconds(value):
		return max(1, value-2*second), value + second
	}
	return value, value
}

const second = int64(1e9)

// WholeSeconds reports whether a value of the metric is only known in seconds, as the durations of most operations are. A median may lie
// in the middle between two such values.
func (m Metric) WholeSeconds(value int64) bool {
	return m.Name[strings.LastIndexByte(m.Name, '.')+1:] == "durationNanoseconds" && value%(second/2) == 0
}

// PowerOfTwo reports whether a number was rounded down to a power of two, as in the maps of free space.
func (m Metric) PowerOfTwo() bool {
	return m.Name[strings.LastIndexByte(m.Name, '.')+1:] == "largestFreeSegmentBytes"
}

// jobName matches the names that a section of a job file may have.
var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func indexMetrics(metrics []Metric) map[string]Metric {
	slices.SortFunc(metrics, compareMetrics)
	index := make(map[string]Metric, len(metrics))
	for _, metric := range metrics {
		index[metric.Name] = metric
	}
	return index
}

// compareMetrics orders primary metrics before others and then by name.
func compareMetrics(a, b Metric) int {
	switch {
	case a.Primary && !b.Primary:
		return -1
	case b.Primary && !a.Primary:
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

func throughputMetrics() []Metric {
	return []Metric{
		{"readBytesPerSecond", UnitBytesPerSecond, "Bytes read per second.", Higher, true},
		{"writeBytesPerSecond", UnitBytesPerSecond, "Bytes written per second.", Higher, true},
		{"readOperationsPerSecond", UnitPerSecond, "Reads per second.", Higher, true},
		{"writeOperationsPerSecond", UnitPerSecond, "Writes per second.", Higher, true},
		{"syncOperationsPerSecond", UnitPerSecond, "Calls of fsync or fdatasync per second.", Higher, false},
		{"readBytes", UnitBytes, "Bytes read.", Neither, false},
		{"writtenBytes", UnitBytes, "Bytes written.", Neither, false},
		{"readOperations", UnitCount, "Reads.", Neither, false},
		{"writeOperations", UnitCount, "Writes.", Neither, false},
		{"syncOperations", UnitCount, "Calls of fsync or fdatasync.", Neither, false},
		{"durationNanoseconds", UnitNanoseconds,
			"Time that was measured, without ramp-up; of an operate phase, how long the operation took, in whole seconds (exact for snapshot, " +
				"clone, copy and offlineDevice). Missing if unknown.", Neither, false},
		{"flushNanoseconds", UnitNanoseconds,
			"Time from the end of the workload until all that it wrote was on the disk; the measured time and the rates contain it.", Lower, false},
		{"workersBusyPartsPerMillion", UnitPartsPerMillion,
			"Part of the time in which the workers waited for the storage: rate times mean latency / workers. Below 800,000, the node's " +
				"CPU limits the rate too.", Neither, false},
		{"regions", UnitCount, "Regions that a scan timed.", Neither, false},
		{"slowestRegionReadBytesPerSecond", UnitBytesPerSecond, "Bytes read per second in the slowest region of a scan.", Higher, false},
		{"fastestRegionReadBytesPerSecond", UnitBytesPerSecond, "Bytes read per second in the fastest region of a scan.", Higher, false},
		{"ioErrors", UnitCount, "Reads, writes and syncs that failed.", Lower, false},
	}
}

// latencyMetrics returns the same six metrics for each kind of operation. People gate on the p99 of the operations of most workloads.
func latencyMetrics() []Metric {
	var metrics []Metric
	for _, of := range []struct {
		prefix, words string
		primary       bool
	}{
		{"read", "reads", true}, {"write", "writes", true}, {"sync", "syncs", true}, {"transaction", "transactions", true},
		{"create", "files that were created, written and closed", false}, {"stat", "lookups of a file", false},
		{"list", "listings of a folder", false}, {"unlink", "removals of a file", false},
	} {
		for _, figure := range []struct{ suffix, words string }{
			{"Mean", "Mean latency"}, {"P50", "Median latency"}, {"P95", "95th percentile of the latency"},
			{"P99", "99th percentile of the latency"}, {"P999", "99.9th percentile of the latency"}, {"Max", "Largest latency"},
		} {
			metrics = append(metrics, Metric{
				Name: of.prefix + "Latency" + figure.suffix + "Nanoseconds", Unit: UnitNanoseconds,
				Description: fmt.Sprintf("%s of %s.", figure.words, of.words), Better: Lower, Primary: of.primary && figure.suffix == "P99",
			})
		}
	}
	return metrics
}

func shareMetrics() []Metric {
	return []Metric{
		{"shareOver1MillisecondPartsPerMillion", UnitPartsPerMillion, "Operations that took longer than 1 ms.", Lower, false},
		{"shareOver10MillisecondsPartsPerMillion", UnitPartsPerMillion, "Operations that took longer than 10 ms.", Lower, false},
		{"shareOver20MillisecondsPartsPerMillion", UnitPartsPerMillion, "Operations that took longer than 20 ms.", Lower, false},
		{"longestCommitGapNanoseconds", UnitNanoseconds,
			"Longest time in which no append of any writer became durable, of a log with an archiver.", Lower, false},
		{"archiverWaitNanoseconds", UnitNanoseconds,
			"Time that all writers together waited for a segment that was not archived yet.", Lower, false},
		{"archivedBytes", UnitBytes, "Bytes of the segments that an archiver has copied, and that are on the disk.", Neither, false},
		{"archivedSegments", UnitCount, "Segments that an archiver has copied, and that are on the disk.", Neither, false},
	}
}

// metadataMetrics has rates that are each based on the time that the workers spent on that kind of operation.
func metadataMetrics() []Metric {
	return []Metric{
		{"metadataOperationsPerSecond", UnitPerSecond, "Files removed, created and looked up and folders listed per second.", Higher, true},
		{"metadataOperations", UnitCount, "Files removed, created and looked up and folders listed.", Neither, false},
		{"createOperationsPerSecond", UnitPerSecond, "Files created, written and closed per second of creating.", Higher, false},
		{"statOperationsPerSecond", UnitPerSecond, "Files looked up per second of looking up.", Higher, false},
		{"listOperationsPerSecond", UnitPerSecond, "Folders of up to 100 files listed per second of listing.", Higher, false},
		{"unlinkOperationsPerSecond", UnitPerSecond, "Files removed per second of removing.", Higher, false},
	}
}

// MetricCheckpoints is a number in which repetitions should not differ, because each checkpoint slows them down.
const MetricCheckpoints = "checkpoints"

func postgresMetrics() []Metric {
	return []Metric{
		{"transactionsPerSecond", UnitPerSecond, "Transactions per second.", Higher, true},
		{"transactions", UnitCount, "Transactions.", Neither, false},
		{"failedTransactions", UnitCount, "Transactions that failed.", Lower, false},
		{"transactionLatencyStandardDeviationNanoseconds", UnitNanoseconds, "Standard deviation of the latency of transactions.", Lower, false},
		{"walBytes", UnitBytes, "Write-ahead log written.", Neither, false},
		{"walBytesPerTransaction", UnitBytes, "Write-ahead log written per transaction.", Lower, false},
		{"commitLatencyMeanNanoseconds", UnitNanoseconds,
			"Mean latency of the commits of transactions, a part of their latency. A script with several COMMIT has none.", Lower, false},
		{MetricCheckpoints, UnitCount,
			"Checkpoints that ended during the measurement, without those that were skipped because nothing had been written.", Neither, false},
		{"checkpointsRequested", UnitCount, "Checkpoints that came before their time, as max_wal_size was used up.", Neither, false},
		{"checkpointBuffers", UnitCount, "Blocks that checkpoints have written.", Neither, false},
		{"databaseMemoryPartsPerMillion", UnitPartsPerMillion,
			"Size of the database / memory of the node. Below 1,000,000 the database may fit in memory, above it too if it compresses. " +
				"Reads then do not reach the storage.", Neither, false},
		{"databaseBytes", UnitBytes, "Size of the database after it was initialised.", Neither, false},
		{"initialiseNanoseconds", UnitNanoseconds, "Time to initialise the database.", Lower, false},
	}
}

func preparationMetrics() []Metric {
	return []Metric{
		{"filledBytes", UnitBytes, "Data that a fill has written.", Neither, false},
		{"volumeBytes", UnitBytes, "Size of the volume.", Neither, false},
		{"allocatedBytes", UnitBytes, "Space in use on the volume afterwards.", Neither, false},
		{"coveragePartsPerMillion", UnitPartsPerMillion, "Part of the blocks that was written or read.", Higher, false},
		{"rounds", UnitCount, "Rounds until steady state, or as many as asked.", Neither, false},
		{"steadyStateRangePartsPerMillion", UnitPartsPerMillion, "(Largest - smallest) / mean over the last window of rounds.", Lower, false},
		{"steadyStateSlopePartsPerMillion", UnitPartsPerMillion, "Rise or fall of the best line over the last window of rounds / mean.", Lower,
			false},
		{"steadyStateDriftPartsPerMillion", UnitPartsPerMillion, "Rise or fall of the best line over the later half of all rounds / mean.", Lower,
			false},
	}
}

// operationMetrics returns the metrics of operate phases.
func operationMetrics() []Metric {
	return []Metric{
		{"referencedBytes", UnitBytes, "Data that a snapshot or clone refers to.", Neither, false},
		{"freedBytes", UnitBytes,
			"Space that the destruction of a dataset or a snapshot, or a free phase, gave back, without space that was only reserved.", Neither,
			false},
		{"commandNanoseconds", UnitNanoseconds,
			"Time until the command that destroys a dataset returned; its space is freed in the background.", Lower, false},
		{"sentBytes", UnitBytes, "Stream that a replication sent.", Lower, false},
		{"resentBytes", UnitBytes, "Stream that a replication sent twice, because it was interrupted.", Lower, false},
		{"receivedReferencedBytes", UnitBytes, "Data that the received dataset refers to.", Neither, false},
		{"copiedBytes", UnitBytes,
			"Data of the files that were copied, or of the vdev that was removed; of a vdev rounded to three digits before OpenZFS 2.3, and left " +
				"out if 0 or unknown.", Neither, false},
		{"copiedFiles", UnitCount, "Files that were copied.", Neither, false},
		{"overwrittenFiles", UnitCount, "Copied files that replaced the contents of an existing file.", Neither, false},
		{"copiedBytesPerSecond", UnitBytesPerSecond, "Data copied per second, until all of it is on the disks.", Higher, false},
		{"diskWrittenBytesPerCopiedBytePartsPerMillion", UnitPartsPerMillion,
			"Bytes written to the disks of the pool that was copied to per million bytes copied.", Lower, false},
		{"diskReadBytesPerCopiedBytePartsPerMillion", UnitPartsPerMillion,
			"Bytes read from the disks of the pool that was copied from per million bytes copied.", Neither, false},
		{"diskWritesPerCopiedMebibyteMilli", UnitMilli, "Writes to the disks of the pool that was copied to per 1000 MiB copied.", Lower,
			false},
		{"scannedBytes", UnitBytes, "Data that a scrub has read. Left out before OpenZFS 2.3, which does not report it.", Neither, false},
		{"repairedBytes", UnitBytes, "Data that a scrub has repaired. Rounded to three digits before OpenZFS 2.3.", Lower, false},
		{"errorsFound", UnitCount,
			"Errors that a scrub, trim or rebuild found. Those of a trim are left out before OpenZFS 2.3, which does not report them.", Lower,
			false},
		{"dataErrors", UnitCount, "Errors in data that nothing can repair.", Lower, false},
		{"trimmedBytes", UnitBytes, "Space that was trimmed. Left out before OpenZFS 2.3, which does not report it.", Neither, false},
		{"resilveredBytes", UnitBytes,
			"Data that was rebuilt on a new disk, or on one that was offline. Rounded to three digits before OpenZFS 2.3.", Neither, false},
		{"resilverNanoseconds", UnitNanoseconds, "Time from the command that brings a disk back until its data was rebuilt.", Lower, false},
		{"offlineNanoseconds", UnitNanoseconds, "Time in which a disk was offline.", Neither, false},
		{"freeSegments", UnitCount, "Pieces that the free space of the pool is in.", Lower, false},
		{"largestFreeSegmentBytes", UnitBytes, "Largest of these pieces, down to a power of two: it may have up to twice as much.", Higher,
			false},
	}
}

// diskMetrics returns the metrics of the disks of a pool, or of those below a plain volume, while a phase was measured.
func diskMetrics() []Metric {
	return []Metric{
		{"diskReadOperationsPerSecond", UnitPerSecond, "Reads of the disks per second.", Neither, false},
		{"diskWriteOperationsPerSecond", UnitPerSecond, "Writes to the disks per second.", Neither, false},
		{"diskReadBytesPerSecond", UnitBytesPerSecond, "Bytes read from the disks per second.", Neither, false},
		{"diskWrittenBytesPerSecond", UnitBytesPerSecond, "Bytes written to the disks per second.", Neither, false},
		{"diskReadRequestBytes", UnitBytes, "Mean size of a read of the disks.", Higher, false},
		{"diskWriteRequestBytes", UnitBytes, "Mean size of a write to the disks.", Higher, false},
		{"diskReadsPerReadMilli", UnitMilli, "Reads of the disks per 1000 reads of the workload.", Lower, false},
		{"diskWritesPerWriteMilli", UnitMilli, "Writes to the disks per 1000 writes of the workload.", Lower, false},
		{"diskReadBytesPerTransaction", UnitBytes, "Bytes read from the disks per transaction.", Lower, false},
		{"diskWrittenBytesPerTransaction", UnitBytes, "Bytes written to the disks per transaction.", Lower, false},
		{"diskReadLatencyMeanNanoseconds", UnitNanoseconds, "Mean time of a read of the disks, in the queue of the kernel and on the disk.",
			Lower, false},
		{"diskWriteLatencyMeanNanoseconds", UnitNanoseconds, "Mean time of a write to the disks, in the queue of the kernel and on the disk.",
			Lower, false},
		{"diskQueueMilli", UnitMilli, "Mean number of requests that all disks together have at a time, in thousandths.", Neither, false},
		{"diskBusyPartsPerMillion", UnitPartsPerMillion, "Part of the time in which the busiest disk had requests.", Neither, false},
	}
}

// poolMetrics returns the metrics that the node counted on the pool of a phase, while the phase was measured.
func poolMetrics() []Metric {
	return []Metric{
		{"smallDiskReadsPartsPerMillion", UnitPartsPerMillion, "Reads of the disks below 32 KiB, from the start of the pod.", Lower, false},
		{"poolAllocatedBytes", UnitBytes, "Space in use on the pool afterwards, once it has written and freed what was pending.", Neither, false},
		{"longestTransactionGroupNanoseconds", UnitNanoseconds, "Longest writing of a transaction group, from the start of the pod.", Lower,
			false},
		{"gangBlocks", UnitCount, "Blocks that found no piece of free space large enough, on all pools of the node.", Lower, false},
		{"besidePartsPerMillion", UnitPartsPerMillion, "Part of the measured time in which the lasting operation beside it was at work.", Neither,
			false},
	}
}

func systemMetrics() []Metric {
	return []Metric{
		{"cpuNanoseconds", UnitNanoseconds, "CPU time of the workload.", Lower, false},
		{"cpuNanosecondsPerThousandOperations", UnitNanoseconds, "CPU time of the workload per 1000 operations.", Lower, false},
		{"nodeUserNanoseconds", UnitNanoseconds, "User CPU time of all processes of the node.", Lower, false},
		{"nodeSystemNanoseconds", UnitNanoseconds, "CPU time of the node's kernel, with interrupts and the threads of ZFS.", Lower, false},
		{"nodeCPUNanoseconds", UnitNanoseconds, "CPU time of the node: that of all processes and that of its kernel.", Lower, false},
		{"nodeCPUNanosecondsPerThousandOperations", UnitNanoseconds, "CPU time of the node per 1000 operations.", Lower, false},
		{"nodeCPUNanosecondsPerMebibyte", UnitNanoseconds, "CPU time of the node per MiB that the workload read or wrote.", Lower, false},
		{"nodeUserNanosecondsPerThousandOperations", UnitNanoseconds, "User CPU time of the node per 1000 operations.", Lower, false},
		{"nodeSystemNanosecondsPerThousandOperations", UnitNanoseconds, "CPU time of the node's kernel per 1000 operations.", Lower, false},
		{"nodeUserNanosecondsPerMebibyte", UnitNanoseconds, "User CPU time of the node per MiB that the workload read or wrote.", Lower, false},
		{"nodeSystemNanosecondsPerMebibyte", UnitNanoseconds, "CPU time of the node's kernel per MiB that the workload read or wrote.", Lower,
			false},
		{"nodeMemoryAvailableBytes", UnitBytes, "Memory of the node that programs could get when the measurement began.", Neither, false},
		{"nodeMemoryAvailableLeastBytes", UnitBytes, "Least memory of the node that programs could get while it was measured.", Higher, false},
		{"nodeARCBytes", UnitBytes, "Size of the cache of ZFS when the measurement began.", Neither, false},
		{"nodeARCMostBytes", UnitBytes, "Largest size of the cache of ZFS while it was measured.", Neither, false},
		{"cacheHitPartsPerMillion", UnitPartsPerMillion, "Reads served from the cache of the storage.", Neither, false},
		{"deviceReadBytes", UnitBytes, "Bytes read from the devices below.", Neither, false},
		{"deviceWrittenBytes", UnitBytes, "Bytes written to the devices below.", Neither, false},
		{"readBytesPerApplicationByteMilli", UnitMilli, "Bytes read from the disks per 1000 bytes that the workload read.", Lower, false},
		{"writtenBytesPerApplicationByteMilli", UnitMilli, "Bytes written to the disks per 1000 bytes that the workload wrote.", Lower, false},
		{"compressionRatioMilli", UnitMilli,
			"Data before compression per 1000 bytes of space that it takes. On raidz and draid this space contains padding, and with copies all " +
				"of them.", Neither, false},
		{"freeSpaceFragmentationPartsPerMillion", UnitPartsPerMillion, "Fragmentation of the free space.", Lower, false},
		{"layoutScorePartsPerMillion", UnitPartsPerMillion,
			"Blocks of the files that begin at most 1 MiB behind the end of their predecessor, of those that have one on the same vdev.", Higher,
			false},
	}
}
