package device

import "slices"

// Right says which old contents a user is allowed to destroy.
type Right int

const (
	// AnyContents is an admin's right: all that no program uses and no pool that was never exported.
	AnyContents Right = iota
	// FileSystems is the most that a namespace can have. What one disk of several may belong to, such as a RAID, a volume group, an
	// exported pool or an encrypted device, it cannot give up, for the other disks are not its own.
	FileSystems
	// NoContents is a namespace's without a grant that says more. It does not learn the serial number of a disk either.
	NoContents
)

// expendable are the signatures that a namespace may give up: each is one file system, or swap, on the whole disk. In the partitions of a
// table there may be anything, also what leaves no mark.
var expendable = []string{"ext", "xfs", "f2fs", "nilfs2", "jfs", "reiserfs", "vfat", "exfat", "ntfs", "hfsplus", "iso9660", "udf", "swap",
	staleTable}

// gives says whether a finding may be set aside.
func (r Right) gives(f Finding) bool {
	switch r {
	case AnyContents:
		return f.Reason.Contents()
	case FileSystems:
		return (f.Reason == Signature || f.Reason == PartitionTable) && slices.Contains(expendable, f.Type)
	case NoContents:
	}
	return false
}
