package host

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

func TestRemoveFolders(t *testing.T) {
	n := newFakeNode(t)
	n.must(os.MkdirAll(n.path("/top/sb-1/lab/data"), 0o755))
	n.must(os.MkdirAll(n.path("/top/sb-1/other"), 0o755))
	n.must(os.WriteFile(n.path("/top/sb-1/other/file"), nil, 0o600))
	for _, folder := range []string{"/top/sb-1/lab/data", "/top/sb-1/lab/data", "/top/sb-1/other", "/top/../top", "/elsewhere"} {
		if err := n.RemoveFolders("/top", folder); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
	for folder, want := range map[string]bool{"/top": true, "/top/sb-1/other/file": true, "/top/sb-1/lab": false} {
		if _, err := os.Stat(n.path(folder)); errors.Is(err, fs.ErrNotExist) == want {
			t.Errorf("%s is there: %v, want %v", folder, err, want)
		}
	}
	if err := n.RemoveFolders("/top", "/top/sb-1/other/file"); err == nil {
		t.Error("a file is no folder")
	}
}

// TestMountPointsStay: the folder below a mount is empty, and looks as if it could be removed.
func TestMountPointsStay(t *testing.T) {
	const root = "24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
	for name, test := range map[string]struct {
		process int
		table   string
		gone    bool
	}{
		"on the node": {1, root + "30 24 0:40 / /top/sb-1/data rw shared:9 - zfs sb-1/data rw\n", false},
		"below it":    {1, root + "30 24 0:40 / /top/sb-1/data/x rw shared:9 - zfs sb-1/data rw\n", false},
		"in a pod": {7, "51 1 254:1 /top /host rw - ext4 /dev/vda1 rw\n52 51 0:40 / /host/sb-1/data rw - zfs sb-1/data rw\n",
			false},
		"in a pod that hides its root": {7, "52 51 0:40 / /top/sb-1/data rw - zfs sb-1/data rw\n", false},
		"elsewhere":                    {1, root + "30 24 0:40 / /top/sb-1/data2 rw shared:9 - zfs sb-1/data rw\n", true},
		"there in another file system": {7, "51 1 254:9 / / rw - ext4 /dev/vdc rw\n52 51 0:40 / /top/sb-1/data rw - zfs sb-1/data rw\n", true},
	} {
		n := newFakeNode(t)
		n.must(os.MkdirAll(n.path("/top/sb-1/data"), 0o755))
		n.mountTable(test.process, test.table)
		if err := n.RemoveFolders("/top", "/top/sb-1/data"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(n.path("/top/sb-1/data")); errors.Is(err, fs.ErrNotExist) != test.gone {
			t.Errorf("%s: the folder is gone: %v", name, !test.gone)
		}
	}
	blind := newFakeNode(t)
	blind.must(os.MkdirAll(blind.path("/top/sb-1"), 0o755))
	blind.must(os.Remove(blind.path("/proc/1/mountinfo")))
	if err := blind.RemoveFolders("/top", "/top/sb-1"); err == nil {
		t.Error("a folder was removed although its mounts are unknown")
	}
}

// TestMountPointsOfTheKernelStay looks at a node that has a mount namespace of its own from another namespace, as a pod does.
func TestMountPointsOfTheKernelStay(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can mount")
	}
	top := t.TempDir()
	script := fmt.Sprintf("mkdir -p %[1]s/sb-1/data %[1]s/sb-1/idle && mount -t tmpfs storagebench-test %[1]s/sb-1/data && echo ready && "+
		"read end", top)
	node := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script)
	input, inputErr := node.StdinPipe()
	output, outputErr := node.StdoutPipe()
	if err := errors.Join(inputErr, outputErr, node.Start()); err != nil {
		t.Skipf("SKIP: no namespaces can be made here: %v", err)
	}
	timeout := time.AfterFunc(time.Minute, func() { _ = node.Process.Kill() })
	defer func() {
		_ = input.Close()
		_ = node.Wait() // its read fails when the input ends
		timeout.Stop()
	}()
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		t.Skipf("SKIP: no mounts can be made here: %s%v", line, err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", node.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	n := NewNode("/proc/" + strings.TrimSpace(string(children)) + "/root")
	for _, folder := range []string{"data", "idle"} {
		if err := n.RemoveFolders(top, top+"/sb-1/"+folder); err != nil {
			t.Error(err)
		}
	}
	var last mountinfo.Mount
	err = n.mountsOf(nodeProcess, func(mount mountinfo.Mount) error {
		last = mount
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if last.Point != top+"/sb-1/data" {
		t.Errorf("the mount is gone; the last one is at %s", last.Point)
	}
	if _, err := os.Stat(top + "/sb-1/idle"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder that nothing is mounted on is there: %v", err)
	}
}
