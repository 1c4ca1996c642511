package host

import (
	"bytes"
	"encoding/binary"
)

// mark is a pattern that a file system, volume manager or table writes at a fixed place.
type mark struct {
	kind string
	// at is the place in bytes, from the end if negative.
	at    int64
	magic string
	// table says that it is a table of partitions.
	table bool
}

// marks are those that libblkid knows and some more, at fixed offsets. They are not needed to refuse a disk: data without a known mark is
// refused too. They give a name to the contents, and the name decides who may give them up, see expendable and shared.
var marks = append(promiseMarks(), []mark{
	{kind: "LVM2_member", at: 0x018, magic: "LVM2 001"}, {kind: "LVM2_member", at: 0x218, magic: "LVM2 001"},
	{kind: "LVM2_member", at: 0x418, magic: "LVM2 001"}, {kind: "LVM2_member", at: 0x618, magic: "LVM2 001"},
	{kind: "LVM1_member", at: 0, magic: "HM\x01\x00"}, {kind: "LVM1_member", at: 0, magic: "HM\x02\x00"},
	{kind: "DM_snapshot_cow", at: 0, magic: "SnAp"}, {kind: "DM_verity_hash", at: 0, magic: "verity\x00\x00"},
	{kind: "DM_integrity", at: 0, magic: "integrt\x00"}, {kind: "vdo", at: 0, magic: "dmvdo001"},
	{kind: "crypto_LUKS", at: 0, magic: "LUKS\xba\xbe"}, {kind: "crypto_LUKS", at: 0x4000, magic: "SKUL\xba\xbe"},
	{kind: "crypto_LUKS", at: 0x8000, magic: "SKUL\xba\xbe"}, {kind: "crypto_LUKS", at: 0x10000, magic: "SKUL\xba\xbe"},
	{kind: "crypto_LUKS", at: 0x20000, magic: "SKUL\xba\xbe"}, {kind: "crypto_LUKS", at: 0x40000, magic: "SKUL\xba\xbe"},
	{kind: "crypto_LUKS", at: 0x80000, magic: "SKUL\xba\xbe"}, {kind: "crypto_LUKS", at: 0x100000, magic: "SKUL\xba\xbe"},
	{kind: "crypto_LUKS", at: 0x200000, magic: "SKUL\xba\xbe"}, {kind: "crypto_LUKS", at: 0x400000, magic: "SKUL\xba\xbe"},
	{kind: "ldm", at: 6 * 512, magic: "PRIVHEAD"}, {kind: "ldm", at: -512, magic: "PRIVHEAD"},
	{kind: "ldm", at: -192 * 512, magic: "PRIVHEAD"},
	{kind: "BitLocker", at: 3, magic: "-FVE-FS-"},
	{kind: "linux_raid_member", at: 0, magic: "\xfc\x4e\x2b\xa9"}, {kind: "linux_raid_member", at: 4096, magic: "\xfc\x4e\x2b\xa9"},
	{kind: "ddf_raid_member", at: -512, magic: "\xde\x11\xde\x11"}, {kind: "ddf_raid_member", at: -257 * 512, magic: "\xde\x11\xde\x11"},
	// In the last sector but one, of either size.
	{kind: "isw_raid_member", at: -2 * 512, magic: "Intel Raid ISM Cfg Sig. "},
	{kind: "isw_raid_member", at: -2 * 4096, magic: "Intel Raid ISM Cfg Sig. "},
	{kind: "lsi_mega_raid_member", at: -512, magic: "$XIDE$"}, {kind: "nvidia_raid_member", at: -1024, magic: "NVIDIA  "},
	{kind: "hpt37x_raid_member", at: 4640, magic: "\xf0\x16\x78\x5a"}, {kind: "hpt37x_raid_member", at: 4640, magic: "\xfd\x16\x78\x5a"},
	{kind: "hpt45x_raid_member", at: -11 * 512, magic: "\xf3\x16\x78\x5a"},
	{kind: "hpt45x_raid_member", at: -11 * 512, magic: "\xfd\x16\x78\x5a"},
	{kind: "silicon_medley_raid_member", at: -512 + 0x60, magic: "\x00\x00\x00\x2f"}, {kind: "jmicron_raid_member", at: -512, magic: "JM"},
	{kind: "adaptec_raid_member", at: -512, magic: "\x37\xfc\x4d\x1e"},
	// The magic of VIA is only two bytes long: its version, 0 to 2, follows.
	{kind: "via_raid_member", at: -512, magic: "\x55\xaa\x00"}, {kind: "via_raid_member", at: -512, magic: "\x55\xaa\x01"},
	{kind: "via_raid_member", at: -512, magic: "\x55\xaa\x02"},
	{kind: "drbd", at: -4096 + 60, magic: "\x83\x74\x02\x6b"}, {kind: "drbd", at: -4096 + 60, magic: "\x83\x74\x02\x6c"},
	{kind: "drbd", at: -4096 + 60, magic: "\x83\x74\x02\x6d"},
	{kind: "drbdmanage_control_volume", at: 0, magic: "$DRBDmgr=q"}, {kind: "drbdproxy_datalog", at: 0, magic: "DRBDdlh*"},
	{kind: "bcache", at: 4096 + 24, magic: "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"},
	{kind: "bcachefs", at: 4096 + 24, magic: "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"},
	{kind: "ceph_bluestore", at: 0, magic: "bluestore block device"}, {kind: "stratis", at: 512 + 4, magic: "!Stra0tis\x86\xff\x02^\x41rh"},
	{kind: "stratis", at: 512*9 + 4, magic: "!Stra0tis\x86\xff\x02^\x41rh"}, {kind: "mpool", at: 0, magic: "mpoolDev"},
	{kind: "oracleasm", at: 32, magic: "ORCLDISK"}, {kind: "ocfs", at: 8192, magic: "OracleCFS"},
	{kind: "ocfs2", at: 1024, magic: "OCFSV2"}, {kind: "ocfs2", at: 2048, magic: "OCFSV2"}, {kind: "ocfs2", at: 4096, magic: "OCFSV2"},
	{kind: "ocfs2", at: 8192, magic: "OCFSV2"},
	{kind: "VMFS_volume_member", at: 1 << 20, magic: "\x0d\xd0\x01\xc0"}, {kind: "VMFS", at: 2 << 20, magic: "\x5e\xf1\xab\x2f"},
	{kind: "btrfs", at: 64<<10 + 0x40, magic: "_BHRfS_M"},
	{kind: "xfs", at: 0, magic: "XFSB"}, {kind: "ext", at: 1024 + 0x38, magic: "\x53\xef"},
	{kind: "f2fs", at: 1024, magic: "\x10\x20\xf5\xf2"},
	{kind: "nilfs2", at: 1024 + 6, magic: "\x34\x34"}, {kind: "jfs", at: 32 << 10, magic: "JFS1"},
	{kind: "reiserfs", at: 64<<10 + 0x34, magic: "ReIsEr"}, {kind: "reiserfs", at: 8<<10 + 0x34, magic: "ReIsEr"},
	{kind: "reiser4", at: 64 << 10, magic: "ReIsEr4"},
	{kind: "gfs2", at: 64 << 10, magic: "\x01\x16\x19\x70"}, {kind: "scoutfs", at: 64<<10 + 4, magic: "\x8b\x42\x3c\x10"},
	{kind: "erofs", at: 1024, magic: "\xe2\xe1\xf5\xe0"}, {kind: "squashfs", at: 0, magic: "hsqs"}, {kind: "squashfs", at: 0, magic: "sqsh"},
	{kind: "cramfs", at: 0, magic: "\x45\x3d\xcd\x28"}, {kind: "cramfs", at: 0, magic: "\x28\xcd\x3d\x45"},
	{kind: "romfs", at: 0, magic: "-rom1fs-"},
	{kind: "zonefs", at: 0, magic: "SFOZ"}, {kind: "apfs", at: 32, magic: "NXSB"}, {kind: "hfsplus", at: 1024, magic: "H+"},
	{kind: "hfsplus", at: 1024, magic: "HX"},
	{kind: "hfs", at: 1024, magic: "BD"}, {kind: "ntfs", at: 3, magic: "NTFS    "}, {kind: "refs", at: 0, magic: "\x00\x00\x00ReFS\x00"},
	{kind: "exfat", at: 3, magic: "EXFAT   "}, {kind: "exfs", at: 0, magic: "EXFS"}, {kind: "vfat", at: 0x52, magic: "FAT32   "},
	{kind: "vfat", at: 0x52, magic: "MSWIN"},
	{kind: "vfat", at: 0x36, magic: "FAT16   "}, {kind: "vfat", at: 0x36, magic: "FAT12   "}, {kind: "vfat", at: 0x36, magic: "FAT     "},
	{kind: "vfat", at: 0x36, magic: "MSDOS"},
	{kind: "iso9660", at: 32<<10 + 1, magic: "CD001"}, {kind: "udf", at: 32<<10 + 1, magic: "BEA01"},
	{kind: "udf", at: 32<<10 + 1, magic: "NSR0"},
	{kind: "ufs", at: 8<<10 + 0x55c, magic: "\x54\x19\x01\x00"}, {kind: "ufs", at: 64<<10 + 0x55c, magic: "\x19\x01\x54\x19"},
	{kind: "ufs", at: 256<<10 + 0x55c, magic: "\x19\x01\x54\x19"},
	{kind: "minix", at: 1024 + 0x10, magic: "\x7f\x13"}, {kind: "minix", at: 1024 + 0x10, magic: "\x8f\x13"},
	{kind: "minix", at: 1024 + 0x10, magic: "\x68\x24"},
	{kind: "minix", at: 1024 + 0x10, magic: "\x78\x24"}, {kind: "minix", at: 1024 + 0x18, magic: "\x5a\x4d"},
	{kind: "vxfs", at: 1024, magic: "\xf5\xfc\x01\xa5"}, {kind: "vxfs", at: 8192, magic: "\xa5\x01\xfc\xf5"},
	{kind: "netware", at: 4096, magic: "SPB5"},
	{kind: "befs", at: 32, magic: "BFS1"}, {kind: "befs", at: 32, magic: "1SFB"}, {kind: "befs", at: 512 + 32, magic: "1SFB"},
	{kind: "bfs", at: 0, magic: "\xce\xfa\xad\x1b"},
	{kind: "hpfs", at: 8192, magic: "\x49\xe8\x95\xf9"}, {kind: "ubi", at: 0, magic: "UBI#"},
	{kind: "ubifs", at: 0, magic: "\x31\x18\x10\x06"},
	{kind: "swsuspend", at: 0, magic: "\xed\xc3\x02\xe9\x98\x56\xe5\x0c"},
	{kind: "gpt", at: 512, magic: "EFI PART", table: true}, {kind: "gpt", at: 4096, magic: "EFI PART", table: true},
	{kind: "gpt (backup)", at: -512, magic: "EFI PART", table: true}, {kind: "gpt (backup)", at: -4096, magic: "EFI PART", table: true},
	{kind: "mac partitions", at: 0, magic: "ER\x02\x00", table: true}, {kind: "mac partitions", at: 0, magic: "ER\x10\x00", table: true},
	{kind: "sun partitions", at: 508, magic: "\xda\xbe", table: true},
	{kind: "sgi partitions", at: 0, magic: "\x0b\xe5\xa9\x41", table: true}, {kind: "bsd partitions", at: 512, magic: "\x57\x45\x56\x82",
		table: true},
	{kind: "bsd partitions", at: 64, magic: "\x57\x45\x56\x82", table: true}, {kind: "aix partitions", at: 0, magic: "\xc9\xc2\xd4\xc1",
		table: true},
}...)

