package host

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const secondPath = "/dev/disk/by-id/virtio-second"

// twoDisks returns a node with two free disks, and both as they were checked.
func twoDisks(t *testing.T, n *fakeNode) []Disk {
	t.Helper()
	n.disk("vdc", "254:32", "second-serial")
	n.link(secondPath, "../../vdc")
	var checked []Disk
	for _, path := range []string{freePath, secondPath} {
		disk, err := n.Check(Wish{Path: path})
		n.must(err)
		checked = append(checked, disk)
	}
	return checked
}

// TestUsersAfterTheCheck: each kind of user that comes after the check of a disk is found before the disks are taken.
func TestUsersAfterTheCheck(t *testing.T) {
	for name, test := range map[string]struct {
		comes func(n *fakeNode)
		want  Reason
		path  string
	}{
		"no user":                            {comes: func(*fakeNode) {}},
		"virtual machine":                    {func(n *fakeNode) { n.opened("vdb", "0100002") }, InUse, freePath},
		"virtual machine on the second disk": {func(n *fakeNode) { n.opened("vdc", "0100002") }, InUse, secondPath},
		"raw block volume of a pod": {func(n *fakeNode) {
			n.mountTable(4711, "30 24 0:5 /vdc /dev/xvda rw - devtmpfs udev rw\n")
		}, Mounted, secondPath},
		"partition with a file system": {func(n *fakeNode) {
			n.partition("vdb", "vdb1", "254:17", 1, 1<<20, 8<<20)
			n.mountTable(4711, "30 24 254:17 / /data rw - ext4 /dev/vdb1 rw\n")
		}, Mounted, freePath},
		"volume group": {func(n *fakeNode) {
			n.file("/sys/class/block/vdc/holders/dm-7", "")
			n.block("virtual/block", "dm-7", "253:7", diskSize)
		}, HasHolders, secondPath},
		"another disk in its place": {func(n *fakeNode) { n.file("/sys/class/block/vdc/diskseq", "99\n") }, Changed, secondPath},
	} {
		n := newFakeNode(t)
		checked := twoDisks(t, n)
		test.comes(n)
		before := n.sum()
		err := n.StillUnused(checked)
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, test.want) || !strings.Contains(err.Error(), test.path)) {
			t.Errorf("%s: %v, want %q of %s", name, err, test.want, test.path)
		}
		if n.sum() != before {
			t.Errorf("%s: a disk was written to", name)
		}
	}
	n := newFakeNode(t)
	checked := twoDisks(t, n)
	n.must(os.Remove(n.path("/proc/1/mountinfo")))
	if err := n.StillUnused(checked); err == nil || !strings.Contains(err.Error(), "hostPID") {
		t.Errorf("a search that fails: %v", err)
	}
}

// TestEndsAfterTheCheck: data at the ends that comes after the check is found, also where the data of a former pool may look like anything.
func TestEndsAfterTheCheck(t *testing.T) {
	for name, test := range map[string]struct {
		node  func(t testing.TB) *fakeNode
		write func(n *fakeNode)
		want  bool
	}{
		"blank disk":                   {newLargeNode, func(*fakeNode) {}, true},
		"at the beginning":             {newLargeNode, func(n *fakeNode) { n.write("vdb", 12345, []byte{1}) }, false},
		"at the end":                   {newLargeNode, func(n *fakeNode) { n.write("vdb", largeSize-1, []byte{1}) }, false},
		"after a pool":                 {afterPoolDisk, func(*fakeNode) {}, true},
		"in the data of a former pool": {afterPoolDisk, func(n *fakeNode) { n.write("vdb", 9<<20, []byte("raw")) }, false},
		"after a wipe":                 {wipedDisk, func(*fakeNode) {}, true},
		"over the marker of a wipe":    {wipedDisk, func(n *fakeNode) { n.write("vdb", markerPlace(512), make([]byte, markerSize)) }, false},
	} {
		n := test.node(t)
		checked, err := n.Check(Wish{Path: freePath})
		n.must(err)
		test.write(n)
		if err := n.Untouched(checked); (err == nil) != test.want || err != nil && !errors.Is(err, Changed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheWipeCountsAsChecked: after a wipe, the ends are compared with those that the wipe has left.
func TestTheWipeCountsAsChecked(t *testing.T) {
	n := newLargeNode(t)
	n.write("vdb", 0, []byte("XFSB"))
	wiped, err := n.Wipe(Wish{Path: freePath, Reuse: "free-serial", Right: FileSystems})
	n.must(err)
	if err := n.Untouched(wiped); err != nil {
		t.Error(err)
	}
	n.write("vdb", 0, []byte("XFSB"))
	if err := n.Untouched(wiped); !errors.Is(err, Changed) {
		t.Errorf("written to since: %v", err)
	}
}

// TestUsersDuringTheCheck: a program that begins to use a disk after the search for users, when the check reads the disk, is found by the
// same check. A lease on the file that stands for the disk holds the check at that moment.
func TestUsersDuringTheCheck(t *testing.T) {
	n := newFakeNode(t)
	file, err := os.OpenFile(n.path("/dev/vdb"), os.O_RDWR, 0)
	n.must(err)
	defer func() { _ = file.Close() }()
	opened := make(chan os.Signal, 1)
	signal.Notify(opened, unix.SIGIO)
	defer signal.Stop(opened)
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no leases on this file system: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := n.Check(Wish{Path: freePath})
		done <- err
	}()
	select {
	case <-opened:
	case err := <-done:
		t.Fatalf("the disk was not opened: %v", err)
	}
	n.opened("vdb", "0100002")
	_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	n.must(err)
	if err := <-done; !errors.Is(err, InUse) {
		t.Errorf("%v, want %s", err, InUse)
	}
}
