//go:build linux

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// signatures are the ones that a refusal can name. A device that is not blank is refused even if it has none of them.
var signatures = []struct {
	offset int
	magic  string
	words  string
}{
	{0x438, "\x53\xef", "an ext2, ext3 or ext4 file system"}, {0, "XFSB", "an XFS file system"},
	{0x10040, "_BHRfS_M", "a btrfs file system"}, {512, "EFI PART", "a GPT partition table"}, {0, "LUKS\xba\xbe", "a LUKS encrypted volume"},
	{512, "LABELONE", "an LVM physical volume"}, {4086, "SWAPSPACE2", "swap space"}, {0, "\xfc\x4e\x2b\xa9", "a member of an MD RAID"},
	{4096, "\xfc\x4e\x2b\xa9", "a member of an MD RAID"}, {0x400, "\x10\x20\xf5\xf2", "an F2FS file system"},
	{0, "bluestore block device", "a Ceph OSD"}, {128 << 10, "\x0c\xb1\xba\x00", "a member of a ZFS pool"},
	{3, "NTFS    ", "an NTFS file system"},
	{510, "\x55\xaa", "a partition table or a boot sector"},
}

// readDeviceMarker looks at both ends of a device, where everything that uses a device leaves a signature. A device with blank ends has no
// data. A device that is neither blank nor marked belongs to others.
func readDeviceMarker(path string, size int64) (found marker, there bool, err error) {
	head, tail, err := deviceEnds(path, size)
	if err != nil {
		return marker{}, false, err
	}
	found, there = decodeMarker(head[markerOffset : markerOffset+markerBytes])
	if there { // it was written to a blank area, which may be of zeros or of 0xff
		copy(head[markerOffset:], bytes.Repeat(head[markerOffset-1:markerOffset], markerBytes))
	}
	if what := contents(head, tail); what != "" {
		return marker{}, false,
			wrongPlace("there is %s on the device %s: choose an empty one, or remove it with 'wipefs --all' and blank both ends if it is not needed",
				what, path)
	}
	return found, there, nil
}

func deviceEnds(path string, size int64) (head, tail []byte, err error) {
	device, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = device.Close() }()
	length := min(size, reserved)
	head, tail = make([]byte, length), make([]byte, length)
	if _, err := device.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("the start of %s: %w", path, err)
	}
	if _, err := device.ReadAt(tail, size-length); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("the end of %s: %w", path, err)
	}
	return head, tail, nil
}

// contents says what the ends of a device contain, or nothing if both are blank.
func contents(head, tail []byte) string {
	for _, known := range signatures {
		if end := known.offset + len(known.magic); end <= len(head) && string(head[known.offset:end]) == known.magic {
			return known.words
		}
	}
	if !blank(head) {
		return "data of an unknown kind"
	}
	if !blank(tail) {
		return "data of an unknown kind at its end"
	}
	return ""
}

// blank reports whether an area contains only zeros, or only 0xff as erased flash does.
func blank(area []byte) bool {
	return len(area) == 0 || (area[0] == 0 || area[0] == 0xff) && bytes.Count(area, area[:1]) == len(area)
}

// blankEnds makes both ends of our own device blank again, after a job that was free to write there.
func blankEnds(path string, size int64) error {
	device, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	zeros := make([]byte, reserved)
	_, headErr := device.WriteAt(zeros, 0)
	_, tailErr := device.WriteAt(zeros, size-reserved)
	return errors.Join(headErr, tailErr, device.Sync(), device.Close())
}
