package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Disk describes a disk.
type Disk struct {
	// Path is the stable path by which the caller named the disk.
	Path string
	// Kernel is its current name in the kernel, such as sdb. The name can change with a reboot.
	Kernel string
	// Number is major:minor.
	Number string
	// Sequence is a number that the kernel gives to each disk that appears, and never reuses. Empty on old kernels.
	Sequence            string
	Serial              string
	Model               string
	SizeBytes           int64
	LogicalSectorBytes  int64
	PhysicalSectorBytes int64
	Rotational          bool
	ReadOnly            bool
	// WriteCache as the kernel says it: "write back" or "write through".
	WriteCache string
	// Findings are all reasons not to use it.
	Findings []Finding
	// Pools are the labels of pools that were found on it.
	Pools []PoolLabel
	// AfterPool says that it has the partition table that ZFS makes on a whole disk. ZFS leaves this table when the label of a pool is
	// cleared.
	AfterPool bool

	partitions []part
	// endsSum is a checksum of both ends. It is 0 until they have been read.
	endsSum uint64
	// wiped is the marker of an earlier wipe, or nil.
	wiped *marker
}

// Stable reports whether a path names the same disk after a reboot.
func Stable(path string) bool { return stablePattern.MatchString(path) }

// identify reads the properties of the disk. Reasons not to use it are added to the findings.
func (n *Node) identify(path string) (Disk, error) {
	disk := Disk{Path: path}
	if !Stable(path) {
		disk.find(NotStable, "the path is not below /dev/disk/by-id or /dev/disk/by-path: it can mean another disk after a reboot")
		return disk, nil
	}
	kernel, err := n.resolve(path)
	if errors.Is(err, os.ErrNotExist) {
		disk.find(Missing, "this device does not exist on this node")
		return disk, nil
	}
	if err != nil {
		return disk, fmt.Errorf("following %s: %w", path, err)
	}
	disk.Kernel = kernel
	block := filepath.Join("sys/class/block", kernel)
	if disk.Number, err = n.text(block, "dev"); err != nil || disk.Number == "" {
		return disk, errors.Join(fmt.Errorf("the kernel knows no block device %s", kernel), err)
	}
	if reason := n.notWhole(kernel); reason != "" {
		disk.find(NotWholeDisk, "%s", reason)
		return disk, nil
	}
	return disk, errors.Join(n.measure(&disk, block), n.name(&disk, block))
}

// Identify finds the disk that a path leads to. It does not open the disk, so the contents and users remain unknown.
func (n *Node) Identify(path string) (Disk, error) {
	disk, err := n.identify(path)
	if err != nil {
		disk.find(Unreadable, "%v", err)
	}
	if len(disk.Findings) > 0 {
		return disk, &RefusedError{Path: path, Serial: disk.Serial, Findings: disk.Findings}
	}
	return disk, nil
}

// notWhole says why a device is not a whole disk.
func (n *Node) notWhole(kernel string) string {
	if index, err := n.text("sys/class/block", kernel, "partition"); err != nil || index != "" {
		return fmt.Sprintf("%s is a partition: use the whole disk", kernel)
	}
	for prefix, kind := range map[string]string{"dm-": "a device of the device mapper (LVM, LUKS, multipath)", "md": "a software RAID",
		"zd": "a ZFS volume", "zram": "compressed memory", "ram": "memory", "sr": "an optical drive", "fd": "a floppy",
		"nbd": "a network block device", "drbd": "a DRBD device", "bcache": "a bcache device"} {
		if rest, found := strings.CutPrefix(kernel, prefix); found && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return fmt.Sprintf("%s is %s, not a disk", kernel, kind)
		}
	}
	if rest, found := strings.CutPrefix(kernel, "loop"); found && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		return kernel + " is a loop device, not a disk: use the disk below it, or add a second disk to a virtual machine for testing"
	}
	// Physical disks are below a bus, virtual ones are not. NVMe disks with several paths are below virtual/nvme-subsystem.
	target, err := filepath.EvalSymlinks(n.path("sys/class/block", kernel))
	if err != nil {
		return fmt.Sprintf("%s has no place in /sys: %v", kernel, err)
	}
	if strings.Contains(target, "/devices/virtual/block/") {
		return fmt.Sprintf("%s is a virtual device, not a disk", kernel)
	}
	return ""
}

func (n *Node) measure(disk *Disk, block string) error {
	size, sizeErr := n.number(block, "size")
	logical, logicalErr := n.number(block, "queue/logical_block_size")
	physical, physicalErr := n.number(block, "queue/physical_block_size")
	rotational, rotationalErr := n.number(block, "queue/rotational")
	readOnly, readOnlyErr := n.number(block, "ro")
	cache, cacheErr := n.text(block, "queue/write_cache")
	sequence, sequenceErr := n.text(block, "diskseq")
	partitions, partitionsErr := n.partitions(disk.Kernel)
	disk.SizeBytes, disk.LogicalSectorBytes, disk.PhysicalSectorBytes = size*sectorUnit, logical, physical
	disk.Rotational, disk.ReadOnly, disk.WriteCache, disk.Sequence = rotational == 1, readOnly == 1, cache, sequence
	disk.partitions = partitions
	return errors.Join(sizeErr, logicalErr, physicalErr, rotationalErr, readOnlyErr, cacheErr, sequenceErr, partitionsErr)
}

