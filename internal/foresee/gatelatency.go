package foresee

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/internal/workload"
)

var writeTimes = regexp.MustCompile(`^(?:(.+)\.)?(writeLatency|createLatency)[A-Z.]`)

// memoryTimed returns a warning if a gate judges the latency of writes that ZFS acknowledges in memory: such a gate holds on any disk.
// Empty if the writes are durable, or not on ZFS.
func memoryTimed(slots []design.Slot, ref gate.Reference, files jobsByFile) string {
	metric := writeTimes.FindStringSubmatch(ref.Metric)
	if metric == nil {
		return ""
	}
	for i := range slots {
		slot := &slots[i]
		at := phaseOf(slot, ref)
		if at < 0 {
			continue
		}
		for _, part := range workload.Measured(&slot.Phases[at]) {
			if part.Name != "" && part.Name != metric[1] || !timedInMemory(slot, &task{part, files.of(&part.Phase)}, metric[1]) {
				continue
			}
			return fmt.Sprintf("%s of phase %s is the time that ZFS takes to copy into memory: judge %s", ref.Metric, ref.Phase, judgeInstead(&part))
		}
	}
	return ""
}

// timedInMemory reports whether the writes of a workload, or of one of its jobs, are timed before they are durable.
func timedInMemory(slot *design.Slot, does *task, name string) bool {
	if slot.Target.ZFS == nil {
		return false
	}
	on := placesOf(slot).first(func(p *place) bool { return p.Name == string(design.VolumeOf(&does.Phase)) })
	if on == nil || on.get("sync") == "always" || on.get("sync") == changes || !on.isFiles() && !on.isDevice() {
		return false
	}
	if does.Phase.Measure == nil { // fill and fragment write without syncs
		return on.get("direct") != "always"
	}
	switch given := &does.Phase.Measure.Workload; {
	case given.Redo != nil:
		return given.Redo.Sync == "fdatasync"
	case given.OLTP != nil:
		return !on.aroundARC(uint64(blockOf(given.OLTP.BlockSize, 8<<10)), false)
	case given.Metadata != nil:
		return given.Metadata.Sync != "File"
	case given.FIO == nil || !does.file.known:
		return false
	}
	return slices.ContainsFunc(does.file.jobs, func(j job) bool {
		return (name == "" || j.Name == name) && j.Writes() && !j.opensSync() && !on.aroundARC(j.block(), j.direct())
	})
}

// aroundARC reports whether writes of blocks of one size go directly to the disks, with OpenZFS 2.3 or later: they must be direct, and of
// whole records.
func (p *place) aroundARC(block uint64, direct bool) bool {
	record, property := p.record(), p.get("direct")
	return p.isFiles() && block > 0 && record > 0 && block%record == 0 && (property == "always" || direct && property != "disabled")
}

// judgeInstead says what to judge instead for a workload whose writes are timed in memory.
func judgeInstead(part *workload.Part) string {
	if part.Phase.Measure == nil {
		return "writeBytesPerSecond, which includes the time until all is on the disks"
	}
	switch given := &part.Phase.Measure.Workload; {
	case given.Redo != nil:
		return "syncLatency in its place, or write sync: dsync"
	case given.Metadata != nil:
		return "it with sync: File"
	case given.FIO != nil:
		return "it with sync=dsync in the job, or syncLatency if the job has fsync or fdatasync"
	}
	return "writeOperationsPerSecond, which includes the time until all is on the disks"
}
