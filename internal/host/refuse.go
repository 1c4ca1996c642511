package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Reason why a disk is refused.
type Reason string

// The reasons. A reason for which Contents is true can be set aside by naming the disk's serial number, as far as the Right allows. The
// others can never be set aside.
const (
	NotStable      Reason = "NotAStablePath"
	Missing        Reason = "Missing"
	NotWholeDisk   Reason = "NotAWholeDisk"
	ReadOnly       Reason = "ReadOnly"
	TooSmall       Reason = "TooSmall"
	SystemDisk     Reason = "SystemDisk"
	Mounted        Reason = "Mounted"
	HasHolders     Reason = "HasHolders"
	Swap           Reason = "Swap"
	RunningPool    Reason = "RunningPool"
	InUse          Reason = "InUse"
	SameIdentity   Reason = "SameIdentity"
	ActivePool     Reason = "PoolNotExported"
	Unreadable     Reason = "Unreadable"
	Silent         Reason = "DoesNotAnswer"
	Changed        Reason = "Changed"
	PoolRemains    Reason = "PoolRemains"
	PoolMember     Reason = "PoolMember"
	PartitionTable Reason = "PartitionTable"
	Signature      Reason = "Signature"
	UnknownData    Reason = "UnknownData"
)

// Contents reports whether the reason is only about the contents of the disk.
func (r Reason) Contents() bool {
	return r == PoolMember || r == PartitionTable || r == Signature || r == UnknownData
}

// Error makes a Reason a target for errors.Is.
func (r Reason) Error() string { return string(r) }

// Finding is one reason not to use a disk.
type Finding struct {
	Reason Reason
	// Detail in words.
	Detail string
	// Type of the signature, such as ext or LVM2_member.
	Type string
	// Offset on the disk in bytes where it was found.
	Offset int64
	// InPartition says that it lies in a partition, or in what seems to have been one: see FileSystems.
	InPartition bool
}

func (d *Disk) find(reason Reason, format string, values ...any) {
	d.Findings = append(d.Findings, Finding{Reason: reason, Detail: fmt.Sprintf(format, values...)})
}

// Wish says which disk is wanted and what is allowed.
type Wish struct {
	// Path below /dev/disk/by-id or by-path.
	Path string
	// MinBytes is the minimum size; 0 accepts any.
	MinBytes int64
	// Reuse is the serial number of the one disk whose old contents may be lost. It has no effect on any other disk.
	Reuse string
	// Right says which contents the requester may give up.
	Right Right
	// GivenUp is closed when the caller stops waiting: Wipe then writes nothing more. If it is nil, the caller never gives up.
	GivenUp <-chan struct{}
}

// RefusedError says why a disk is not taken.
type RefusedError struct {
	Path     string
	Serial   string
	Right    Right
	Findings []Finding
}

// Error names the disk, every reason, and the way out.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%s is refused: %s", e.Path, e.Reasons())
	if e.OnContents() {
		text += e.wayOut()
	}
	return text
}

// OnContents reports whether only the contents of the disk prevent its use.
func (e *RefusedError) OnContents() bool { return onContents(e.Findings) }

func onContents(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return !f.Reason.Contents() && f.Reason != PoolRemains })
}

// Reasons are all reasons not to use the disk, in words.
func (e *RefusedError) Reasons() string {
	var reasons []string
	for _, finding := range e.Findings {
		reasons = append(reasons, finding.Detail)
	}
	return strings.Join(reasons, "; ")
}

// Is finds a Reason among the findings.
func (e *RefusedError) Is(target error) bool {
	reason, isReason := target.(Reason) //nolint:errorlint // a Reason is never wrapped: it is the target
	return isReason && slices.ContainsFunc(e.Findings, func(f Finding) bool { return f.Reason == reason })
}

// Check looks at a disk. It refuses the disk with a RefusedError unless the disk is unused and blank; or unused and named for reuse, with
// contents that the Right of the wish gives up. In the latter case, Wipe comes next. Check also returns a disk that it refuses.
func (n *Node) Check(wish Wish) (Disk, error) {
	disk, err := n.inspect(wish.Path)
	if err != nil {
		disk.find(Unreadable, "%v", err)
	}
	if disk.Kernel != "" && disk.SizeBytes < wish.MinBytes {
		disk.find(TooSmall, "it has %d bytes, but at least %d are required", disk.SizeBytes, wish.MinBytes)
	}
	refused := disk.Findings
	if reusable, err := n.reusable(disk, wish.Reuse); err != nil {
		return disk, err
	} else if reusable {
		refused = slices.DeleteFunc(slices.Clone(refused), wish.Right.gives)
	}
	if len(refused) > 0 {
		return disk, &RefusedError{Path: disk.Path, Serial: disk.Serial, Right: wish.Right, Findings: refused}
	}
	return disk, nil
}

// reusable reports whether a serial number identifies this disk and no other.
func (n *Node) reusable(disk Disk, serial string) (bool, error) {
	if serial == "" || disk.Serial != serial {
		return false, nil
	}
	same, err := n.sameSerial(serial)
	if err != nil {
		return false, fmt.Errorf("looking for other disks with serial number %s: %w", serial, err)
	}
	if len(same) != 1 {
		return false, fmt.Errorf("serial number %s belongs to %d disks (%s): it is ambiguous which data may be lost", serial, len(same),
			strings.Join(same, ", "))
	}
	return true, nil
}

// inspect gathers everything about a disk. An error means that not everything could be read.
func (n *Node) inspect(path string) (Disk, error) {
	disk, err := n.identify(path)
	if err != nil || len(disk.Findings) > 0 {
		return disk, err
	}
	if disk.ReadOnly {
		disk.find(ReadOnly, "it is read-only")
	}
	if err := errors.Join(n.usage(&disk), n.contents(&disk)); err != nil || !onContents(disk.Findings) {
		return disk, err
	}
	return disk, n.usage(&disk) // once more: reading the contents takes seconds
}
