package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Wipe blanks a disk where contents leave marks, so that ZFS takes it without force. All data on it is lost. It does so only if the wish
// names the disk's serial number, only old contents prevent the use of the disk, and no other disk of the node has that number. It checks
// all of that again immediately before it writes.
func (n *Node) Wipe(wish Wish) (Disk, error) {
	if wish.Reuse == "" {
		return Disk{}, fmt.Errorf("wiping %s: its serial number is required", wish.Path)
	}
	disk, err := n.Check(wish)
	if err != nil {
		return disk, err
	}
	if len(disk.Findings) == 0 {
		return disk, nil
	}
	// The file is open exclusively and its device number is verified: from here on, it leads to this disk even if the path changes.
	file, err := n.open(disk.Kernel, disk.Number, os.O_RDWR|unix.O_EXCL|unix.O_SYNC)
	if err != nil {
		return disk, fmt.Errorf("opening %s to wipe it: %w", disk.Kernel, err)
	}
	writer := careful{File: file, may: func() error {
		if givenUp(wish.GivenUp) {
			return errAbandoned
		}
		return n.Verify(disk)
	}}
	if err = n.blank(disk, writer); err == nil {
		err = n.leaveMarker(disk, writer)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return disk, fmt.Errorf("wiping %s (%s): %w", disk.Path, disk.Serial, err)
	}
	return n.Check(Wish{Path: wish.Path, MinBytes: wish.MinBytes, Right: wish.Right})
}

// blank writes zeros to both ends of the disk and of its partitions, to the places in between that a check searches, and wherever else
// something was found.
func (n *Node) blank(disk Disk, file careful) error {
	reader, err := n.openDirect(disk.Kernel, disk.Number, 0)
	if err != nil {
		return err
	}
	defer reader.Close() //nolint:errcheck // opened for reading: nothing is lost
	former, err := formerPartitions(&disk, reader)
	if err != nil {
		return err
	}
	areas := []part{{size: min(endSize, disk.SizeBytes)}, {start: max(disk.SizeBytes-endSize, 0), size: min(endSize, disk.SizeBytes)}}
	for _, partition := range disk.partitions {
		size := min(headSize, partition.size)
		areas = append(areas, part{start: partition.start, size: size}, part{start: partition.start + partition.size - size, size: size})
	}
	for _, vdev := range former {
		for _, offset := range labelOffsets(vdev.size) {
			areas = append(areas, part{start: vdev.start + offset, size: labelSize})
		}
	}
	for _, spot := range spots(disk.SizeBytes) {
		areas = append(areas, part{start: spot.at, size: spot.length})
	}
	for _, finding := range disk.Findings {
		areas = append(areas, part{start: finding.Offset, size: 4096})
	}
	// From back to front: a wipe that ends halfway leaves the first labels, so the disk can be wiped again.
	slices.SortStableFunc(areas, func(a, b part) int { return cmp.Compare(b.start, a.start) })
	for _, area := range areas {
		var failed error
		err := eachChunk(reader, area.start, min(area.start+area.size, disk.SizeBytes), func(at int64, chunk []byte) bool {
			if nonZero(chunk, 0, int64(len(chunk))) >= 0 {
				failed = zero(file, at, int64(len(chunk)))
			}
			return failed == nil
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if n.files {
		return nil
	}
	// Make the kernel forget the partitions.
	return unix.IoctlSetInt(int(file.Fd()), unix.BLKRRPART, 0)
}

// leaveMarker records on the disk that the remaining contents of its middle may be lost.
func (n *Node) leaveMarker(disk Disk, file careful) error {
	if from, to := disk.middle(); from >= to {
		return nil
	}
	reader, err := n.openDirect(disk.Kernel, disk.Number, 0)
	if err != nil {
		return err
	}
	marker, err := newMarker(&disk, reader, time.Now)
	if err = errors.Join(err, reader.Close()); err != nil {
		return err
	}
	block, err := marker.block()
	if err != nil {
		return err
	}
	_, err = file.WriteAt(block, markerPlace(disk.LogicalSectorBytes))
	return errors.Join(err, file.Sync())
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
