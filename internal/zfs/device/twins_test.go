package device

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPathsToOneDisk: a disk that the node sees twice is refused on either path, also while one of them is in use and the other looks free.
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
			if !strings.Contains(err.Error(), "vdc has the same") {
				t.Errorf("it does not name the other device: %v", err)
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

// TestASilentDiskKeepsNoOtherFromALook: the kernel asks a virtio disk for its serial number each time that it is read.
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
