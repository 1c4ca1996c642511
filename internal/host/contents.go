package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// headSize and tailSize cover the labels of ZFS and the marks of all known contents, except for the marks that withDistant looks for.
	headSize = 4 << 20
	tailSize = 1 << 20
	// endSize is how much is read completely at each end of a disk.
	endSize = 16 << 20
	// gptSize is the size of a GUID partition table without its header.
	gptSize = 128 * gptEntrySize
)

// contents finds the contents of a disk.
func (n *Node) contents(disk *Disk) error {
	return n.read(disk, func(file io.ReaderAt) error { return n.search(disk, file, time.Now) })
}

// read opens a disk, exclusively if possible, and calls a function that reads it.
func (n *Node) read(disk *Disk, use func(file io.ReaderAt) error) error {
	file, err := n.openDirect(disk.Kernel, disk.Number, unix.O_EXCL)
	if errors.Is(err, unix.EBUSY) {
		disk.find(InUse, "the kernel has it in exclusive use: a mount in some namespace, a pool, swap, or a device made of it")
		// The contents of the disk are still worth reporting.
		file, err = n.openDirect(disk.Kernel, disk.Number, 0)
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", disk.Kernel, err)
	}
	defer file.Close() //nolint:errcheck // opened for reading: nothing is lost
	if err := n.writeOut(disk); err != nil {
		return err
	}
	return use(file)
}

// search looks for contents on a disk: first where contents leave marks, and if there are none, in samples of the middle of the disk.
func (n *Node) search(disk *Disk, file io.ReaderAt, now func() time.Time) error {
	if disk.SizeBytes < headSize+tailSize {
		disk.find(TooSmall, "it has %d bytes, less than any pool needs", disk.SizeBytes)
		return nil
	}
	sector := max(disk.LogicalSectorBytes, sectorUnit)
	entries, err := readGPT(file, sector)
	if err != nil {
		disk.find(PartitionTable, "it has %v", err)
	}
	disk.AfterPool = err == nil && afterPool(entries, disk.partitions, sector)
	if disk.wiped, err = disk.readMarker(file); err != nil {
		return err
	}
	found, err := searchEnds(file, disk)
	if err != nil {
		return err
	}
	if disk.AfterPool { // the data that a pool leaves may look like anything
		found = ends{data: unknownEnds}
	}
	if err := errors.Join(n.labels(disk, file, found), areas(disk, file, found.data)); err != nil || !onlyStale(disk.Findings) {
		return err
	}
	if disk.AfterPool {
		if cleared, err := labelsCleared(file, disk.partitions[0]); err != nil || cleared {
			return err
		}
	}
	return disk.searchMiddle(file, now)
}

// labels looks for labels of ZFS on the disk, on each partition that the kernel or a partition table has, and wherever else the ends of the
// disk seem to contain one.
func (n *Node) labels(disk *Disk, file io.ReaderAt, ends ends) error {
	imported, err := n.importedPools()
	if err != nil {
		return err
	}
	vdevs := append([]part{{kernel: disk.Kernel, size: disk.SizeBytes}}, disk.partitions...)
	if !disk.AfterPool {
		former, err := formerPartitions(disk, file)
		if err != nil {
			return err
		}
		vdevs = append(vdevs, former...)
	}
	look := labelLook{ends: ends, disk: disk, file: file, looked: map[int64]bool{}, front: map[int64]bool{}}
	for _, vdev := range vdevs {
		for at, offset := range labelOffsets(vdev.size) {
			if offset < 0 {
				continue
			}
			if err := look.at(vdev.kernel, vdev.start+offset, at < 2); err != nil {
				return err
			}
		}
	}
	for _, offset := range ends.labels {
		if err := look.at(disk.Kernel, offset, false); err != nil {
			return err
		}
	}
	look.tell(imported)
	return nil
}

// labelLook collects the labels that were found.
type labelLook struct {
	disk   *Disk
	ends   ends
	file   io.ReaderAt
	looked map[int64]bool
	// front has the offsets where one of the first two labels of a vdev would lie, whether or not one was found there.
	front map[int64]bool
	found []foundLabel
}

type foundLabel struct {
	PoolLabel
	kernel string
}

// at looks for a label at an offset of the disk.
func (l *labelLook) at(kernel string, offset int64, front bool) error {
	l.front[offset] = l.front[offset] || front
	from, to := l.disk.middle()
	inBlankEnd := l.ends.data == blankEnds && (offset+labelSize <= from || offset >= to)
	if l.looked[offset] || inBlankEnd || offset < 0 || offset+labelSize > l.disk.SizeBytes {
		return nil
	}
	l.looked[offset] = true
	label, err := readLabel(l.file, offset)
	if errors.Is(err, unix.EIO) {
		return err
	}
	if err != nil {
		l.disk.add(PoolRemains, "zfs_member", offset, fmt.Sprintf("%s has %v: whether its pool was exported is unknown", kernel, err))
		return nil
	}
	if label != nil {
		l.disk.Pools = append(l.disk.Pools, *label)
		l.found = append(l.found, foundLabel{*label, kernel})
	}
	return nil
}

