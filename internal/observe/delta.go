package observe

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	maxDetailBytes = 32 << 10
	maxUnavailable = 64
	maxSentence    = 400
)

// Delta has the changes between two snapshots.
type Delta struct {
	// Metrics are the metrics for which there is evidence, by name.
	Metrics map[string]int64
	// Details has all changes and rates by source, as JSON of at most 32 KiB.
	Details json.RawMessage
	// Unavailable has a sentence for everything that is unknown, with the reason.
	Unavailable []string
	// Notes has a sentence for each metric that is left out although there are counters for it. A person should read them.
	Notes []string
	// Load is the other activity in this time.
	Load Load
	// Commits is how many syncs of the volume's dataset waited for the intent log: none with sync=disabled. Before OpenZFS 2.2, which does
	// not count them for each dataset, it is 0 too.
	Commits int64

	evidence evidence
	// unwritten is what the node held in memory at the beginning and had not written to its disks yet.
	unwritten Level
	// requests are the requests of the disks of a plain volume, by the metric that relates them to the requests of the workload.
	requests map[string]int64
	// overTime are amounts of work of the disks, by the metric that divides them by the time of the workload.
	overTime map[string]amount
}

// details is the shape of Delta.Details.
type details struct {
	DurationNanoseconds int64                   `json:"durationNanoseconds"`
	Volume              volumeDetails           `json:"volume"`
	MetricSources       map[string]string       `json:"metricSources,omitempty"`
	Sources             map[string]sourceDetail `json:"sources"`
	Omitted             []string                `json:"omitted,omitempty"`
}

// volumeDetails describes the volume and the devices below it.
type volumeDetails struct {
	FileSystem string         `json:"fileSystem,omitempty"`
	Dataset    string         `json:"dataset,omitempty"`
	Pool       string         `json:"pool,omitempty"`
	RecordSize int64          `json:"recordSizeBytes,omitempty"`
	Devices    []deviceDetail `json:"devices,omitempty"`
}

// deviceDetail is one device; the metrics are those of the counted ones.
type deviceDetail struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Below   []string `json:"below,omitempty"`
	Counted bool     `json:"counted,omitempty"`
}

// sourceDetail has the changes of one source between the snapshots.
type sourceDetail struct {
	Changes         map[string]int64    `json:"changes,omitempty"`
	PerSecond       map[string]int64    `json:"perSecond,omitempty"`
	PartsPerMillion map[string]int64    `json:"partsPerMillion,omitempty"`
	Levels          map[string][2]int64 `json:"levels,omitempty"` // before and after
}

// comparison collects the difference of two snapshots.
type comparison struct {
	details details
	missing []string
	metrics map[string]int64
	// requests and overTime are as in Delta.
	requests map[string]int64
	overTime map[string]amount
}

// Without returns the snapshot as if nothing had happened between two later ones, because the time between two rounds is not measured.
// Counters that were reset in between are omitted.
func (s Snapshot) Without(from, to Snapshot) Snapshot {
	shifted := s
	shifted.at = s.at.Add(to.at.Sub(from.at))
	shifted.groups = map[string]group{}
	shifted.missing = slices.Concat(s.missing, from.missing, to.missing)
	shifted.exclusive = s.exclusive && from.exclusive && to.exclusive
	for name, earlier := range s.groups {
		moved := group{counters: map[string]uint64{}, levels: earlier.levels}
		for key, value := range earlier.counters {
			before, found := from.groups[name].counters[key]
			after, still := to.groups[name].counters[key]
			if found && still && value <= before && before <= after {
				moved.counters[key] = value + (after - before)
			}
		}
		if lost := len(earlier.counters) - len(moved.counters); lost > 0 {
			shifted.missing = append(shifted.missing, fmt.Sprintf("%d counters of %s are not available: they were reset between two rounds.", lost,
				name))
		}
		shifted.groups[name] = moved
	}
	return shifted
}

