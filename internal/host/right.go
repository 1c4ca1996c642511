package host

import "slices"

// Right says which old contents a user is allowed to destroy.
type Right int

const (
	// NoContents is the right of a namespace without a further grant. Error messages do not reveal serial numbers to it either.
	NoContents Right = iota
	// FileSystems is the most that a namespace can have. It cannot give up contents that may span several disks, such as a RAID, a volume
	// group, an exported pool or an encrypted device, because the other disks may not be its own. Nor can it give up a partition: a disk with
	// partitions has more uses than the one that left a mark.
	FileSystems
	// AnyContents is the right of an admin: everything except contents in use by a program or another host, and pools that were never
	// exported.
	AnyContents
)

// expendable are the signatures that a namespace may give up: each is a single file system, or swap, on the whole disk. A file system with
// a part on another disk has another name, see spanning. Partitions may contain anything, including contents without a signature.
// staleTable is not on the disk at all.
var expendable = []string{"ext", "xfs", "f2fs", "nilfs2", "jfs", "reiserfs", "vfat", "exfat", "ntfs", "hfsplus", "iso9660", "udf", "swap",
	staleTable}

// shared are file systems for several hosts: others may be using them, which nothing on the disk shows. They are never set aside.
var shared = []string{"VMFS", "VMFS_volume_member", "ocfs", "ocfs2", "gfs2", "scoutfs", "oracleasm"}

// gives reports whether a finding may be set aside.
func (r Right) gives(f Finding) bool {
	switch r {
	case AnyContents:
		return f.Reason.Contents() && !slices.Contains(shared, f.Type)
	case FileSystems:
		return (f.Reason == Signature || f.Reason == PartitionTable) && !f.InPartition && slices.Contains(expendable, f.Type)
	case NoContents:
	}
	return false
}
