package host

import (
	"encoding/binary"
	"hash/crc32"
)

// superblockAt and superblockSize say where the file systems with a check in plausible have their superblock.
const superblockAt, superblockSize = 1024, 1024

// plausible has the kinds that a namespace may give up and whose magic is only two bytes. Data without a header, such as that of an
// encrypted disk, has these bytes by chance on one disk of some thousands. So their superblock has to make sense too, for a device of that
// size. Data with the magic alone is of an unknown kind.
var plausible = map[string]func(super []byte, size int64) bool{"ext": plausibleExt, "nilfs2": plausibleNilfs, "hfsplus": plausibleHFS}

// isPlausible reports whether a device that begins with the head can have contents of that kind.
func isPlausible(kind string, head []byte, size int64) bool {
	check := plausible[kind]
	return check == nil || len(head) >= superblockAt+superblockSize && check(head[superblockAt:][:superblockSize], size)
}

// fits reports whether some blocks, but not none, fit on a device.
func fits(blocks, blockSize uint64, size int64) bool {
	return blocks > 0 && blockSize > 0 && blocks <= uint64(size)/blockSize
}

// powerOfTwo reports whether a number is a power of two within bounds.
func powerOfTwo(number, least, most uint64) bool {
	return number&(number-1) == 0 && number >= least && number <= most
}

// plausibleExt checks a superblock of ext2, ext3 or ext4, or of a journal on a disk of its own.
func plausibleExt(super []byte, size int64) bool {
	const (
		blockLogMost = 6    // blocks of 64 KiB
		states       = 0x27 // valid, with errors, with orphans, with a fast commit to replay
		wide         = 0x80 // among the incompatible features: the number of blocks has 64 bits
	)
	blockLog := binary.LittleEndian.Uint32(super[0x18:])
	revision := binary.LittleEndian.Uint32(super[0x4c:])
	if blockLog > blockLogMost || revision > 1 || binary.LittleEndian.Uint16(super[0x3a:])&^states != 0 {
		return false
	}
	blockSize, blocks := uint64(1024)<<blockLog, uint64(binary.LittleEndian.Uint32(super[0x4:]))
	if revision == 1 {
		if binary.LittleEndian.Uint32(super[0x60:])&wide != 0 {
			blocks |= uint64(binary.LittleEndian.Uint32(super[0x150:])) << 32
		}
		if !powerOfTwo(uint64(binary.LittleEndian.Uint16(super[0x58:])), 128, blockSize) {
			return false
		}
	}
	return fits(blocks, blockSize, size)
}

// plausibleNilfs checks the checksum of a superblock of NILFS2, which is that of Ethernet without its inversions.
func plausibleNilfs(super []byte, size int64) bool {
	const revision, sumAt, sumSize = 2, 16, 4
	length := int(binary.LittleEndian.Uint16(super[8:]))
	if binary.LittleEndian.Uint32(super) != revision || length <= sumAt+sumSize || length > len(super) {
		return false
	}
	sum := ^binary.LittleEndian.Uint32(super[12:])
	for _, piece := range [][]byte{super[:sumAt], make([]byte, sumSize), super[sumAt+sumSize : length]} {
		sum = crc32.Update(sum, crc32.IEEETable, piece)
	}
	return ^sum == binary.LittleEndian.Uint32(super[sumAt:]) && fits(binary.LittleEndian.Uint64(super[32:]), 1, size)
}

// plausibleHFS checks the volume header of HFS+ or HFSX.
func plausibleHFS(super []byte, size int64) bool {
	version := map[string]uint16{"H+": 4, "HX": 5}[string(super[:2])]
	blockSize := binary.BigEndian.Uint32(super[40:])
	return binary.BigEndian.Uint16(super[2:]) == version && powerOfTwo(uint64(blockSize), sectorUnit, 1<<31) &&
		fits(uint64(binary.BigEndian.Uint32(super[44:])), uint64(blockSize), size)
}
