package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/naming"
)

// immutableNow reports whether a folder has the flag, and whether its file system knows it.
func immutableNow(t *testing.T, at string) (set, known bool) {
	t.Helper()
	file, err := os.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	flags, err := unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	return flags&flagImmutable != 0, err == nil
}

// TestMountPointsCannotBeWritten: not even root can create files in a mount point or change its owner, but a file system can be mounted on
// it.
func TestMountPointsCannotBeWritten(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can set the flag")
	}
	n, point := newFakeNode(t), "/var/lib/top/sb-1/lab/data"
	t.Cleanup(func() { n.seal("/var/lib/top", point, false) })
	for range 2 { // the second time, there is nothing to do
		n.must(n.MakeMountPoint("/var/lib/top", point))
	}
	at := n.path(point)
	set, known := immutableNow(t, at)
	info, err := os.Stat(at)
	if err != nil {
		t.Fatal(err)
	}
	if !known {
		if info.Mode().Perm() != 0 {
			t.Errorf("on a file system without the flag it has mode %v", info.Mode())
		}
		t.Skip("SKIP: this file system has no immutable flag")
	}
	if !set {
		t.Error("the folder can be written")
	}
	if err := os.WriteFile(filepath.Join(at, "file"), nil, 0o600); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file: %v", err)
	}
	if err := os.Chown(at, 0, 1000); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("another owner: %v", err)
	}
	if err := unix.Mount("storagebench-test", at, "tmpfs", 0, "size=64k"); err != nil {
		t.Logf("no mounts can be made here: %v", err)
	} else {
		n.must(os.WriteFile(filepath.Join(at, "file"), nil, 0o600))
		if err := n.MakeMountPoint("/var/lib/top", point); !errors.Is(err, unix.EXDEV) {
			t.Errorf("what is mounted is taken for the folder below: %v", err)
		}
		n.must(unix.Unmount(at, 0))
	}
	n.must(n.RemoveFolders("/var/lib/top", point))
	if _, err := os.Stat(n.path("/var/lib/top/sb-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folders are left: %v", err)
	}
	if _, err := os.Stat(n.path("/var/lib/top")); err != nil {
		t.Error(err)
	}
}

// TestMountPointsAreNoLinks: a link in place of any part of the path is not followed, and a folder with contents is refused, so no mount
// covers them.
func TestMountPointsAreNoLinks(t *testing.T) {
	for name, plant := range map[string]func(n *fakeNode){
		"the point":      func(n *fakeNode) { n.must(os.Symlink("/victim", n.path("/top/sb-1/lab"))) },
		"a link out":     func(n *fakeNode) { n.must(os.Symlink("../../victim", n.path("/top/sb-1/lab"))) },
		"a link nowhere": func(n *fakeNode) { n.must(os.Symlink("/none", n.path("/top/sb-1/lab"))) },
		"a folder on it": func(n *fakeNode) {
			n.must(os.Remove(n.path("/top/sb-1")))
			n.must(os.Symlink("/victim", n.path("/top/sb-1")))
		},
		"a file":          func(n *fakeNode) { n.must(os.WriteFile(n.path("/top/sb-1/lab"), nil, 0o600)) },
		"a folder in use": func(n *fakeNode) { n.must(os.MkdirAll(n.path("/top/sb-1/lab/theirs"), 0o755)) },
	} {
		n := newFakeNode(t)
		n.must(os.MkdirAll(n.path("/top/sb-1"), 0o755))
		n.must(os.MkdirAll(n.path("/victim"), 0o755))
		plant(n)
		if err := n.MakeMountPoint("/top", "/top/sb-1/lab"); err == nil {
			t.Errorf("%s: it is taken", name)
		}
		if set, _ := immutableNow(t, n.path("/victim")); set {
			t.Errorf("%s: the folder that the link leads to was changed", name)
		}
		if names, err := os.ReadDir(n.path("/victim")); err != nil || len(names) > 0 {
			t.Errorf("%s: in the folder that the link leads to are %v: %v", name, names, err)
		}
	}
	n := newFakeNode(t)
	n.must(os.MkdirAll(n.path("/elsewhere"), 0o755))
	n.must(os.Symlink("/elsewhere", n.path("/top")))
	t.Cleanup(func() { n.seal("/top", "/top/sb-1/lab", false) })
	n.must(n.MakeMountPoint("/top", "/top/sb-1/lab")) // the part of the path that belongs to root may be a link, within the node
	if _, err := os.Stat(n.path("/elsewhere/sb-1/lab")); err != nil {
		t.Error(err)
	}
	if err := n.MakeMountPoint("/top", "/outside"); err == nil {
		t.Error("a folder outside is taken")
	}
}