// Between compares two snapshots of this observer. A counter that is smaller than before was reset, and is omitted.
func (o *Observer) Between(before, after Snapshot) Delta {
	elapsed := after.at.Sub(before.at) // by the monotonic clock
	c := comparison{metrics: map[string]int64{}, missing: slices.Concat(before.missing, after.missing), details: details{
		DurationNanoseconds: max(0, elapsed.Nanoseconds()), Volume: o.describe(), MetricSources: map[string]string{},
		Sources: map[string]sourceDetail{},
	}}
	for _, name := range slices.Sorted(maps.Keys(after.groups)) {
		earlier, found := before.groups[name]
		if !found {
			c.missing = append(c.missing, sentence("Changes of "+name, fmt.Errorf("it was not there before the workload"), ""))
			continue
		}
		c.compare(name, earlier, after.groups[name], elapsed)
	}
	for _, name := range slices.Sorted(maps.Keys(before.groups)) {
		if _, found := after.groups[name]; !found {
			c.missing = append(c.missing, sentence("Changes of "+name, fmt.Errorf("it was not there after the workload"), ""))
		}
	}
	c.nodeShares()
	c.compareTxgs(before.txgs, after.txgs, o.zfs != nil)
	c.fillCPU(before.exclusive && after.exclusive)
	c.fillNodeCPU()
	c.fillDisks(o)
	var notes []string
	found := o.collectEvidence(c.details.Sources)
	if found.doubt != "" {
		c.missing = append(c.missing, "The share of reads that came from memory is not available: "+found.doubt+".")
	} else if found.arc.vague() {
		notes = append(notes, found.arc.doubt())
	} else if share, ok := found.arcShare(); ok {
		c.metrics["cacheHitPartsPerMillion"] = million - share
		c.details.MetricSources["cacheHitPartsPerMillion"] = "zfs.arc"
	}
	return Delta{Metrics: c.metrics, Details: encodeDetails(c.details), Unavailable: bounded(c.missing), Notes: notes,
		Load: o.collectLoad(c.details.Sources, elapsed), Commits: c.details.Sources["zfs.dataset"].Changes["zil_commit_count"],
		evidence: found, unwritten: unwrittenAt(c.details.Sources), requests: c.requests, overTime: c.overTime}
}

// compare notes the changes of one source.
func (c *comparison) compare(name string, before, after group, elapsed time.Duration) {
	into := sourceDetail{Changes: map[string]int64{}, PerSecond: map[string]int64{}, Levels: map[string][2]int64{}}
	var smaller []string
	for _, key := range slices.Sorted(maps.Keys(after.counters)) {
		earlier, found := before.counters[key]
		later := after.counters[key]
		switch {
		case !found:
			continue
		case later < earlier:
			smaller = append(smaller, key)
			continue
		}
		change := clip(later - earlier)
		into.Changes[key] = change
		if rate := mulDiv(change, int64(time.Second), elapsed.Nanoseconds()); rate != 0 {
			into.PerSecond[key] = rate
		}
	}
	for key, later := range after.levels {
		if earlier, found := before.levels[key]; found {
			into.Levels[key] = [2]int64{clip(earlier), clip(later)}
		}
	}
	c.details.Sources[name] = into
	if len(smaller) > 0 {
		more := ""
		if extra := len(smaller) - 8; extra > 0 {
			smaller, more = smaller[:8], fmt.Sprintf(" and %d more", extra)
		}
		c.missing = append(c.missing, fmt.Sprintf("Changes of %s are not available for %s%s: smaller than before, so the counter was reset "+
			"or has wrapped around.", name, strings.Join(smaller, ", "), more))
	}
}

// nodeShares adds the share of each kind of CPU time, such as user and idle, over all CPUs.
func (c *comparison) nodeShares() {
	node, found := c.details.Sources["node"]
	if !found {
		return
	}
	var total int64
	for key, change := range node.Changes {
		if strings.HasSuffix(key, "Nanoseconds") {
			total = stats.Plus(total, change)
		}
	}
	node.PartsPerMillion = map[string]int64{}
	for key, change := range node.Changes {
		if name, isTime := strings.CutSuffix(key, "Nanoseconds"); isTime && total > 0 {
			node.PartsPerMillion[name] = mulDiv(change, million, total)
		}
	}
	c.details.Sources["node"] = node
}

// compareTxgs sums the transaction groups that were committed after the first snapshot was taken.
func (c *comparison) compareTxgs(before, after []txg, wanted bool) {
	if !wanted || len(before) == 0 || len(after) == 0 {
		return
	}
	last := uint64(0)
	for _, row := range before {
		if row.committed {
			last = max(last, row.number)
		}
	}
	into := map[string]int64{}
	for _, row := range after {
		if !row.committed || row.number <= last {
			continue
		}
		into["committed"]++
		into["dirtyBytes"] = stats.Plus(into["dirtyBytes"], clip(row.dirtyBytes))
		into["writtenBytes"] = stats.Plus(into["writtenBytes"], clip(row.writtenBytes))
		into["syncNanoseconds"] = stats.Plus(into["syncNanoseconds"], clip(row.syncNanoseconds))
		into["largestSyncNanoseconds"] = max(into["largestSyncNanoseconds"], clip(row.syncNanoseconds))
		into["waitNanoseconds"] = stats.Plus(into["waitNanoseconds"], clip(row.waitNanoseconds))
	}
	if after[0].number > last+1 {
		c.missing = append(c.missing, fmt.Sprintf("The first transaction groups of the workload are not available: the pool keeps only %d "+
			"(zfs_txg_history), and those before %d are gone.", len(after), after[0].number))
	}
	c.details.Sources["zfs.txgs"] = sourceDetail{Changes: into}
}

// fillCPU takes the CPU time from the cgroup if no other process is in it, otherwise from the processes.
func (c *comparison) fillCPU(exclusive bool) {
	for _, name := range []string{"cgroup", "process"} {
		value, found := c.details.Sources[name].Changes["cpuNanoseconds"]
		if found && (exclusive || name != "cgroup") {
			c.metrics["cpuNanoseconds"] = value
			c.details.MetricSources["cpuNanoseconds"] = name
			return
		}
	}
}

