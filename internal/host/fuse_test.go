package host

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFilesOfOthersDoNotStopTheLook: a tenant's FUSE file system that does not admit root must not prevent the use of other disks.
func TestFilesOfOthersDoNotStopTheLook(t *testing.T) {
	channel, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no FUSE on this machine: %v", err)
	}
	defer channel.Close() //nolint:errcheck // nothing is written
	folder := t.TempDir()
	if err := unix.Mount("tenant", folder, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=65534,group_id=65534",
		channel.Fd())); err != nil {
		t.Skipf("FUSE cannot be mounted here: %v", err)
	}
	defer unix.Unmount(folder, unix.MNT_DETACH) //nolint:errcheck // the test is over
	file, err := unix.Open(folder, unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(file) //nolint:errcheck // nothing is written
	var status unix.Statx_t
	if err := unix.Statx(file, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE, &status); err == nil {
		t.Fatal("it tells root what it is: nothing is shown")
	}
	kernel, err := NewNode("/").behind(fmt.Sprintf("/proc/self/fd/%d", file), map[string]string{"8:16": "sdb"})
	if err != nil || kernel != "" {
		t.Errorf("%q, %v", kernel, err)
	}
}
