package observe

import (
	"fmt"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"
)

// disk is a whole disk below the volume with its sector sizes from sysfs.
type disk struct {
	device   *device
	folder   string
	logical  uint64
	physical uint64
}

// disks returns the whole disks of all devices below the volume, each once, in the order in which they were found.
func (o *Observer) disks() []disk {
	var list []disk
	for _, d := range o.devices.all {
		if slices.ContainsFunc(list, func(other disk) bool { return other.device.whole == d.whole }) || len(list) == maxDescribed {
			continue
		}
		found := disk{device: d, folder: d.disk}
		found.logical, _ = o.system.number(path.Join(d.disk, "queue/logical_block_size"))
		found.physical, _ = o.system.number(path.Join(d.disk, "queue/physical_block_size"))
		list = append(list, found)
	}
	return list
}

// describeDevices identifies devices by numbers instead of names, so that the same machine has the same keys after a reboot.
func (o *Observer) describeDevices(facts fingerprint) {
	if count := len(o.devices.all); count > 0 {
		facts.put("devices.count", strconv.Itoa(count))
	}
	for i, d := range o.disks() {
		put := func(key, value string) { facts.put(fmt.Sprintf("device.%d.%s", i, key), value) }
		word := func(file string) string { return o.system.word(path.Join(d.folder, file)) }
		put("name", d.device.name)
		if told := d.device.told; told != nil {
			put("path", told.Path)
			put("serial", told.Serial)
		}
		put("kind", d.device.kind)
		put("vendor", word("device/vendor"))
		put("model", word("device/model"))
		put("firmware", word("device/firmware_rev")+word("device/rev"))
		put("rotational", word("queue/rotational"))
		put("logicalSectorBytes", word("queue/logical_block_size"))
		put("physicalSectorBytes", word("queue/physical_block_size"))
		put("optimalIOBytes", word("queue/optimal_io_size"))
		put("scheduler", chosen(word("queue/scheduler")))
		put("queueDepth", word("device/queue_depth"))
		put("requests", word("queue/nr_requests"))
		put("writeCache", word("queue/write_cache"))
		put("readAheadKiB", word("queue/read_ahead_kb"))
		if sectors, found := o.system.number(path.Join(d.folder, "size")); found {
			put("sizeBytes", strconv.FormatUint(scale(sectors, sectorBytes), 10))
		}
	}
}

// chosen returns the scheduler in brackets.
func chosen(text string) string {
	if _, after, found := strings.Cut(text, "["); found {
		name, _, _ := strings.Cut(after, "]")
		return name
	}
	return text
}

// warn adds warnings about the machine before anything is measured.
func (o *Observer) warn(facts fingerprint) {
	o.warnClock(facts)
	if governor := facts["cpu.governor"]; governor == "powersave" || governor == "ondemand" || governor == "conservative" {
		facts.put("warning.governor", fmt.Sprintf("The CPU governor is %s: the frequency follows the load and so do latencies; set performance.",
			governor))
	}
	if o.mount != nil && (o.mount.FSType == "overlay" || o.mount.FSType == "tmpfs") {
		facts.put("warning.fileSystem", fmt.Sprintf("The volume is %s: this measures the node's own disk or memory, not a storage volume.",
			o.mount.FSType))
	}
	for i, d := range o.disks() {
		facts.put(fmt.Sprintf("warning.device.%d.sectors", i), o.sectorWarning(d))
		if d.device.kind == kindLoop && o.system.word(path.Join(d.folder, "loop/dio")) == "0" {
			facts.put(fmt.Sprintf("warning.device.%d.cache", i), fmt.Sprintf("%s is a loop device whose file goes through the page cache: "+
				"reads may come from memory; use losetup --direct-io=on.", d.device.name))
		}
	}
	for i, d := range o.devices.all {
		facts.put(fmt.Sprintf("warning.partition.%d.alignment", i), o.alignmentWarning(d))
	}
}

func (o *Observer) warnClock(facts fingerprint) {
	switch source := facts["clockSource"]; source {
	case "hpet", "acpi_pm", "jiffies", "refined-jiffies":
		facts.put("warning.clockSource", fmt.Sprintf("The clock source is %s: reading it takes microseconds, which are in every latency.",
			source))
	}
}

// sectorWarning compares the block size of the file system with the sectors that the disk really writes.
func (o *Observer) sectorWarning(d disk) string {
	block := o.place.blockSize
	switch {
	case d.physical == 0 || d.logical == 0:
		return ""
	case !o.target.Block && block > 0 && block < d.physical:
		return fmt.Sprintf("%s writes in units of %d bytes, but the file system has blocks of %d: small writes read first.",
			d.device.name, d.physical, block)
	case d.physical > d.logical && o.zfs != nil && d.device.kind != kindZvol:
		return fmt.Sprintf("%s says that its sectors have %d bytes, but it writes in units of %d: the pool should have an ashift of %d or more.",
			d.device.name, d.logical, d.physical, bits.Len64(d.physical)-1)
	case d.physical > d.logical && o.target.Block:
		return fmt.Sprintf("%s accepts %d bytes, but writes in units of %d: smaller or unaligned writes read first.",
			d.device.name, d.logical, d.physical)
	}
	return ""
}

// alignmentWarning returns a warning if a device does not start at a physical sector.
func (o *Observer) alignmentWarning(d *device) string {
	folder := path.Join("/sys/dev/block", d.number)
	physical, known := o.system.number(path.Join(d.disk, "queue/physical_block_size"))
	start, _ := o.system.number(path.Join(folder, "start"))
	offset, _ := o.system.number(path.Join(folder, "alignment_offset"))
	if !known || physical == 0 || offset == 0 && scale(start, sectorBytes)%physical == 0 {
		return ""
	}
	return fmt.Sprintf("%s starts at sector %d and is %d bytes off the disk's units of %d bytes: aligned writes hit two of them.",
		d.name, start, max(offset, scale(start, sectorBytes)%physical), physical)
}
