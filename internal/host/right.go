package host

import "slices"

// Right says which old contents a user is allowed to destroy.
type Right int

const (
	// NoContents is a namespace's without a grant that says more. It does not learn the serial number of a disk either.
	NoContents Right = iota
	// FileSystems is the most that a namespace can have. What one disk of several may belong to, such as a RAID, a volume group, an
	// exported pool or an encrypted device, it cannot give up, for the other disks are not its own.
	FileSystems
	// AnyContents is an admin's right: all that no program and no other host uses, and no pool that was never exported.
	AnyContents
)

// expendable are the signatures that a namespace may give up: each is one file system, or swap, on the whole disk. In the partitions of a
// table there may be anything, also what leaves no mark.
var expendable = []string{"ext", "xfs", "f2fs", "nilfs2", "jfs", "reiserfs", "vfat", "exfat", "ntfs", "hfsplus", "iso9660", "udf", "swap",
	staleTable}

// shared are made for several hosts: others may have them in use at this moment, and nothing on the disk tells. They are never set aside.
var shared = []string{"VMFS", "VMFS_volume_member", "ocfs", "ocfs2", "gfs2", "scoutfs", "oracleasm"}

// gives says whether a finding may be set aside.
func (r Right) gives(f Finding) bool {
	switch r {
	case AnyContents:
		return f.Reason.Contents() && !slices.Contains(shared, f.Type)
	case FileSystems:
		return (f.Reason == Signature || f.Reason == PartitionTable) && slices.Contains(expendable, f.Type)
	case NoContents:
	}
	return false
}
