package device

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// headSize and tailSize hold the marks of all that is known, and the labels of ZFS.
	headSize = 4 << 20
	tailSize = 1 << 20
	// gptSize is a table with its header, at either end.
	gptSize = 128 * gptEntrySize
)

// contents finds what is written on a disk where marks are left.
func (n *Node) contents(disk *Disk) error {
	file, err := n.open(disk.Kernel, disk.Number, os.O_RDONLY|unix.O_EXCL)
	if errors.Is(err, unix.EBUSY) {
		disk.find(InUse, "the kernel has it in exclusive use: a mount in some namespace, a pool, swap, or a device made of it")
		// What is on it is still worth telling.
		file, err = n.open(disk.Kernel, disk.Number, os.O_RDONLY)
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", disk.Kernel, err)
	}
	defer file.Close() //nolint:errcheck // opened for reading: nothing is lost
	if disk.SizeBytes < headSize+tailSize {
		disk.find(TooSmall, "it has %d bytes, less than any pool needs", disk.SizeBytes)
		return nil
	}
	entries, err := readGPT(file, max(disk.LogicalSectorBytes, sectorUnit))
	if err != nil {
		disk.find(PartitionTable, "it has %v", err)
	}
	disk.AfterPool = err == nil && afterPool(entries, disk.partitions, max(disk.LogicalSectorBytes, sectorUnit))
	return errors.Join(n.labels(disk, file), areas(disk, file))
}

// labels looks for the labels of ZFS on the disk and on each partition.
func (n *Node) labels(disk *Disk, file *os.File) error {
	imported, err := n.importedPools()
	if err != nil {
		return err
	}
	vdevs := append([]part{{kernel: disk.Kernel, size: disk.SizeBytes}}, disk.partitions...)
	told := map[string]bool{}
	for _, vdev := range vdevs {
		for _, offset := range labelOffsets(vdev.size) {
			if offset < 0 {
				continue
			}
			label, err := readLabel(file, vdev.start+offset)
			if errors.Is(err, unix.EIO) {
				return err
			}
			if err != nil {
				disk.add(PoolMember, "zfs_member", vdev.start+offset, fmt.Sprintf("%s has %v", vdev.kernel, err))
				continue
			}
			if label == nil {
				continue
			}
			disk.Pools = append(disk.Pools, *label)
			reason, detail := label.judge(vdev.kernel, imported)
			if !told[detail] {
				told[detail] = true
				disk.add(reason, "zfs_member", label.Offset, detail)
			}
		}
	}
	return nil
}

// Left says whether the disk was taken out of its pool: ZFS then writes a label of no transaction group.
func (l PoolLabel) Left() bool { return l.State == PoolActive && l.Txg == 0 }

// judge says what a label means. That of an active pool is never set aside: the pool may run on another node.
func (l PoolLabel) judge(kernel string, imported map[string]bool) (Reason, string) {
	pool := fmt.Sprintf("pool %q (guid %d)", l.Name, l.GUID)
	switch {
	case l.Left():
		return PoolMember, fmt.Sprintf("%s was taken out of %s", kernel, pool)
	case l.State == PoolActive && imported[l.Name]:
		return RunningPool, fmt.Sprintf("%s belongs to the running %s", kernel, pool)
	case l.State == PoolActive:
		return ActivePool, fmt.Sprintf("%s belongs to %s, which host %q (id %d) had last and did not export: it may run there", kernel, pool, l.HostName, l.HostID)
	case l.State == PoolSpare || l.State == PoolCache:
		return ActivePool, fmt.Sprintf("%s is a %s device of a pool that its label does not name: remove it from that pool first", kernel, l.State)
	default:
		return PoolMember, fmt.Sprintf("%s belongs to the %s %s, last of host %q", kernel, l.State, pool, l.HostName)
	}
}

func (d *Disk) add(reason Reason, kind string, offset int64, detail string) {
	d.Findings = append(d.Findings, Finding{Reason: reason, Type: kind, Offset: offset, Detail: detail})
}

// ends are buffers for both ends of a device. They are used again: an agent that looks at many disks would else hold many.
var ends = sync.Pool{New: func() any { return new([headSize + tailSize]byte) }}

