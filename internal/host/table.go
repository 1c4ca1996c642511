package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// gptEntry is an entry of a GUID partition table.
type gptEntry struct {
	index       int
	kind        [16]byte
	first, last uint64
}

// The types of the two partitions that ZFS makes on a whole disk, as they stand on disk: the first three numbers of
// a GUID are little-endian.
var (
	zfsPartition = [16]byte{0xc3, 0x8c, 0x89, 0x6a, 0xd2, 0x1d, 0xb2, 0x11, 0x99, 0xa6, 0x08, 0x00, 0x20, 0x73, 0x66, 0x31}
	zfsReserved  = [16]byte{0x3b, 0x5a, 0x94, 0x6a, 0xd2, 0x1d, 0xb2, 0x11, 0x99, 0xa6, 0x08, 0x00, 0x20, 0x73, 0x66, 0x31}
)

const (
	gptEntrySize  = 128
	gptEntryLimit = 512
)

// readGPT reads the primary table; nil without an error if there is none.
func readGPT(disk io.ReaderAt, sector int64) ([]gptEntry, error) {
	return readTable(disk, sector, sector)
}

// readTable reads the table whose header is at the given offset.
func readTable(disk io.ReaderAt, at, sector int64) ([]gptEntry, error) {
	header, err := readAt(disk, at, 512)
	if err != nil {
		return nil, err
	}
	if len(header) < 92 || !bytes.HasPrefix(header, []byte("EFI PART")) {
		return nil, nil
	}
	start := binary.LittleEndian.Uint64(header[72:])
	count := binary.LittleEndian.Uint32(header[80:])
	size := binary.LittleEndian.Uint32(header[84:])
	if size != gptEntrySize || count > gptEntryLimit || start > uint64(at/sector)+1<<20 {
		return nil, fmt.Errorf("a GUID partition table with %d entries of %d bytes at sector %d", count, size, start)
	}
	table, err := readAt(disk, int64(start)*sector, int64(count)*gptEntrySize)
	if err != nil {
		return nil, err
	}
	entries := []gptEntry{}
	for at := 0; at+gptEntrySize <= len(table); at += gptEntrySize {
		entry := gptEntry{index: at/gptEntrySize + 1, first: binary.LittleEndian.Uint64(table[at+32:]),
			last: binary.LittleEndian.Uint64(table[at+40:])}
		copy(entry.kind[:], table[at:])
		if entry.kind != [16]byte{} {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// afterPool reports whether the table is the one that ZFS makes: partition 1 for the data, 9 reserved, nothing else. The kernel must see
// the same two partitions, so that the partitions in the table are those that the checks read.
func afterPool(entries []gptEntry, parts []part, sector int64) bool {
	if len(entries) != 2 || len(parts) != 2 {
		return false
	}
	data, reserved := entries[0], entries[1]
	if data.index != 1 || data.kind != zfsPartition || reserved.index != 9 || reserved.kind != zfsReserved {
		return false
	}
	for at, entry := range []gptEntry{data, reserved} {
		if entry.last < entry.first || int64(entry.first)*sector != parts[at].start || int64(entry.last-entry.first+1)*sector != parts[at].size {
			return false
		}
	}
	return true
}

// ldmPartition is the partition type in the boot record of a dynamic disk of Windows.
const ldmPartition = 0x42

// dynamicDisk reports whether a boot record leaves the disk to the Logical Disk Manager of Windows.
func dynamicDisk(sector []byte) bool {
	return bootRecord(sector) && slices.ContainsFunc(slices.Collect(slices.Chunk(sector[446:510], 16)),
		func(entry []byte) bool { return entry[4] == ldmPartition })
}

// bootRecord reports whether sector 0 is an MBR partition table. The boot sector of a file system ends with the same two bytes, so the
// entries are checked too: all are marked active or inactive, and at least one has a type and sectors.
func bootRecord(sector []byte) bool {
	if len(sector) < 512 || sector[510] != 0x55 || sector[511] != 0xaa {
		return false
	}
	partitions := 0
	for entry := range slices.Chunk(sector[446:510], 16) {
		if entry[0] != 0 && entry[0] != 0x80 {
			return false
		}
		if entry[4] != 0 && binary.LittleEndian.Uint32(entry[12:]) != 0 {
			partitions++
		}
	}
	return partitions > 0
}
