package observe

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

// Kinds of devices.
const (
	kindDisk      = "disk"
	kindPartition = "partition"
	kindMapper    = "dm"
	kindRAID      = "md"
	kindLoop      = "loop"
	kindZvol      = "zvol"
)

// maxDevices is more than any volume has below it; it ends a walk through a broken or hostile tree.
const maxDevices = 128

// device is one block device at or below the volume.
type device struct {
	number string // major:minor
	name   string
	kind   string
	disk   string // the folder in sysfs of the whole disk
	whole  string // major:minor of the whole disk
	below  []*device
	shared bool   // other devices are on it too
	hidden string // why the devices below it are unknown
	cached string // why its reads may come from memory that is not visible here, and what to do about it
	// told is set for a disk of a pool. The agent of the node counts its reads and writes. This package only describes it, and measures how
	// long its requests take and how busy it is.
	told *Disk
}

// deviceTree has all block devices below a volume.
type deviceTree struct {
	system   system
	top      []*device // the volume itself
	all      []*device // from the volume down, each once
	byNumber map[string]*device
}

func newDeviceTree(sys system) *deviceTree {
	return &deviceTree{system: sys, byNumber: map[string]*device{}}
}

// add resolves a device and all devices below it as a part of the volume.
func (t *deviceTree) add(number string) error {
	d, err := t.resolve(number)
	if err != nil {
		return err
	}
	if !slices.Contains(t.top, d) {
		t.top = append(t.top, d)
	}
	return nil
}

func (t *deviceTree) resolve(number string) (*device, error) {
	if known := t.byNumber[number]; known != nil {
		return known, nil
	}
	if len(t.all) >= maxDevices {
		return nil, fmt.Errorf("there are more than %d devices below the volume", maxDevices)
	}
	folder := path.Join("/sys/dev/block", number)
	text, err := t.system.read(path.Join(folder, "uevent"))
	if err != nil {
		return nil, err
	}
	d := &device{number: number, name: parseUevent(text)["DEVNAME"], disk: folder}
	if d.name == "" {
		return nil, fmt.Errorf("%s/uevent has no DEVNAME", folder)
	}
	d.kind = t.kindOf(folder, d.name)
	d.shared = len(t.system.list(path.Join(folder, "holders"))) > 1
	t.byNumber[number] = d
	t.all = append(t.all, d)
	if d.kind == kindPartition {
		if d.disk, err = t.system.parent(folder); err != nil {
			return nil, err
		}
	}
	d.whole = t.system.word(path.Join(d.disk, "dev"))
	if err := t.descend(d, folder); err != nil {
		d.hidden = err.Error()
		if d.kind == kindLoop && d.cached == "" && t.system.word(path.Join(folder, "loop/dio")) != "1" {
			d.cached = fmt.Sprintf("reads of the loop device %s may come from the page cache of the node, which is not seen from here (%s): "+
				"use losetup --direct-io=on", d.name, d.hidden)
		}
	}
	return d, nil
}

func (t *deviceTree) kindOf(folder, name string) string {
	for _, kind := range []struct{ file, name string }{
		{"partition", kindPartition}, {"loop", kindLoop}, {"dm", kindMapper}, {"md", kindRAID},
	} {
		if t.system.exists(path.Join(folder, kind.file)) {
			return kind.name
		}
	}
	if isZvol(name) {
		return kindZvol
	}
	return kindDisk
}

