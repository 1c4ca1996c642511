package observe

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	// maxDescribed is the maximum number of devices in the fingerprint.
	maxDescribed = 16
	// maxValue is the maximum length of a value in the fingerprint.
	maxValue = 240
	// cpuLimit ends the walk through the governors.
	cpuLimit = 4096
	// zfsParameterFolder has a file for each parameter of the module.
	zfsParameterFolder = "/sys/module/zfs/parameters"
)

// zfsParameters are the module parameters that affect a benchmark.
var zfsParameters = []string{
	"zfs_arc_max", "zfs_arc_min", "zfs_arc_sys_free", "zfs_compressed_arc_enabled", "zfs_prefetch_disable", "zfetch_max_distance",
	"zfs_dio_enabled", "zfs_txg_timeout", "zfs_dirty_data_max", "zfs_dirty_data_sync_percent", "zfs_delay_min_dirty_percent",
	"zfs_immediate_write_sz", "zil_slog_bulk", "zil_nocacheflush", "zfs_nocacheflush", "zfs_sync_taskq_batch_pct",
	"zfs_vdev_max_active", "zfs_vdev_sync_read_max_active", "zfs_vdev_sync_write_max_active", "zfs_vdev_async_read_max_active",
	"zfs_vdev_async_write_max_active", "zfs_vdev_scrub_max_active", "zfs_vdev_aggregation_limit",
	"zfs_vdev_aggregation_limit_non_rotating", "zfs_vdev_read_gap_limit", "zfs_vdev_write_gap_limit", "zfs_abd_scatter_enabled",
	"metaslab_force_ganging", "spa_asize_inflation", "spa_slop_shift", "zvol_threads", "zvol_request_sync", "zfs_multihost_interval",
	"zfs_flags",
}

// fingerprint collects known facts and skips empty ones.
type fingerprint map[string]string

func (f fingerprint) put(key, value string) {
	value = strings.Join(strings.Fields(value), " ")
	if value != "" {
		f[key] = spelling.Shorten(value, maxValue)
	}
}

// Environment describes the machine, the limits of the container and the storage, with the same keys on every machine. Unknown facts are
// omitted. Keys that start with "warning." have sentences about conditions that make the results worse than the storage is.
func (o *Observer) Environment(ctx context.Context) map[string]string {
	facts := fingerprint{}
	for _, step := range []func(fingerprint){
		o.describeSystem, o.describeCPU, o.describeLimits, o.describeMount, o.describeZFS, o.describeDevices, o.warn,
	} {
		if ctx.Err() != nil {
			break
		}
		step(facts)
	}
	return facts
}

