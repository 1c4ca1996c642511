package observe

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	// mostThrottled is the share of the time for which a CPU limit may throttle the workload, in parts per million.
	mostThrottled = 50_000
	// mostForeign is how much others may read or write on the devices, in parts per million of the workload's own reads or writes. Less
	// than leastForeignBytes never counts.
	mostForeign       = 100_000
	leastForeignBytes = 4 << 20
	// mostBusy is the share of the time that a device may be busy while the workload does nothing, in parts per million.
	mostBusy = 200_000
)

// Load describes the other activity during a measurement.
type Load struct {
	// Elapsed is the duration. Throttled is how long the CPU limit of the cgroup stopped its CPUs, in total.
	Elapsed, Throttled time.Duration
	// CPUs that the pod may use; 0 if unknown.
	CPUs int
	// Devices are those of the volume, if it does not share them. Busy is how long the busiest one was busy.
	Devices string
	Busy    time.Duration
	// Read and Written are the bytes of the workload's processes on these devices, ForeignRead and ForeignWritten those of others. The bytes
	// written are 0 on a file system, because the kernel writes its journal on behalf of the workload.
	Read, ForeignRead       int64
	Written, ForeignWritten int64
}

// collectLoad derives the load from the changes of the sources.
func (o *Observer) collectLoad(sources map[string]sourceDetail, elapsed time.Duration) Load {
	load := Load{Elapsed: elapsed, Throttled: time.Duration(sources["cgroup"].Changes["throttledNanoseconds"]), CPUs: o.cpus}
	counted := o.devices.counted()
	// A folder of a file system shares its devices with the rest of it, whether it is mounted by itself or not.
	shared := o.mount != nil && (o.mount.Root != "/" || o.mount.Point != o.place.path)
	if o.zfs != nil || shared || len(counted) == 0 {
		return load
	}
	load.Devices = strings.Join(namesOf(counted), ", ")
	for _, one := range counted {
		load.Busy = max(load.Busy, time.Duration(sources["device."+one.name].Changes["busyNanoseconds"]))
	}
	foreign := func(key string) (own, others int64) {
		all, known := sumOf(sources, counted, key)
		own, mine := sources["process"].Changes[key]
		if !known || !mine {
			return 0, 0
		}
		return own, max(0, all-own)
	}
	load.Read, load.ForeignRead = foreign("readBytes")
	if o.mount == nil {
		load.Written, load.ForeignWritten = foreign("writtenBytes")
	}
	return load
}

// countCPUs returns how many CPUs the pod may use: the smallest number of all sources, or 0 if it is unknown. The kernel throttles a cgroup
// on each CPU separately.
func (o *Observer) countCPUs() int {
	lists := []string{o.system.word("/sys/devices/system/cpu/online")}
	if o.cgroup != "" {
		lists = append(lists, o.system.word(path.Join(o.cgroup, "cpuset.cpus.effective")))
	}
	status, _ := o.system.read("/proc/self/status")
	for line := range strings.Lines(status) {
		if list, found := strings.CutPrefix(line, "Cpus_allowed_list:"); found {
			lists = append(lists, strings.TrimSpace(list))
		}
	}
	least := 0
	for _, list := range lists {
		if count := lengthOfList(list); count > 0 && (least == 0 || count < least) {
			least = count
		}
	}
	return least
}

// lengthOfList returns the number of CPUs in a list such as 0-3,8, or 0 if it is not a list.
func lengthOfList(list string) int {
	count := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, fromErr := strconv.Atoi(first)
		to, toErr := strconv.Atoi(last)
		if fromErr != nil || toErr != nil || from < 0 || to < from || to >= cpuLimit {
			return 0
		}
		count += to - from + 1
	}
	return count
}

// JudgeQuiet describes other activity on the devices before the workload begins. It is empty if none is known.
func JudgeQuiet(load Load) string {
	if load.Devices == "" || mulDiv(load.Busy.Nanoseconds(), million, load.Elapsed.Nanoseconds()) <= mostBusy {
		return ""
	}
	return fmt.Sprintf("%s was busy for %s of %s before the measurement: something else uses it", load.Devices,
		load.Busy.Round(time.Millisecond), load.Elapsed.Round(time.Millisecond))
}

// JudgeLoad says whether the CPU limit or other activity on the devices disturbed the workload. Empty if not, as far as is known.
func JudgeLoad(load Load) (throttled, foreign string) {
	held := load.Throttled / time.Duration(max(1, load.CPUs))
	if share := mulDiv(held.Nanoseconds(), million, load.Elapsed.Nanoseconds()); share > mostThrottled {
		throttled = fmt.Sprintf("the CPU limit of the pod throttled it for %s of %s: raise or remove podTemplate.resources.limits.cpu, "+
			"or use fewer workers (postgres: clients)",
			held.Round(time.Millisecond), load.Elapsed.Round(time.Millisecond))
	}
	for _, one := range []struct {
		word        string
		own, others int64
	}{{"read", load.Read, load.ForeignRead}, {"wrote", load.Written, load.ForeignWritten}} {
		if foreign == "" && one.others >= leastForeignBytes && mulDiv(one.others, million, max(1, one.own)) > mostForeign {
			foreign = fmt.Sprintf("while the workload %s %s on %s, others %[1]s %[4]s there: keep other load off these disks during a measurement",
				one.word, size(one.own), load.Devices, size(one.others))
		}
	}
	return throttled, foreign
}
