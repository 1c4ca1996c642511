package device

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Wipe blanks a disk where marks are left, so that ZFS takes it without force. All on it is lost. It does so only if
// the wish names the disk's serial number, if nothing but its old contents speaks against it, and if no other disk of
// the node has that number; and it looks at all of that again immediately before.
func (n *Node) Wipe(wish Wish) (Disk, error) {
	if wish.Reuse == "" {
		return Disk{}, fmt.Errorf("wiping %s: name its serial number", wish.Path)
	}
	disk, err := n.Check(wish)
	if err != nil {
		return disk, err
	}
	if len(disk.Findings) == 0 {
		return disk, nil
	}
	// Exclusive and verified by device number: from here on the path does not matter any more.
	file, err := n.open(disk.Kernel, disk.Number, os.O_RDWR|unix.O_EXCL|unix.O_SYNC)
	if err != nil {
		return disk, fmt.Errorf("opening %s to wipe it: %w", disk.Kernel, err)
	}
	err = n.blank(disk, careful{File: file, may: func() error {
		if given(wish.GivenUp) {
			return errAbandoned
		}
		return n.Verify(disk)
	}})
	if err = errors.Join(err, file.Close()); err != nil {
		return disk, fmt.Errorf("wiping %s (%s): %w", disk.Path, disk.Serial, err)
	}
	return n.Check(Wish{Path: wish.Path, MinBytes: wish.MinBytes})
}

// blank writes zeros to both ends of the disk and of its partitions, and wherever else something was found.
func (n *Node) blank(disk Disk, file careful) error {
	for _, area := range append([]part{{size: disk.SizeBytes}}, disk.partitions...) {
		tail := max(area.size-headSize, 0)
		if err := errors.Join(zero(file, area.start, min(headSize, area.size)), zero(file, area.start+tail, area.size-tail)); err != nil {
			return err
		}
	}
	for _, finding := range disk.Findings {
		if err := zero(file, finding.Offset, min(4096, disk.SizeBytes-finding.Offset)); err != nil {
			return err
		}
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if n.files {
		return nil
	}
	// The kernel forgets the partitions.
	return unix.IoctlSetInt(int(file.Fd()), unix.BLKRRPART, 0)
}

func zero(file io.WriterAt, offset, length int64) error {
	chunk := make([]byte, 1<<20)
	for done := int64(0); done < length; {
		count, err := file.WriteAt(chunk[:min(int64(len(chunk)), length-done)], offset+done)
		if err != nil {
			return err
		}
		done += int64(count)
	}
	return nil
}