// tell adds the findings, each once.
func (l *labelLook) tell(imported map[string]bool) {
	told := map[string]bool{}
	for _, label := range l.found {
		reason, detail := label.judge(label.kernel, imported)
		if reason == PoolMember && !l.hasFront(label.PoolLabel) {
			reason, detail = PoolRemains, detail+"; only labels at its end are left, so the contents of the missing ones are unknown"
		}
		if !told[detail] {
			told[detail] = true
			l.disk.add(reason, "zfs_member", label.Offset, detail)
		}
	}
}

// hasFront reports whether one of the first two labels of the same vdev was found: at a place where a vdev may begin, or at least two label
// sizes before another label of that vdev.
func (l *labelLook) hasFront(label PoolLabel) bool {
	same := slices.DeleteFunc(slices.Clone(l.found), func(f foundLabel) bool { return f.GUID != label.GUID || f.VdevGUID != label.VdevGUID })
	return slices.ContainsFunc(same, func(f foundLabel) bool {
		return l.front[f.Offset] || slices.ContainsFunc(same, func(other foundLabel) bool { return other.Offset >= f.Offset+2*labelSize })
	})
}

func (d *Disk) add(reason Reason, kind string, offset int64, detail string) {
	d.Findings = append(d.Findings, Finding{Reason: reason, Type: kind, Offset: offset, Detail: detail})
}

// buffers are reused for both ends of a device. Otherwise an agent that checks many disks would hold many buffers.
var buffers = sync.Pool{New: func() any { return new([headSize + tailSize]byte) }}

// areas checks the places where contents leave marks: both ends of the disk and of each partition. All of them must be blank, except for
// the table that ZFS makes, the remains of a cleared pool (see firstData), and the marker of a wipe. data is the offset of the first data
// in the ends of the disk, or negative.
func areas(disk *Disk, file io.ReaderAt, data int64) error {
	buffer := buffers.Get().(*[headSize + tailSize]byte)
	defer buffers.Put(buffer)
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
		disk.forgive(head, device.start)
		whole := at == 0
		known := false
		marks := named(head, tail, device.size)
		if !disk.AfterPool { // the data behind a pool's labels may look like anything: its users wrote it
			marks = withDistant(file, device, marks)
		}
		for _, mark := range marks {
			if whole && disk.AfterPool && mark.table {
				continue
			}
			known = true
			disk.mark(device, mark)
		}
		if known || len(disk.Pools) > 0 {
			continue
		}
		offset := disk.firstData(device, head, tail, whole)
		if offset < 0 && whole {
			offset = data
		}
		if offset >= 0 {
			disk.unknown(device, offset)
		}
	}
	if disk.AfterPool && len(disk.Pools) == 0 {
		return disk.behindPool(file)
	}
	if len(disk.partitions) > 0 && !disk.AfterPool && !disk.has(PartitionTable) {
		disk.forgotten()
	}
	return nil
}

// behindPool reports any data between the partition of a pool and the second table: there must be none.
func (d *Disk) behindPool(file io.ReaderAt) error {
	data := d.partitions[0]
	end := d.SizeBytes - max(d.LogicalSectorBytes, sectorUnit) - gptSize
	return eachChunk(file, data.start+data.size, end, func(at int64, chunk []byte) bool {
		found := nonZero(chunk, 0, int64(len(chunk)))
		if found >= 0 && !d.has(UnknownData) && !d.has(Signature) {
			d.unknown(part{kernel: d.Kernel}, at+found)
		}
		return found < 0
	})
}

// forgotten reports partitions that the kernel still knows although no table on the disk has them.
func (d *Disk) forgotten() {
	if len(d.Findings) > 0 {
		d.find(PartitionTable, "the kernel sees %d partitions on it", len(d.partitions))
		return
	}
	d.add(PartitionTable, staleTable, 0, fmt.Sprintf("its ends are blank, but the kernel still sees %d partitions of an earlier table: "+
		"reread the table with 'blockdev --rereadpt %s' or partprobe", len(d.partitions), d.Path))
}

// staleTable is the type of a finding about the kernel's view, not about the disk.
const staleTable = "kernel"

// onlyStale reports whether nothing was found on the disk itself.
func onlyStale(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Type != staleTable })
}