// promiseMarks are at all places where controllers of Promise may leave their mark, in sectors from the end, and at an older one.
func promiseMarks() []mark {
	found := mark{kind: "promise_fasttrack_raid_member", at: 0x1200, magic: "Promise Technology, Inc."}
	all := []mark{found}
	for _, sector := range []int64{16, 63, 255, 256, 399, 591, 675, 735, 911, 951, 974, 991, 3087} {
		found.at = -sector * sectorUnit
		all = append(all, found)
	}
	return all
}

// swapMarks stand at the end of the first page, whose size depends on the machine that wrote it. Those of swsuspend say that a machine
// hibernates there, with its file systems mounted.
var swapMarks = map[string]string{"SWAPSPACE2": "swap", "SWAP-SPACE": "swap", "S1SUSPEND": "swsuspend", "S2SUSPEND": "swsuspend",
	"ULSUSPEND": "swsuspend", "LINHIB0001": "swsuspend"}

// named finds the known marks in the head and the tail of a device of that size.
func named(head, tail []byte, size int64) []mark {
	var found []mark
	for _, mark := range marks {
		if data := piece(head, tail, size, mark.at); bytes.HasPrefix(data, []byte(mark.magic)) && isPlausible(mark.kind, head, size) {
			mark.kind = spanning(mark.kind, data)
			found = append(found, mark)
		}
	}
	for page := int64(4096); page <= 65536; page *= 2 {
		for magic, kind := range swapMarks {
			if bytes.HasPrefix(piece(head, tail, size, page-10), []byte(magic)) {
				found = append(found, mark{kind: kind, at: page - 10})
			}
		}
	}
	// Software RAID of the versions 0.90 and 1.0 writes near the end, at round offsets.
	for _, at := range []int64{size&^0xffff - 0x10000, (size - 8192) &^ 0xfff} {
		if data := piece(head, tail, size, at); at > 0 && len(data) >= 4 && (binary.LittleEndian.Uint32(data) == 0xa92b4efc ||
			binary.BigEndian.Uint32(data) == 0xa92b4efc) {
			found = append(found, mark{kind: "linux_raid_member", at: at})
		}
	}
	if dynamicDisk(head) {
		found = append(found, mark{kind: "ldm", at: 446})
	} else if bootRecord(head) {
		found = append(found, mark{kind: "dos", at: 446, table: true})
	}
	return found
}

