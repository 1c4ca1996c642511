package host

import (
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPathsToOneDisk: a disk that the node shows twice is refused on either path, even if one path is in use and the other looks free.
func TestPathsToOneDisk(t *testing.T) {
	for name, test := range map[string]struct {
		other func(n *fakeNode)
		twin  bool
	}{
		"the same WWID of SCSI": {func(n *fakeNode) {
			n.file("/sys/class/block/vdb/device/wwid", "naa.5000c500a1b2c3d4\n")
			n.file("/sys/class/block/vdc/device/wwid", "naa.5000c500a1b2c3d4\n")
		}, true},
		"the same WWID of NVMe": {func(n *fakeNode) {
			n.file("/sys/class/block/vdb/wwid", "eui.0025385b71b0c2d1\n")
			n.file("/sys/class/block/vdc/wwid", "eui.0025385b71b0c2d1\n")
		}, true},
		"the same serial number and model": {func(n *fakeNode) {
			n.file("/sys/class/block/vdb/device/model", "LUN\n")
			n.file("/sys/class/block/vdc/device/model", "LUN\n")
			n.file("/sys/class/block/vdc/serial", "free-serial")
		}, true},
		"the same name in page 0x83 of SCSI": {func(n *fakeNode) {
			n.both("device/vpd_pg83", vpd83(designator(2, 0, 1, "LIO-ORG disk"), designator(1, 1, 4, "\x00\x00\x00\x01"), designator(1, 0, 3, naa)))
		}, true},
		"one name in page 0x83, the other in wwid": {func(n *fakeNode) {
			n.file("/sys/class/block/vdb/device/vpd_pg83", vpd83(designator(1, 0, 3, naa)))
			n.file("/sys/class/block/vdc/device/wwid", "NAA.6001405A112233445566778899AABBCC\n")
		}, true},
		"two LUNs behind one port and target": {func(n *fakeNode) {
			n.both("device/vpd_pg83", vpd83(designator(1, 1, 3, naa), designator(1, 2, 3, naa)))
		}, false},
		"two LUNs with names of their own": {func(n *fakeNode) {
			n.file("/sys/class/block/vdb/device/vpd_pg83", vpd83(designator(1, 0, 3, naa)))
			n.file("/sys/class/block/vdc/device/vpd_pg83", vpd83(designator(1, 0, 3, otherNAA)))
		}, false},
		"maker and model in page 0x83": {func(n *fakeNode) {
			n.both("device/vpd_pg83", vpd83(designator(2, 0, 1, "Generic Flash Disk")))
		}, false},
		"names of zeros": {func(n *fakeNode) {
			n.both("device/vpd_pg83", vpd83(designator(1, 0, 2, strings.Repeat("\x00", 8))))
			n.both("nguid", "00000000-0000-0000-0000-000000000000\n")
		}, false},
		"NVMe by two controllers": {func(n *fakeNode) { n.both("nguid", "00253856-9140-4d47-aa00-000000000001\n") }, true},
		"the EUI of NVMe, as the kernel writes it in two ways": {func(n *fakeNode) {
			n.file("/sys/class/block/vdb/eui", "00 25 38 56 91 40 4d 47\n")
			n.file("/sys/class/block/vdc/wwid", "eui.0025385691404d47\n")
		}, true},
		"in use by the other path": {func(n *fakeNode) {
			n.file("/sys/class/block/vdc/serial", "free-serial")
			n.mountTable(12, "30 24 254:32 / /mnt rw - ext4 /dev/vdc rw\n")
		}, true},
		"the serial number of another model": {func(n *fakeNode) {
			n.file("/sys/class/block/vdb/device/model", "A\n")
			n.file("/sys/class/block/vdc/device/model", "B\n")
			n.file("/sys/class/block/vdc/serial", "free-serial")
		}, false},
		"neither has a serial number": {func(n *fakeNode) {
			n.file("/sys/class/block/vdb/serial", "")
			n.file("/sys/class/block/vdc/serial", "")
		}, false},
		"a path that the kernel has joined": {func(n *fakeNode) {
			n.file("/sys/class/block/vdc/serial", "free-serial")
			n.file("/sys/class/block/vdc/hidden", "1\n")
		}, false},
		"another disk": {func(*fakeNode) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newFakeNode(t)
			n.disk("vdc", "254:32", "other-serial")
			n.link("/dev/disk/by-id/virtio-other", "../../vdc")
			test.other(n)
			_, err := n.Check(Wish{Path: freePath})
			if errors.Is(err, SameIdentity) != test.twin || (err == nil) == test.twin {
				t.Fatalf("%v, want a twin: %t", err, test.twin)
			}
			if !test.twin {
				return
			}
			if !strings.Contains(err.Error(), "vdc has the same") || strings.Contains(err.Error(), "free-serial") {
				t.Errorf("it does not name the other device, or shows the serial number: %v", err)
			}
			if _, err := n.Check(Wish{Path: "/dev/disk/by-id/virtio-other"}); !errors.Is(err, SameIdentity) {
				t.Errorf("by the other path: %v", err)
			}
			before := n.sum()
			if _, err := n.Wipe(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}); err == nil || n.sum() != before {
				t.Errorf("wiped: %v", err)
			}
		})
	}
}