// name reads model and serial number. The place of the serial number depends on the kind of disk.
func (n *Node) name(disk *Disk, block string) error {
	model, err := n.text(block, "device/model")
	if err != nil {
		return err
	}
	disk.Model = model
	disk.Serial, err = n.serial(disk.Kernel, disk.Number)
	return err
}

func (n *Node) serial(kernel, number string) (string, error) {
	for _, file := range []string{"serial", "device/serial"} {
		serial, err := n.text("sys/class/block", kernel, file)
		if err != nil {
			return "", err
		}
		if serial != "" {
			return serial, nil
		}
	}
	// SCSI and SATA: page 0x80 of the vital product data, four bytes of header before the number.
	page, err := os.ReadFile(n.path("sys/class/block", kernel, "device/vpd_pg80"))
	if err == nil && len(page) > 4 && page[1] == 0x80 {
		length := min(int(page[2])<<8|int(page[3]), len(page)-4)
		if serial := string(bytes.Trim(page[4:4+length], " \x00")); serial != "" {
			return serial, nil
		}
	}
	return n.udevProperty(number, "ID_SERIAL_SHORT")
}

// udevProperty returns a property that udev recorded when a device appeared. It is empty if there is none.
func (n *Node) udevProperty(number, key string) (string, error) {
	properties, err := n.text("run/udev/data", "b"+number)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(properties) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), "E:"+key+"="); found {
			return value, nil
		}
	}
	return "", nil
}

// recordedSerial returns the serial number of any disk of the node, to compare it with that of the disk being checked. The kernel asks a
// virtio disk each time its number is read, and a silent disk must not block the check of others. So for a virtio disk, it prefers the
// number that udev recorded.
func (n *Node) recordedSerial(kernel, number string) (string, error) {
	if strings.HasPrefix(kernel, "vd") {
		if serial, err := n.udevProperty(number, "ID_SERIAL"); err != nil || serial != "" {
			return serial, err
		}
	}
	return n.serial(kernel, number)
}

// special matches the characters of serial numbers that udev replaces.
var special = regexp.MustCompile(`[^a-zA-Z0-9]`)

// plainSerial converts a serial number to the form in which udev records it.
func plainSerial(serial string) string { return special.ReplaceAllString(serial, "_") }

// sameSerial returns the disks of the node that have the serial number. There should be exactly one.
func (n *Node) sameSerial(serial string) ([]string, error) {
	names, err := n.names("sys/block")
	if err != nil {
		return nil, err
	}
	var same []string
	for _, name := range names {
		number, err := n.text("sys/class/block", name, "dev")
		if err != nil {
			return nil, err
		}
		other, err := n.recordedSerial(name, number)
		if err != nil {
			return nil, err
		}
		if plainSerial(other) == plainSerial(serial) {
			same = append(same, name)
		}
	}
	return same, nil
}

// Warnings returns facts about the disk that users should know before they measure it.
func (d Disk) Warnings(ashift int) []string {
	if d.SizeBytes == 0 {
		return nil
	}
	var warnings []string
	block := int64(1) << max(ashift, 0)
	if ashift > 0 && block < d.PhysicalSectorBytes {
		warnings = append(warnings, fmt.Sprintf("ashift %d writes blocks of %d bytes to sectors of %d: the disk must read and rewrite a "+
			"whole sector for each block",
			ashift, block, d.PhysicalSectorBytes))
	}
	if ashift > 0 && d.PhysicalSectorBytes > 0 && block > 4*d.PhysicalSectorBytes {
		warnings = append(warnings, fmt.Sprintf("ashift %d makes blocks of %d bytes on sectors of %d: small records take more space", ashift,
			block, d.PhysicalSectorBytes))
	}
	if d.LogicalSectorBytes < d.PhysicalSectorBytes {
		warnings = append(warnings, fmt.Sprintf("sectors of %d bytes are shown as %d: the disk emulates the smaller ones", d.PhysicalSectorBytes,
			d.LogicalSectorBytes))
	}
	if d.Rotational {
		warnings = append(warnings, "the disk is rotational, according to the kernel: random reads will be slow")
	}
	if d.WriteCache == "write back" {
		warnings = append(warnings, "the disk has a volatile write cache, according to the kernel: the cost of flushes depends on it")
	}
	if d.Serial == "" {
		warnings = append(warnings, "the disk reports no serial number: it cannot be listed for reuse")
	}
	return warnings
}