// forgive blanks the marker of a wipe, or the part of it that lies in the data. start is the offset of the data on the disk.
func (d *Disk) forgive(data []byte, start int64) {
	at := markerPlace(d.LogicalSectorBytes) - start
	if d.wiped != nil && at+markerSize > 0 && at < int64(len(data)) {
		clear(data[max(at, 0):min(at+markerSize, int64(len(data)))])
	}
}

func (d *Disk) has(reason Reason) bool {
	return slices.ContainsFunc(d.Findings, func(finding Finding) bool { return finding.Reason == reason })
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
	d.Findings[len(d.Findings)-1].InPartition = device.kernel != d.Kernel
}

// withDistant adds marks that lie beyond the parts of the head and the tail that were read.
func withDistant(file io.ReaderAt, device part, found []mark) []mark {
	for _, mark := range marks {
		at := mark.at
		if at < 0 {
			at += device.size
		}
		beyond := mark.at >= headSize || mark.at < -tailSize && at >= headSize
		if beyond && at+int64(len(mark.magic)) < device.size {
			if data, err := readAt(file, device.start+at, int64(len(mark.magic))); err == nil && string(data) == mark.magic {
				found = append(found, mark)
			}
		}
	}
	return found
}

// firstData returns the offset of the first byte of a device that is not blank, or -1. When the label of a pool is cleared, the partition
// table may remain, and so may the pool's data between the labels: with AfterPool, both are skipped.
func (d *Disk) firstData(device part, head, tail []byte, whole bool) int64 {
	skipHead, skipTail := int64(0), int64(0)
	switch {
	case d.AfterPool && whole:
		sector := max(d.LogicalSectorBytes, sectorUnit)
		skipHead, skipTail = 2*sector+gptSize, sector+gptSize
		head = head[:min(int64(len(head)), d.partitions[0].start)]
	case d.AfterPool:
		// The labels at the end lie at aligned offsets.
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

const checksumSize = 40

var zeros [4096]byte

// cleared blanks the checksums of empty boot areas, which zpool labelclear leaves, in the data that was read from the labels.
func cleared(labels []byte) []byte {
	for end := configStart; end <= len(labels); end += labelSize {
		if checksum := labels[end-checksumSize : end]; bytes.HasPrefix(checksum, checksumMagic) {
			clear(checksum)
		}
	}
	return labels
}

// labelsCleared reports whether zpool labelclear has cleared all four labels of a vdev: it leaves the checksums of their empty boot areas.
func labelsCleared(file io.ReaderAt, vdev part) (bool, error) {
	for _, offset := range labelOffsets(vdev.size) {
		left, err := readAt(file, vdev.start+offset+configStart-checksumSize, checksumSize)
		if err != nil || !bytes.HasPrefix(left, checksumMagic) {
			return false, err
		}
	}
	return true, nil
}

// nonZero returns the offset of the first byte that is not zero, or -1.
func nonZero(data []byte, from, to int64) int64 {
	for to-from >= int64(len(zeros)) && from >= 0 && bytes.Equal(data[from:from+int64(len(zeros))], zeros[:]) {
		from += int64(len(zeros))
	}
	for at := max(from, 0); at < to; at++ {
		if data[at] != 0 {
			return at
		}
	}
	return -1
}

// wayOut says what to do if only the contents of a disk prevent its use.
func (e *RefusedError) wayOut() string {
	if onlyStale(e.Findings) {
		return ""
	}
	blank := fmt.Sprintf("blank it yourself: 'blkdiscard %[1]s', or 'blkdiscard --zeroout %[1]s' if it does not return zeros then "+
		"(wipefs, and zeros over its ends alone, leave remains)", e.Path)
	switch {
	case e.Right == NoContents:
		return ". If its data may be lost, ask the cluster's admin to blank it, or to append ':reuse' to the grant of this disk"
	case e.Right == FileSystems && slices.ContainsFunc(e.Findings, func(f Finding) bool { return !e.Right.gives(f) }):
		return ". For a namespace only file systems may be destroyed: ask the cluster's admin to blank it"
	case errors.Is(e, PoolRemains):
		return ". It may be in use by a pool on another host, so reuse does not apply. If its data may be lost, " + blank
	case slices.ContainsFunc(e.Findings, func(f Finding) bool { return slices.Contains(shared, f.Type) }):
		return ". Other hosts may have it in use at this moment, so reuse does not apply. If its data may be lost, " + blank
	}
	if e.Serial != "" {
		return fmt.Sprintf(". If its data may be lost, list its serial number %s in reuse, or %s", e.Serial, blank)
	}
	return ". The disk reports no serial number for reuse: if its data may be lost, " + blank
}