// areas looks at where marks are left: both ends of the disk and of each partition. All must be blank, but for the
// table that ZFS makes.
func areas(disk *Disk, file *os.File) error {
	buffer := ends.Get().(*[headSize + tailSize]byte)
	defer ends.Put(buffer)
	devices := append([]part{{kernel: disk.Kernel, size: disk.SizeBytes}}, disk.partitions...)
	for at, device := range devices {
		head, err := readInto(buffer[:min(headSize, device.size)], file, device.start)
		if err != nil {
			return err
		}
		tail, err := readInto(buffer[headSize:][:min(tailSize, device.size)], file, device.start+max(device.size-tailSize, 0))
		if err != nil {
			return err
		}
		whole := at == 0
		known := false
		for _, mark := range withDistant(file, device, named(head, tail, device.size)) {
			if whole && disk.AfterPool && mark.table {
				continue
			}
			known = true
			disk.mark(device, mark)
		}
		if known || len(disk.Pools) > 0 {
			continue
		}
		if offset := disk.firstData(device, head, tail, whole); offset >= 0 {
			disk.add(UnknownData, "", device.start+offset, fmt.Sprintf("%s has data of an unknown kind at byte %d, where file systems and tables leave their marks", device.kernel, offset))
		}
	}
	if len(disk.partitions) > 0 && !disk.AfterPool && !disk.has(PartitionTable) {
		disk.find(PartitionTable, "the kernel sees %d partitions on it", len(disk.partitions))
	}
	return nil
}

func (d *Disk) has(reason Reason) bool {
	for _, finding := range d.Findings {
		if finding.Reason == reason {
			return true
		}
	}
	return false
}

func (d *Disk) mark(device part, mark mark) {
	at := mark.at
	if at < 0 {
		at += device.size
	}
	if mark.table {
		d.add(PartitionTable, mark.kind, device.start+at, fmt.Sprintf("%s has a partition table (%s)", device.kernel, mark.kind))
		return
	}
	d.add(Signature, mark.kind, device.start+at, fmt.Sprintf("%s has the signature of %s", device.kernel, mark.kind))
}

// withDistant adds marks that stand behind what was read of the head: btrfs keeps copies.
func withDistant(file *os.File, device part, found []mark) []mark {
	for _, mark := range marks {
		if mark.at >= headSize && mark.at+int64(len(mark.magic)) < device.size {
			if data, err := readAt(file, device.start+mark.at, int64(len(mark.magic))); err == nil && string(data) == mark.magic {
				found = append(found, mark)
			}
		}
	}
	return found
}

// firstData is the place of the first byte that is not blank, or -1. Behind a pool whose label was cleared, the table
// may stand, and between the labels the pool's own data.
func (d *Disk) firstData(device part, head, tail []byte, whole bool) int64 {
	skipHead, skipTail := int64(0), int64(0)
	switch {
	case d.AfterPool && whole:
		sector := max(d.LogicalSectorBytes, sectorUnit)
		skipHead, skipTail = 2*sector+gptSize, sector+gptSize
		head = head[:min(int64(len(head)), d.partitions[0].start)]
	case d.AfterPool:
		// The labels at the end stand on round places.
		start := device.size - int64(len(tail))
		labels := min(max(labelOffsets(device.size)[2]-start, 0), int64(len(tail)))
		head, tail = cleared(head[:min(len(head), 2*labelSize)]), cleared(tail[labels:])
	}
	if at := nonZero(head, skipHead, int64(len(head))); at >= 0 {
		return at
	}
	if at := nonZero(tail, 0, int64(len(tail))-skipTail); at >= 0 {
		return device.size - int64(len(tail)) + at
	}
	return -1
}

// checksumMagic begins the checksum of the boot area of a label.
var checksumMagic = []byte{0x11, 0x7a, 0x0c, 0xb1, 0x7a, 0xda, 0x10, 0x02}

// cleared blanks, in what was read of labels, the checksum of their empty boot area: zpool labelclear leaves it.
func cleared(labels []byte) []byte {
	const checksumSize = 40
	for end := configStart; end <= len(labels); end += labelSize {
		if checksum := labels[end-checksumSize : end]; bytes.HasPrefix(checksum, checksumMagic) {
			clear(checksum)
		}
	}
	return labels
}

func nonZero(data []byte, from, to int64) int64 {
	for at := max(from, 0); at < to; at++ {
		if data[at] != 0 {
			return at
		}
	}
	return -1
}