// TestMountsAreFound: a dataset is mounted only if the node shows it at exactly that place, as a whole, on the file system of the dataset.
func TestMountsAreFound(t *testing.T) {
	const root = "24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
	n := newFakeNode(t)
	n.must(os.MkdirAll(n.path("/top/sb-1/lab"), 0o755))
	own := deviceOf(t, n.path("/top/sb-1/lab"))
	table := func(line string) { n.mountTable(1, strings.TrimRight(root+line, "\n")+"\n") }
	mounted := func() (bool, error) { return n.Mounted("/top", "/top/sb-1/lab", "sb-1/lab") }
	for name, line := range map[string]string{
		"nothing":           "",
		"another dataset":   "30 24 " + own + " / /top/sb-1/lab rw - zfs sb-1/other rw",
		"a folder of it":    "30 24 " + own + " /sub /top/sb-1/lab rw - zfs sb-1/lab rw",
		"another place":     "30 24 " + own + " / /top/sb-1/lab2 rw - zfs sb-1/lab rw",
		"covered by others": "30 24 " + own + " / /top/sb-1/lab rw - zfs sb-1/lab rw\n31 30 0:50 / /top/sb-1/lab rw - tmpfs tmpfs rw",
	} {
		table(line)
		if is, err := mounted(); is || err != nil {
			t.Errorf("%s: mounted %v, %v", name, is, err)
		}
		if err := n.MakeVolumeFolder("/top", "/top/sb-1/lab", "sb-1/lab"); err == nil {
			t.Errorf("%s: a folder for pods is made", name)
		}
	}
	table("30 24 0:99 / /top/sb-1/lab rw - zfs sb-1/lab rw")
	if is, err := mounted(); is || err == nil {
		t.Errorf("another file system: mounted %v, %v", is, err)
	}
	table("30 24 " + own + " / /top/sb-1/lab rw - zfs sb-1/lab rw")
	if is, err := mounted(); is || err != nil {
		t.Errorf("without the folder for pods: %v, %v", is, err)
	}
	n.must(os.Symlink("/", n.path("/top/sb-1/lab", naming.VolumeFolder)))
	if is, _ := mounted(); is || n.MakeVolumeFolder("/top", "/top/sb-1/lab", "sb-1/lab") == nil {
		t.Error("a link is taken for the folder for pods")
	}
	n.must(os.Remove(n.path("/top/sb-1/lab", naming.VolumeFolder)))
	for range 2 {
		n.must(n.MakeVolumeFolder("/top", "/top/sb-1/lab", "sb-1/lab"))
	}
	if is, err := mounted(); !is || err != nil {
		t.Errorf("mounted: %v, %v", is, err)
	}
	table("30 24 0:40 / /top/sb-1/lab rw - zfs sb-1/lab rw\n31 30 0:41 / /top/sb-1/lab/a rw - zfs sb-1/lab/a rw\n" +
		"35 30 0:45 / /top/sb-1/lab/.zfs/snapshot/s ro - zfs sb-1/lab@s ro\n32 31 0:42 / /top/sb-1/lab/a/b rw - zfs sb-1/b rw\n33 24 0:43 / /top/sb-1/lab2 rw - zfs sb-1/c rw\n34 30 0:44 / /top/sb-1/lab/x rw - " +
		"zfs other/x rw")
	nested, err := n.NestedMounts("sb-1", "/top/sb-1/lab", "/top/sb-1/none")
	if want := []string{"sb-1/b", "sb-1/lab/a"}; err != nil || !slices.Equal(nested, want) {
		t.Errorf("nested are %q, want %q: %v", nested, want, err)
	}
}

func deviceOf(t *testing.T, at string) string {
	t.Helper()
	var status unix.Stat_t
	if err := unix.Stat(at, &status); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d:%d", unix.Major(status.Dev), unix.Minor(status.Dev))
}

// TestDetachedMounts: detached mounts are visible in no namespace, take files, and are unmounted with their last open file.
func TestDetachedMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can mount")
	}
	for _, readOnly := range []bool{false, true} {
		mounted, err := detached("tmpfs", "storagebench-detached", readOnly)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			t.Skipf("SKIP: no mounts can be made here: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		root, err := rootOf(mounted)
		if err != nil {
			t.Fatal(err)
		}
		if err := root.Mkdir("folder", 0o755); readOnly != errors.Is(err, unix.EROFS) || !readOnly && err != nil {
			t.Errorf("read-only %v: %v", readOnly, err)
		}
		var status unix.Statfs_t
		folder, err := root.Open(".")
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Fstatfs(int(folder.Fd()), &status); err != nil {
			t.Fatal(err)
		}
		if want := int64(unix.ST_NOSUID | unix.ST_NODEV | unix.ST_NOEXEC | unix.ST_NOATIME); status.Flags&want != want {
			t.Errorf("flags %#x", status.Flags)
		}
		table, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil || strings.Contains(string(table), "storagebench-detached") {
			t.Errorf("it is seen: %v", err)
		}
		if err := errors.Join(folder.Close(), root.Close()); err != nil {
			t.Error(err)
		}
	}
}
