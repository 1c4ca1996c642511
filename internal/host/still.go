package host

import (
	"errors"
	"fmt"
	"io"
)

const serialNumber = "serial number"

// Verify makes sure that a path still leads to the disk that was checked. Call it immediately before and after each
// command that is given the path.
func (n *Node) Verify(checked Disk) error {
	_, err := n.again(checked)
	return err
}

// again identifies a disk that was checked, and makes sure that it is the same.
func (n *Node) again(checked Disk) (Disk, error) {
	now, err := n.identify(checked.Path)
	if err != nil {
		return now, fmt.Errorf("looking at %s again: %w", checked.Path, err)
	}
	for _, property := range []struct{ name, before, now string }{
		{"kernel's name", checked.Kernel, now.Kernel}, {"device number", checked.Number, now.Number},
		{"sequence number", checked.Sequence, now.Sequence}, {serialNumber, checked.Serial, now.Serial},
		{"size", fmt.Sprint(checked.SizeBytes), fmt.Sprint(now.SizeBytes)},
	} {
		switch {
		case property.before == property.now:
		case property.name == serialNumber: // it is not shown to everyone, see NoContents
			now.find(Changed, "its %s has changed since it was checked: the path leads to another disk", property.name)
		default:
			now.find(Changed, "its %s was %q when it was checked and is %q now: the path leads to another disk", property.name, property.before,
				property.now)
		}
	}
	return now, now.refusal()
}

func (d *Disk) refusal() error {
	if len(d.Findings) == 0 {
		return nil
	}
	return &RefusedError{Path: d.Path, Findings: d.Findings}
}

// Untouched makes sure that the ends of a disk are as they were when it was checked, that is blank or as a pool or a wipe has left them,
// and that the kernel still lets the agent open it exclusively. It reads no samples of the middle.
func (n *Node) Untouched(checked Disk) error {
	disk, err := n.again(checked)
	if err != nil {
		return err
	}
	err = n.read(&disk, func(file io.ReaderAt) error {
		_, err := searchEnds(file, &disk)
		return err
	})
	if err != nil {
		return fmt.Errorf("looking at the ends of %s again: %w", checked.Path, err)
	}
	if disk.endsSum != checked.endsSum {
		disk.find(Changed, "its first or last %d MiB have changed since it was checked: something has begun to use it", endSize>>20)
	}
	return disk.refusal()
}

// StillUnused looks for users of disks that were checked, once more and for all of them together. Between the check of the first disk and
// the command that takes all of them, minutes may pass. ZFS does not notice a program that has a disk open without claiming it.
func (n *Node) StillUnused(checked []Disk) error {
	now, disks := make([]Disk, len(checked)), make([]*Disk, len(checked))
	for i, disk := range checked {
		var err error
		if now[i], err = n.again(disk); err != nil {
			return err
		}
		disks[i] = &now[i]
	}
	if err := n.usage(disks...); err != nil {
		return fmt.Errorf("looking for users of the disks again: %w", err)
	}
	var refused error
	for _, disk := range disks {
		refused = errors.Join(refused, disk.refusal())
	}
	return refused
}