// TestASilentDiskKeepsNoOtherFromALook: the kernel asks a virtio disk for its serial number each time the number is read.
func TestASilentDiskKeepsNoOtherFromALook(t *testing.T) {
	for noted, twin := range map[string]bool{"free-serial": true, "free_serial": true, "other": false} {
		n := newFakeNode(t)
		n.disk("vdc", "254:32", "")
		n.must(os.Remove(n.path("/sys/class/block/vdc/serial")))
		n.must(unix.Mkfifo(n.path("/sys/class/block/vdc/serial"), 0o600)) // nothing ever writes to it
		n.file("/run/udev/data/b254:32", "E:ID_SERIAL="+noted+"\n")
		if _, err := n.Check(Wish{Path: freePath}); errors.Is(err, SameIdentity) != twin || (err == nil) == twin {
			t.Errorf("serial number %s: %v", noted, err)
		}
	}
}

// designator returns an entry of page 0x83: codeset, association and type, as the standard defines them, and the data.
func designator(codeset, association, kind byte, data string) string {
	return string([]byte{codeset, association<<4 | kind, 0, byte(len(data))}) + data
}

func vpd83(designators ...string) string {
	all := strings.Join(designators, "")
	return string([]byte{0, 0x83, byte(len(all) >> 8), byte(len(all))}) + all
}

const (
	naa      = "\x60\x01\x40\x5a\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc"
	otherNAA = "\x60\x01\x40\x5a\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcd"
)

// both writes a file in /sys for vdb and vdc.
func (n *fakeNode) both(file, text string) {
	n.t.Helper()
	for _, kernel := range []string{"vdb", "vdc"} {
		n.file("/sys/class/block/"+kernel+"/"+file, text)
	}
}

func TestDesignators(t *testing.T) {
	page := vpd83(designator(2, 0, 1, "ATA     DISK 1"), designator(1, 0, 1, "\x01\x02"),
		designator(1, 0, 2, "\x00\x25\x38\x56\x91\x40\x4d\x47"), designator(1, 0, 3, naa), designator(1, 1, 3, otherNAA),
		designator(1, 0, 4, "\x00\x00\x00\x01"), designator(3, 0, 8, "iqn.2003-01.org:x\x00\x00"))
	want := []string{"eui.0025385691404d47", "naa." + hex.EncodeToString([]byte(naa)), "iqn.2003-01.org:x"}
	if got := designators([]byte(page)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := designators([]byte(page[:len(page)-30])); len(got) >= len(want) {
		t.Errorf("a page that was cut off: %q", got)
	}
}

func FuzzDesignators(f *testing.F) {
	f.Add([]byte(vpd83(designator(1, 0, 3, naa), designator(2, 0, 1, "ATA     DISK"), designator(3, 0, 8, "iqn.2003-01.org:x\x00\x00"))))
	f.Add([]byte("\x00\x83\xff\xff\x01\x03\x00\xff"))
	f.Fuzz(func(t *testing.T, page []byte) {
		names := designators(page)
		for _, name := range names {
			if len(name) > 4+2*255 {
				t.Errorf("%q is longer than a designator", name)
			}
		}
		if len(page) > 4 && page[1] != 0x83 && len(names) > 0 {
			t.Error("names from another page")
		}
	})
}