// isZvol recognizes a device of ZFS by its name: zd, a number, and p with a number for partitions.
func isZvol(name string) bool {
	rest, found := strings.CutPrefix(name, "zd")
	return found && rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

// descend follows the device mapper, software RAID and loop devices down to their members. It ends at a partition, unless its disk is
// virtual.
func (t *deviceTree) descend(d *device, folder string) error {
	switch d.kind {
	case kindLoop:
		return t.descendLoop(d, folder)
	case kindPartition:
		return t.descendPartition(d)
	case kindMapper:
		if id := t.system.word(path.Join(folder, "dm/uuid")); strings.HasPrefix(id, "VDO-") || strings.HasSuffix(id, "-vpool") {
			return errors.New("VDO compresses: what is below it moves fewer bytes")
		}
	}
	for _, name := range t.system.list(path.Join(folder, "slaves")) {
		number := t.system.word(path.Join(folder, "slaves", name, "dev"))
		if number == "" {
			number = t.system.word(path.Join("/sys/class/block", name, "dev"))
		}
		lower, err := t.resolve(number)
		if err != nil {
			return err
		}
		d.below = append(d.below, lower)
	}
	return nil
}

// descendPartition continues below a disk that consists of other devices, or that a file or pool backs.
func (t *deviceTree) descendPartition(d *device) error {
	if d.whole == "" {
		return fmt.Errorf("%s/dev can't be read", d.disk)
	}
	kind := t.kindOf(d.disk, path.Base(d.disk))
	if kind == kindDisk {
		return nil
	}
	lower, err := t.resolve(d.whole)
	if err != nil {
		return err
	}
	d.below = []*device{lower}
	return nil
}

// descendLoop finds the device of the file behind a loop device, if that file is visible from here.
func (t *deviceTree) descendLoop(d *device, folder string) error {
	file := t.system.word(path.Join(folder, "loop/backing_file"))
	if file == "" {
		return errors.New("the kernel does not report the file below the loop device")
	}
	text, err := t.system.read("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	mounts, err := mountinfo.Parse(text)
	if err != nil {
		return err
	}
	m, err := mountinfo.At(mounts, file)
	if !t.system.exists(file) || err != nil { // a mount point above the file proves nothing: a container has a / too
		return errors.New("the file below the loop device is not in this container")
	}
	switch m.FSType {
	case "zfs": // it caches even if direct I/O is requested
		d.cached = fmt.Sprintf("reads of the loop device %s may come from the ARC of the node: its file is on ZFS; put it on another file "+
			"system with losetup --direct-io=on", d.name)
		return errors.New("the file below the loop device is on ZFS")
	case "tmpfs", "ramfs":
		d.cached = fmt.Sprintf("reads of the loop device %s come from memory: its file is on %s; put it on a disk with losetup --direct-io=on",
			d.name, m.FSType)
	}
	numbers, err := devicesOfMount(t.system, m)
	if err != nil {
		return err
	}
	for _, number := range numbers {
		lower, err := t.resolve(number)
		if err != nil {
			return err
		}
		d.below = append(d.below, lower)
	}
	return nil
}

// counted returns the lowest level of devices that belong to this volume alone: members of a RAID, but neither the disk below a logical
// volume that others share, nor the devices below a loop device, which has a cache in between. A zvol does not count, because it is above
// the cache of ZFS. Nor do the disks of a pool, because the agent of the node counts their reads and writes.
func (t *deviceTree) counted() []*device {
	var level []*device
	for _, d := range t.top {
		if d.told == nil {
			level = append(level, lowestOwn(d)...)
		}
	}
	return slices.DeleteFunc(unique(level), func(d *device) bool { return isZvol(d.name) || d.told != nil })
}

func lowestOwn(d *device) []*device {
	if d.kind == kindLoop || len(d.below) == 0 {
		return []*device{d}
	}
	var level []*device
	for _, lower := range d.below {
		if lower.shared {
			return []*device{d}
		}
		level = append(level, lowestOwn(lower)...)
	}
	return level
}

// leaves returns the devices at the very bottom, or none if some are unknown.
func (t *deviceTree) leaves() []*device {
	var bottom []*device
	for _, d := range t.all {
		if d.hidden != "" {
			return nil
		}
		if len(d.below) == 0 {
			bottom = append(bottom, d)
		}
	}
	return bottom
}

func unique(devices []*device) []*device {
	var once []*device
	for _, d := range devices {
		if !slices.Contains(once, d) {
			once = append(once, d)
		}
	}
	return once
}

// doubt says how reads may have come from memory although all counters show them. It is empty if they cannot have.
func (t *deviceTree) doubt() string {
	for _, d := range t.all {
		if d.cached != "" {
			return d.cached
		}
	}
	return ""
}

// has reports whether there is a device of that kind.
func (t *deviceTree) has(kind string) bool {
	return slices.ContainsFunc(t.all, func(d *device) bool { return d.kind == kind })
}

// parseUevent reads NAME=value lines.
func parseUevent(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "="); found {
			values[name] = value
		}
	}
	return values
}