// fillNodeCPU takes the CPU time of the whole node: kernel threads, such as those of ZFS that compress, checksum and write, are in no
// cgroup.
func (c *comparison) fillNodeCPU() {
	changes := c.details.Sources["node"].Changes
	user, kernel := []string{"userNanoseconds", "niceNanoseconds"}, []string{"systemNanoseconds", "irqNanoseconds", "softirqNanoseconds"}
	for metric, of := range map[string][]string{
		metricNodeUser: user, metricNodeSystem: kernel, metricNodeCPU: slices.Concat(user, kernel),
	} {
		sum, all := int64(0), true
		for _, key := range of {
			change, found := changes[key]
			sum, all = stats.Plus(sum, change), all && found
		}
		if all {
			c.metrics[metric] = sum
			c.details.MetricSources[metric] = "node"
		}
	}
}

// CPU time of the whole node.
const (
	metricNodeUser   = "nodeUserNanoseconds"
	metricNodeSystem = "nodeSystemNanoseconds"
	metricNodeCPU    = "nodeCPUNanoseconds"
)

// sumOf adds one change of several devices; it is not found if it is missing for any of them.
func sumOf(sources map[string]sourceDetail, devices []*device, key string) (int64, bool) {
	var sum int64
	for _, d := range devices {
		value, found := sources["device."+d.name].Changes[key]
		if !found {
			return 0, false
		}
		sum = stats.Plus(sum, value)
	}
	return sum, len(devices) > 0
}

// Application has the counts of the workload itself.
type Application struct {
	ReadBytes, WrittenBytes, ReadOperations, WriteOperations int64
	// Operations are these and others, such as syncs and transactions.
	Operations, Transactions int64
	// Lasting is the time in which they happened. Without it, the disks have no rates.
	Lasting time.Duration
	// Ramped says that a ramp came directly before. What it had not written to the disks yet was written during this time.
	Ramped bool
}

// WithApplication adds the metrics that relate the counters to what the workload itself did.
func (d Delta) WithApplication(own Application) Delta {
	d.Metrics = maps.Clone(d.Metrics)
	if d.Metrics == nil {
		d.Metrics = map[string]int64{}
	}
	relate := func(metric, of string, factor, divisor int64) {
		if value, found := d.Metrics[of]; found && divisor > 0 {
			d.Metrics[metric] = nearest(value, factor, divisor)
		}
	}
	relate("readBytesPerApplicationByteMilli", "deviceReadBytes", 1000, own.ReadBytes)
	relate("writtenBytesPerApplicationByteMilli", "deviceWrittenBytes", 1000, own.WrittenBytes)
	relate("diskReadBytesPerTransaction", "deviceReadBytes", 1, own.Transactions)
	relate("diskWrittenBytesPerTransaction", "deviceWrittenBytes", 1, own.Transactions)
	relate("cpuNanosecondsPerThousandOperations", "cpuNanoseconds", 1000, own.Operations)
	for _, side := range []string{metricNodeUser, metricNodeSystem, metricNodeCPU} {
		relate(side+"PerThousandOperations", side, 1000, own.Operations)
		relate(side+"PerMebibyte", side, 1<<20, stats.Plus(own.ReadBytes, own.WrittenBytes))
	}
	d.relateDisks(own)
	d = d.withoutRamp(own)
	if verdict := judgeMemory(own.ReadBytes, d); verdict.known && verdict.doubt == "" && !d.evidence.arc.vague() {
		d.Metrics["cacheHitPartsPerMillion"] = million - verdict.fromDevices
	}
	return d
}

// mulDiv is value * factor / divisor without overflow, rounded down. It is capped at the largest number, and 0 if the divisor is 0.
func mulDiv(value, factor, divisor int64) int64 { return mulAddDiv(value, factor, 0, divisor) }

// nearest is mulDiv rounded to the nearest number, in the same way as the figures of pools.
func nearest(value, factor, divisor int64) int64 { return mulAddDiv(value, factor, divisor/2, divisor) }

// mulAddDiv is (value * factor + more) / divisor.
func mulAddDiv(value, factor, more, divisor int64) int64 {
	if value <= 0 || factor <= 0 || divisor <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(value), uint64(factor))
	low, carry := bits.Add64(low, uint64(more), 0)
	if high += carry; high >= uint64(divisor) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(divisor))
	return clip(quotient)
}

func clip(value uint64) int64 { return int64(min(value, math.MaxInt64)) }

// bounded drops repetitions and limits the length.
func bounded(sentences []string) []string {
	var once []string
	for _, text := range sentences {
		if text = spelling.Shorten(text, maxSentence); !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	if extra := len(once) - maxUnavailable; extra > 0 {
		once = append(once[:maxUnavailable], fmt.Sprintf("And %d more.", extra))
	}
	return once
}
