package observe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/stats"
)

// Requests of the disks for each request of the workload.
const (
	metricDiskReads  = "diskReadsPerReadMilli"
	metricDiskWrites = "diskWritesPerWriteMilli"
)

const metricDiskBusy = "diskBusyPartsPerMillion"

// amount is a value that is multiplied by the factor and divided by a time in nanoseconds.
type amount struct{ value, factor int64 }

// fillDisks adds metrics about the use of the disks of the volume, with the same names for all targets. The agent of the node counts the
// reads and writes of the disks of a pool. The latency of their requests is only visible here.
func (c *comparison) fillDisks(o *Observer) {
	counted := o.devices.counted()
	c.fillRates(counted)
	if len(counted) == 0 && !o.target.DisksChange {
		counted = o.devices.told()
	}
	c.fillTimes(counted)
}

// fillRates adds how much the disks read and wrote, how many requests they had, and how large these were.
func (c *comparison) fillRates(disks []*device) {
	for _, direction := range []struct{ operations, bytes, amount, rate, bandwidth, size, perRequest string }{
		{"readOperations", "readBytes", "deviceReadBytes", "diskReadOperationsPerSecond", "diskReadBytesPerSecond", "diskReadRequestBytes",
			metricDiskReads},
		{"writeOperations", "writtenBytes", "deviceWrittenBytes", "diskWriteOperationsPerSecond", "diskWrittenBytesPerSecond",
			"diskWriteRequestBytes", metricDiskWrites},
	} {
		bytes, known := sumOf(c.details.Sources, disks, direction.bytes)
		if known {
			c.note(disks, direction.amount, bytes)
		}
		operations, found := sumOf(c.details.Sources, disks, direction.operations)
		if !found || !known {
			continue
		}
		c.noteOverTime(disks, direction.rate, operations, int64(time.Second))
		c.noteOverTime(disks, direction.bandwidth, bytes, int64(time.Second))
		if operations > 0 {
			c.note(disks, direction.size, nearest(bytes, 1, operations))
		}
		if c.requests == nil {
			c.requests = map[string]int64{}
		}
		c.requests[direction.perRequest] = operations
	}
}

// fillTimes adds how long the requests took, and how busy the disks were.
func (c *comparison) fillTimes(disks []*device) {
	for metric, of := range map[string]struct{ time, operations string }{
		"diskReadLatencyMeanNanoseconds":  {"readNanoseconds", "readOperations"},
		"diskWriteLatencyMeanNanoseconds": {"writeNanoseconds", "writeOperations"},
	} {
		took, found := sumOf(c.details.Sources, disks, of.time)
		operations, known := sumOf(c.details.Sources, disks, of.operations)
		if found && known && operations > 0 {
			c.note(disks, metric, nearest(took, 1, operations))
		}
	}
	if waiting, found := sumOf(c.details.Sources, disks, "queueNanoseconds"); found {
		c.noteOverTime(disks, "diskQueueMilli", waiting, 1000)
	}
	var busiest int64
	for _, disk := range disks {
		busy, found := c.details.Sources["device."+disk.name].Changes["busyNanoseconds"]
		if !found {
			return
		}
		busiest = max(busiest, busy)
	}
	if len(disks) > 0 {
		c.noteOverTime(disks, metricDiskBusy, busiest, million)
	}
}

func (c *comparison) note(disks []*device, metric string, value int64) {
	c.metrics[metric] = value
	c.nameSource(disks, metric)
}

// noteOverTime notes an amount that is divided by the duration of the workload. The time between the snapshots is longer, because they are
// taken before the program of the workload starts and after it ends.
func (c *comparison) noteOverTime(disks []*device, metric string, value, factor int64) {
	if c.overTime == nil {
		c.overTime = map[string]amount{}
	}
	c.overTime[metric] = amount{value, factor}
	c.nameSource(disks, metric)
}

func (c *comparison) nameSource(disks []*device, metric string) {
	c.details.MetricSources[metric] = "device." + strings.Join(namesOf(disks), ", device.")
}

// relateDisks adds the rates of the disks over the duration of the workload, and their requests for each request of the workload.
func (d Delta) relateDisks(own Application) {
	for metric, of := range d.overTime {
		if own.Lasting > 0 {
			d.Metrics[metric] = nearest(of.value, of.factor, own.Lasting.Nanoseconds())
		}
	}
	if busy, known := d.Metrics[metricDiskBusy]; known { // the kernel rounds up to its ticks, and also counts activity before and after
		d.Metrics[metricDiskBusy] = min(million, busy)
	}
	for metric, operations := range map[string]int64{metricDiskReads: own.ReadOperations, metricDiskWrites: own.WriteOperations} {
		if requests, known := d.requests[metric]; known && operations > 0 {
			d.Metrics[metric] = nearest(requests, 1000, operations)
		}
	}
}

// rampShare is the part of the written bytes, 1%, that may have been in memory before: so much does not change the ratios noticeably.
const rampShare = 100

// withoutRamp leaves out how much the disks wrote for each write of the workload if a visible part may be of the ramp before it. The kernel
// does not say whose data it holds in memory, so that part cannot be subtracted.
func (d Delta) withoutRamp(own Application) Delta {
	written, known := d.Metrics["deviceWrittenBytes"]
	if !own.Ramped || !known || own.WrittenBytes <= 0 || d.unwritten.Known && d.unwritten.Bytes <= written/rampShare {
		return d
	}
	const bytes = "writtenBytesPerApplicationByteMilli"
	delete(d.Metrics, bytes)
	delete(d.Metrics, metricDiskWrites)
	held := "an unknown amount"
	if d.unwritten.Known {
		held = size(d.unwritten.Bytes)
	}
	d.Notes = append(slices.Clip(d.Notes), fmt.Sprintf("%s and %s are left out: when the ramp had ended, the node held %s of data in memory "+
		"that was not on its disks yet, and the disks wrote %s until the end: measure longer, or without rampUp, or with direct or "+
		"synchronous writes", bytes, metricDiskWrites, held, size(written)))
	return d
}

// unwrittenAt returns what the node had in memory at the beginning and not on its disks.
func unwrittenAt(sources map[string]sourceDetail) Level {
	levels := sources["node.memory"].Levels
	dirty, found := levels["dirtyBytes"]
	underWay, known := levels["writebackBytes"]
	return Level{Bytes: stats.Plus(dirty[0], underWay[0]), Known: found && known}
}

// told returns the disks of the pool that the request names.
func (t *deviceTree) told() (disks []*device) {
	for _, d := range t.all {
		if d.told != nil {
			disks = append(disks, d)
		}
	}
	return disks
}
