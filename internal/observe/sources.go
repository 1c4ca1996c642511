package observe

import (
	"fmt"
	"path"
	"slices"
)

// field selects a value of a file, with a name that includes its unit and a factor that converts it.
type field struct {
	key, name string
	factor    uint64
	level     bool
}

var (
	cgroupCPU = []field{
		{"usage_usec", "cpuNanoseconds", microsecond, false}, {"user_usec", "userNanoseconds", microsecond, false},
		{"system_usec", "systemNanoseconds", microsecond, false}, {"nr_periods", "periods", 1, false},
		{"nr_throttled", "throttledPeriods", 1, false}, {"throttled_usec", "throttledNanoseconds", microsecond, false},
	}
	cgroupMemory = []field{
		{"anon", "anonymousBytes", 1, true}, {"file", "fileBytes", 1, true}, {"file_dirty", "dirtyBytes", 1, true},
		{"file_writeback", "writebackBytes", 1, true}, {"slab", "slabBytes", 1, true}, {"pgmajfault", "majorFaults", 1, false},
		{"pgscan", "scannedPages", 1, false}, {"pgsteal", "reclaimedPages", 1, false},
		{"workingset_refault_file", "refaultedFilePages", 1, false},
	}
	nodePaging = []field{
		{"pgpgin", "pagedInBytes", 1024, false}, {"pgpgout", "pagedOutBytes", 1024, false}, {"pswpin", "swappedInPages", 1, false},
		{"pswpout", "swappedOutPages", 1, false}, {"pgmajfault", "majorFaults", 1, false},
		{"pgscan_direct", "directlyScannedPages", 1, false}, {"pgsteal_direct", "directlyReclaimedPages", 1, false},
		{"workingset_refault_file", "refaultedFilePages", 1, false}, {"oom_kill", "killedForMemory", 1, false},
	}
	nodeMemory = []field{
		{"MemFree", "freeBytes", 1, true}, {"MemAvailable", "availableBytes", 1, true}, {"Cached", "cachedBytes", 1, true},
		{"Dirty", "dirtyBytes", 1, true}, {"Writeback", "writebackBytes", 1, true}, {"Slab", "slabBytes", 1, true},
	}
)

// listSources returns all sources that Take reads, the most important first.
func (o *Observer) listSources() []source {
	list := []source{processSource(o.system)}
	if len(o.devices.all) > 0 {
		list = append(list, o.diskSource())
	}
	if o.zfs != nil {
		list = append(list, o.zfs.sources(o.system)...)
	}
	if o.cgroup != "" {
		list = append(list,
			o.fieldSource("cgroup", "CPU of the cgroup", path.Join(o.cgroup, "cpu.stat"), cgroupCPU),
			o.fieldSource("cgroup.memory", "Memory of the cgroup", path.Join(o.cgroup, "memory.stat"), cgroupMemory))
		if len(o.devices.all) > 0 {
			list = append(list, o.cgroupIOSource())
		}
		list = append(list, o.pressureSources("cgroup.pressure.", o.cgroup, ".pressure")...)
	}
	list = append(list,
		source{name: "CPU of the node", read: o.readNode},
		o.fieldSource("node.paging", "Paging of the node", "/proc/vmstat", nodePaging),
		o.fieldSource("node.memory", "Memory of the node", "/proc/meminfo", nodeMemory))
	return append(list, o.pressureSources("node.pressure.", "/proc/pressure", "")...)
}

func (o *Observer) readNode(groups map[string]group) error {
	text, err := o.system.read("/proc/stat")
	if err != nil {
		return err
	}
	into, err := parseNodeStat(text)
	if err != nil {
		return fmt.Errorf("/proc/stat: %w", err)
	}
	groups["node"] = into
	return nil
}

// fieldSource keeps some values of a file of names and numbers.
func (o *Observer) fieldSource(name, words, file string, fields []field) source {
	return source{name: words, read: func(groups map[string]group) error {
		text, err := o.system.read(file)
		if err != nil {
			return err
		}
		values, err := parseKeyValues(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		into := newGroup()
		for _, f := range fields {
			value, found := values[f.key]
			switch {
			case found && f.level:
				into.levels[f.name] = scale(value, f.factor)
			case found:
				into.counters[f.name] = scale(value, f.factor)
			}
		}
		groups[name] = into
		return nil
	}}
}

// diskSource reads the counters of the volume's devices and of all devices below them.
func (o *Observer) diskSource() source {
	return source{name: "Counters of the devices below the volume", read: func(groups map[string]group) error {
		text, err := o.system.read("/proc/diskstats")
		if err != nil {
			return err
		}
		disks, err := parseDiskstats(text)
		if err != nil {
			return err
		}
		for _, d := range o.devices.all {
			into, found := disks[d.number]
			if !found {
				return fmt.Errorf("/proc/diskstats has no line of %s (%s)", d.name, d.number)
			}
			groups["device."+d.name] = into
		}
		return nil
	}}
}

// cgroupIOSource reads the I/O of this cgroup on the devices.
func (o *Observer) cgroupIOSource() source {
	return source{name: "Device I/O of the cgroup", read: func(groups map[string]group) error {
		file := path.Join(o.cgroup, "io.stat")
		text, err := o.system.read(file)
		if err != nil {
			return err
		}
		disks, err := parseIOStat(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, d := range o.devices.all {
			if into, found := disks[d.whole]; found { // only whole disks have lines, and only after the first I/O
				groups["cgroup.io."+d.name] = into
			}
		}
		return nil
	}}
}

func (o *Observer) pressureSources(prefix, folder, suffix string) []source {
	if !o.system.exists(path.Join(folder, "cpu"+suffix)) {
		reason := fmt.Errorf("there is no %s: the kernel was built or started without pressure stall information, or not for cgroups",
			path.Join(folder, "cpu"+suffix))
		return []source{{name: "Pressure in " + folder, read: func(map[string]group) error { return reason }}}
	}
	var list []source
	for _, kind := range []string{"cpu", "io", "memory"} {
		file := path.Join(folder, kind+suffix)
		list = append(list, source{name: "Pressure in " + file, read: func(groups map[string]group) error {
			text, err := o.system.read(file)
			if err != nil {
				return err
			}
			into, err := parsePressure(text)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			groups[prefix+kind] = into
			return nil
		}})
	}
	return list
}

// rank orders groups by importance, for the case that there is no room for all.
func rank(name string) int {
	prefixes := []string{"node", "process", "cgroup", "zfs.arc", "zfs.dataset", "zfs.pool", "zfs.allocation", "zfs.zil", "zfs.txgs",
		"zfs.transactions"}
	if index := slices.Index(prefixes, name); index >= 0 {
		return index
	}
	return len(prefixes)
}