func (o *Observer) describeSystem(facts fingerprint) {
	facts.put("kernel", o.system.word("/proc/sys/kernel/osrelease"))
	facts.put("clockSource", o.system.word("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
	release, err := o.system.read("/etc/os-release")
	if err != nil {
		release, _ = o.system.read("/usr/lib/os-release")
	}
	facts.put("os", strings.Trim(parseUevent(release)["PRETTY_NAME"], `"'`))
	if text, err := o.system.read("/proc/meminfo"); err == nil {
		if values, err := parseKeyValues(text); err == nil {
			facts.put("memory.bytes", strconv.FormatUint(values["MemTotal"], 10))
		}
	}
	vendor, product := o.system.word("/sys/class/dmi/id/sys_vendor"), o.system.word("/sys/class/dmi/id/product_name")
	facts.put("machine", vendor+" "+product)
	facts.put("hypervisor", o.system.word("/sys/hypervisor/type"))
}

func (o *Observer) describeCPU(facts fingerprint) {
	text, err := o.system.read("/proc/cpuinfo")
	if err == nil {
		cpu := parseCPUInfo(text)
		facts.put("cpu.model", cpu.model)
		facts.put("virtualization", cpu.virtual)
		if cpu.count > 0 {
			facts.put("cpu.count", strconv.Itoa(cpu.count))
		}
	}
	if text, err = o.system.read("/proc/self/status"); err == nil {
		for line := range strings.Lines(text) {
			if list, found := strings.CutPrefix(line, "Cpus_allowed_list:"); found {
				facts.put("cpu.allowed", list)
			}
		}
	}
	var governors []string
	for i := range cpuLimit {
		governor := o.system.word(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", i))
		if governor == "" {
			break
		}
		if !slices.Contains(governors, governor) {
			governors = append(governors, governor)
		}
	}
	facts.put("cpu.governor", strings.Join(governors, ","))
}

// cpuInfo has the facts from /proc/cpuinfo.
type cpuInfo struct {
	model, virtual string
	count          int
}

// parseCPUInfo reads /proc/cpuinfo. Only x86 names the model and says whether there is a hypervisor; ARM has numbers instead.
func parseCPUInfo(text string) cpuInfo {
	var found cpuInfo
	first := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "processor" {
			found.count++
		}
		if first[key] == "" {
			first[key] = value
		}
	}
	found.model = first["model name"]
	if found.model == "" && first["CPU implementer"] != "" {
		found.model = fmt.Sprintf("implementer %s part %s variant %s", first["CPU implementer"], first["CPU part"], first["CPU variant"])
	}
	if flags, known := first["flags"]; known {
		found.virtual = "none visible"
		if slices.Contains(strings.Fields(flags), "hypervisor") {
			found.virtual = "virtual machine"
		}
	}
	return found
}

func (o *Observer) describeLimits(facts fingerprint) {
	if o.cgroup == "" {
		return
	}
	if limit := strings.Fields(o.system.word(path.Join(o.cgroup, "cpu.max"))); len(limit) == 2 {
		quota, quotaErr := strconv.ParseInt(limit[0], 10, 64)
		period, periodErr := strconv.ParseInt(limit[1], 10, 64)
		switch {
		case limit[0] == "max":
			facts.put("cgroup.cpuLimitMilli", "none")
		case quotaErr == nil && periodErr == nil && period > 0:
			facts.put("cgroup.cpuLimitMilli", strconv.FormatInt(mulDiv(quota, 1000, period), 10))
		}
	}
	for key, file := range map[string]string{"cgroup.memoryLimitBytes": "memory.max", "cgroup.memoryHighBytes": "memory.high",
		"cgroup.cpuWeight": "cpu.weight", "cgroup.cpus": "cpuset.cpus.effective"} {
		value := o.system.word(path.Join(o.cgroup, file))
		if value == "max" {
			value = "none"
		}
		facts.put(key, value)
	}
	facts.put("cgroup.ioLimits", o.system.word(path.Join(o.cgroup, "io.max")))
}

func (o *Observer) describeMount(facts fingerprint) {
	if o.place.blockSize > 0 {
		facts.put("mount.blockSizeBytes", strconv.FormatUint(o.place.blockSize, 10))
	}
	if o.mount == nil {
		return
	}
	facts.put("mount.type", o.mount.FSType)
	facts.put("mount.source", o.mount.Source)
	facts.put("mount.root", o.mount.Root)
	options := slices.Concat(strings.Split(o.mount.Options, ","), strings.Split(o.mount.SuperOptions, ","))
	slices.Sort(options)
	options = slices.DeleteFunc(slices.Compact(options), func(option string) bool {
		return option == "" || strings.Contains(option, "dir=") // folders of an overlay
	})
	facts.put("mount.options", strings.Join(options, ","))
}

func (o *Observer) describeZFS(facts fingerprint) {
	if o.zfs == nil {
		return
	}
	facts.put("zfs.version", o.zfs.version)
	facts.put("zfs.dataset", o.zfs.dataset)
	facts.put("zfs.pool", o.zfs.pool)
	if o.zfs.recordSize > 0 {
		facts.put("zfs.blockSizeBytes", strconv.FormatUint(o.zfs.recordSize, 10))
	}
	for _, name := range zfsParameters {
		facts.put("zfs.parameter."+name, o.system.word(path.Join(zfsParameterFolder, name)))
	}
	o.describeARC(facts)
}

// describeARC reports the bounds of the ARC that are in effect, if they were configured: the kernel also shows a configured value that ZFS
// ignores. Bounds that ZFS has chosen depend on the memory, and would differ between equivalent machines.
func (o *Observer) describeARC(facts fingerprint) {
	text, err := o.system.read(path.Join(kstats, "arcstats"))
	if err != nil {
		return
	}
	stat, err := parseKstat(text)
	if err != nil {
		return
	}
	for _, bound := range []struct{ parameter, counter, key string }{
		{"zfs_arc_min", "c_min", "zfs.arc.minBytes"}, {"zfs_arc_max", "c_max", "zfs.arc.maxBytes"},
	} {
		set, known := o.system.number(path.Join(zfsParameterFolder, bound.parameter))
		if effective, found := stat.numbers[bound.counter]; known && set != 0 && found {
			facts.put(bound.key, strconv.FormatUint(effective, 10))
		}
	}
}