// spanning returns another kind for a file system that has data on other disks, or serves one there: a namespace must not give it up with
// this disk. The data begins at the magic. A file system whose journal or log is elsewhere keeps its kind: all its files are here.
func spanning(kind string, data []byte) string {
	const (
		extIncompatible = 0x60 - 0x38
		extJournal      = 0x8       // this is the journal of a file system on another disk
		xfsRealtime     = 16        // the number of blocks of the realtime device, which has contents of files
		f2fsSecond      = 2201 + 68 // the path of the second disk
	)
	switch {
	case len(data) <= f2fsSecond: // a partition that is too small for any of them
	case kind == "ext" && data[extIncompatible]&extJournal != 0:
		return "ext_journal"
	case kind == "xfs" && nonZero(data, xfsRealtime, xfsRealtime+8) >= 0:
		return "xfs_realtime"
	case kind == "f2fs" && data[f2fsSecond] != 0:
		return "f2fs_multiple"
	}
	return kind
}

// piece returns the data that was read from an offset on. A negative offset counts from the end.
func piece(head, tail []byte, size, at int64) []byte {
	if at < 0 {
		at += size
	}
	if at >= 0 && at < int64(len(head)) {
		return head[at:]
	}
	if at -= size - int64(len(tail)); at >= 0 && at < int64(len(tail)) {
		return tail[at:]
	}
	return nil
}
