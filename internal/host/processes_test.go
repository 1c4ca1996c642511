package host

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const userKind = "STORAGEBENCH_TEST_USER"

// TestMain can also run as the process that uses a device in a way that its descriptors do not show. No other threads may share its
// descriptors.
func TestMain(m *testing.M) {
	if kind := os.Getenv(userKind); kind != "" {
		if err := useDevice(kind, os.Getenv("STORAGEBENCH_TEST_DEVICE")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func useDevice(kind, path string) error {
	switch kind {
	case "idle":
		return nil
	case "open", "reader", "reference":
		flags := map[string]int{"open": unix.O_RDWR, "reader": unix.O_RDONLY, "reference": unix.O_PATH}
		_, err := unix.Open(path, flags[kind], 0)
		return err
	case "mapped":
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return errors.Join(err, file.Close())
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // only this goroutine uses the thread and its table of descriptors
		failed <- func() error {
			if unix.Gettid() == os.Getpid() {
				return errors.New("this is the first thread")
			}
			if err := unix.Unshare(unix.CLONE_FILES); err != nil {
				return err
			}
			_, err := unix.Open(path, unix.O_RDWR, 0)
			return err
		}()
		select {}
	}()
	err := <-failed
	if err == nil && kind == "leaderless" {
		fmt.Println("ready")
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0) // ends only the first thread, to which main is locked
	}
	return err
}

func init() {
	if os.Getenv(userKind) != "" {
		runtime.LockOSThread() // main runs on the first thread
	}
}

// userOf starts a process that uses a device, and shows that process to a fake node.
func userOf(t *testing.T, n *fakeNode, kind, path string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/proc/self/exe")
	command.Env = append(os.Environ(), userKind+"="+kind, "STORAGEBENCH_TEST_DEVICE="+path)
	input, err := command.StdinPipe()
	n.must(err)
	output, err := command.StdoutPipe()
	n.must(err)
	n.must(command.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%s: %q, %v", kind, line, err)
	}
	process := strconv.Itoa(command.Process.Pid)
	n.link("/proc/"+process, "/proc/"+process)
	own, err := os.Readlink("/proc/self/ns/pid")
	n.must(err)
	n.link("/proc/1/ns/pid", own)
	return process
}

// TestHiddenUsers starts real processes whose use of a disk is not visible in /proc/PID/fd.
func TestHiddenUsers(t *testing.T) {
	for kind, want := range map[string]string{"idle": "", "thread": "vdb is open for writing in process ",
		"leaderless": "vdb is open for writing in process ", "mapped": "vdb is mapped in process "} {
		t.Run(kind, func(t *testing.T) {
			n := newFakeNode(t)
			process := userOf(t, n, kind, n.path("dev/vdb"))
			if kind == "leaderless" {
				for state := ""; !strings.Contains(state, "(zombie)"); {
					text, err := os.ReadFile("/proc/" + process + "/status")
					n.must(err)
					state = string(text)
				}
			}
			_, err := n.Check(Wish{Path: freePath})
			if want == "" && err != nil || want != "" && (!errors.Is(err, InUse) || !strings.Contains(err.Error(), want+process)) {
				t.Errorf("%v, want %q", err, want+process)
			}
		})
	}
}

// TestCharacterDevices: a program can write to a disk through its character devices. Here, /dev/full stands for them.
func TestCharacterDevices(t *testing.T) {
	const nvmePath = "/dev/disk/by-id/nvme-free"
	for name, test := range map[string]struct{ dev, kind, path, want string }{
		"sg": {"class/block/vdb/device/scsi_generic/sg3", "open", freePath,
			"sg3, a character device of vdb, is open in process "},
		"sg, for reading": {"class/block/vdb/device/scsi_generic/sg3", "reader", freePath,
			"sg3, a character device of vdb, is open in process "},
		"sg, as a reference":  {"class/block/vdb/device/scsi_generic/sg3", "reference", freePath, ""},
		"sg, of another disk": {"class/block/vda/device/scsi_generic/sg0", "open", freePath, ""},
		"bsg": {"class/block/vdb/device/bsg/2:0:0:0", "open", freePath,
			"bsg/2:0:0:0, a character device of vdb, is open in process "},
		"NVMe":                  {"class/nvme-generic/ng3n1", "open", nvmePath, "ng3n1, a character device of nvme3n1, is open in process "},
		"NVMe, of another disk": {"class/nvme-generic/ng3n2", "open", nvmePath, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := newFakeNode(t)
			n.disk("nvme3n1", "259:3", "nvme-serial")
			n.link(nvmePath, "../../nvme3n1")
			n.file("/sys/"+test.dev+"/dev", "1:7\n")
			process := userOf(t, n, test.kind, "/dev/full")
			_, err := n.Check(Wish{Path: test.path})
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, InUse) || !strings.Contains(err.Error(), test.want+process)) {
				t.Errorf("%v, want %q", err, test.want+process)
			}
		})
	}
}

// TestTablesAreLookedAtOnce: thousands of threads cost one look, as long as they share their descriptors.
func TestTablesAreLookedAtOnce(t *testing.T) {
	table := func(thread int) int { return thread % 3 }
	compared := 0
	all := &tables{compare: func(a, b int) (int, error) {
		compared++
		switch {
		case table(a) < table(b):
			return 1, nil
		case table(a) > table(b):
			return 2, nil
		}
		return 0, nil
	}}
	looks := 0
	for thread := range 10_000 {
		if all.add(thread) {
			looks++
		}
	}
	if looks != 3 || compared > 30_000 {
		t.Errorf("%d looks, %d comparisons: want 3 and at most 30000", looks, compared)
	}
	all.compare = func(int, int) (int, error) { return 0, unix.ESRCH }
	if !all.add(7) || len(all.threads) != 3 {
		t.Error("what cannot be compared was not looked at")
	}
}

// TestALookThatFailsRefuses: a disk is refused if something cannot be read.
func TestALookThatFailsRefuses(t *testing.T) {
	for want, spoil := range map[string]func(n *fakeNode){
		"does not show which files are mapped": func(n *fakeNode) { n.file("/proc/7/maps", "00400000-00401000 rw-s 00000000 00:05 12 /dev/x\n") },
		"mappings change": func(n *fakeNode) {
			n.file("/proc/7/maps", "00400000-00401000 rw-s 00000000 00:05 12 /dev/x\n")
			n.file("/proc/7/map_files/x", "")
		},
		"is not a line of maps": func(n *fakeNode) { n.file("/proc/7/maps", "nonsense\n") },
		"has nvmet":             func(n *fakeNode) { n.file("/sys/module/nvmet/refcnt", "1") },
		"has target_core_mod":   func(n *fakeNode) { n.file("/sys/module/target_core_mod/refcnt", "1") },
		"as namespace 1 of a:":  func(n *fakeNode) { n.nvmet("1", "/dev/gone") },
		"exports as fileio_0/a": func(n *fakeNode) {
			n.file("/"+configs+"/target/core/fileio_0/a/info", "Status: ACTIVATED\nTCM FILEIO ID: 0        File: /dev/gone  Size: 1")
		},
	} {
		n := newFakeNode(t)
		spoil(n)
		if _, err := n.Check(Wish{Path: freePath}); !errors.Is(err, Unreadable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	n := newFakeNode(t)
	n.opened("vdb", "0100000")
	all := watched{members: map[string]string{"254:16": "vdb"}, disks: map[string]*Disk{"vdb": {Kernel: "vdb"}}}
	if err := n.processesWithin(all, time.Nanosecond); err == nil ||
		!strings.Contains(err.Error(), "did not finish in time") {
		t.Errorf("a search without time: %v", err)
	}
	process := "7"
	n.hanging.Store(&process)
	if err := n.processes(all); err == nil || !strings.Contains(err.Error(), "still hangs at process 7") {
		t.Errorf("a search beside one that hangs: %v", err)
	}
}

// nvmet makes an export of the kernel's target for NVMe over fabrics.
func (n *fakeNode) nvmet(enabled, path string) {
	n.t.Helper()
	at := "/" + configs + "/nvmet/subsystems/a/namespaces/1/"
	n.file(at+"enable", enabled+"\n")
	n.file(at+"device_path", path+"\n")
}

func TestExports(t *testing.T) {
	lio := func(device, info string) func(n *fakeNode) {
		return func(n *fakeNode) {
			n.file("/"+configs+"/target/core/"+filepath.Dir(device)+"/hba_info", "HBA Index: 1\n")
			n.file("/"+configs+"/target/core/"+device+"/info", info)
			n.file("/"+configs+"/target/core/"+device+"/udev_path", "\n")
		}
	}
	for name, test := range map[string]struct {
		spoil func(n *fakeNode)
		want  string
	}{
		"nvmet":                 {func(n *fakeNode) { n.nvmet("1", "/dev/vdb") }, "as namespace 1 of a"},
		"nvmet by another name": {func(n *fakeNode) { n.nvmet("1", freePath) }, "as namespace 1 of a"},
		"nvmet, off":            {func(n *fakeNode) { n.nvmet("0", "/dev/vdb") }, ""},
		"nvmet, another disk":   {func(n *fakeNode) { n.nvmet("1", "/dev/vda") }, ""},
		"nvmet, a file":         {func(n *fakeNode) { n.file("/srv/image", "x"); n.nvmet("1", "/srv/image") }, ""},
		"LIO, block": {lio("iblock_0/a",
			"Status: ACTIVATED\niBlock device: vdb  UDEV PATH: /dev/x\n        Major: 254 Minor: 16  CLAIMED: IBLOCK"), "LIO as iblock_0/a"},
		"LIO, another": {lio("iblock_0/a", "Status: ACTIVATED\n        Major: 254 Minor: 1  CLAIMED: IBLOCK"), ""},
		"LIO, as a file": {lio("fileio_1/a", "Status: ACTIVATED\nTCM FILEIO ID: 0        File: /dev/vdb  Size: 1 Mode: O_DSYNC"),
			"LIO as fileio_1/a"},
		"LIO, off": {lio("fileio_1/a", "Status: DEACTIVATED\nTCM FILEIO ID: 0        File: /dev/vdb  Size: 1"), ""},
	} {
		n := newFakeNode(t)
		test.spoil(n)
		_, err := n.Check(Wish{Path: freePath})
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, InUse) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	n := newFakeNode(t)
	if err := unix.Mknod(n.path("/dev/other-name"), unix.S_IFBLK|0o600, int(unix.Mkdev(254, 16))); err != nil {
		t.Logf("no device file can be made here, so an export through another name of the disk is not tried: %v", err)
	} else {
		n.nvmet("1", "/dev/other-name")
		if _, err := n.Check(Wish{Path: freePath}); !errors.Is(err, InUse) {
			t.Errorf("an export through another device file: %v", err)
		}
	}
	n = newFakeNode(t)
	n.disk("nvme3n1", "259:3", "s")
	n.file("/sys/class/nvme/nvme1/nvme3c1n1/dev", "0:0")
	n.file("/"+configs+"/nvmet/subsystems/p/passthru/enable", "1")
	n.file("/"+configs+"/nvmet/subsystems/p/passthru/device_path", "/dev/nvme1")
	disk := &Disk{Kernel: "nvme3n1"}
	if err := n.exports(disk, nil); err != nil || len(disk.Findings) != 1 {
		t.Errorf("a controller that is exported: %v, %v", err, disk.Findings)
	}
}

// TestLoopDevicesAreAsked puts a loop device on another one through a device file that has another name and is then deleted.
func TestLoopDevicesAreAsked(t *testing.T) {
	lower := loopOn(t, func() string {
		image := filepath.Join(t.TempDir(), "image")
		if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, diskSize)); err != nil {
			t.Fatal(err)
		}
		return image
	}())
	n := NewNode("/")
	number, err := n.text("sys/class/block", lower, "dev")
	if err != nil {
		t.Fatal(err)
	}
	var status unix.Stat_t
	if err := unix.Stat("/dev/"+lower, &status); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join("/dev", "storagebench-test-"+lower)
	if err := unix.Mknod(elsewhere, unix.S_IFBLK|0o600, int(status.Rdev)); err != nil {
		t.Skipf("no device file can be made here, so loop devices on one that is gone are not tried: %v", err)
	}
	upper := loopOn(t, elsewhere)
	if err := os.Remove(elsewhere); err != nil {
		t.Fatal(err)
	}
	disk := &Disk{Kernel: lower}
	if err := n.loops(disk, map[string]string{number: lower}); err != nil || len(disk.Findings) != 1 ||
		!strings.Contains(disk.Findings[0].Detail, lower+" is below "+upper) {
		t.Errorf("%v, %v", err, disk.Findings)
	}
	other := &Disk{Kernel: "vdx"}
	if err := n.loops(other, map[string]string{"250:250": "vdx"}); err != nil || len(other.Findings) != 0 {
		t.Errorf("%v, %v", err, other.Findings)
	}
}

func loopOn(t *testing.T, file string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", file).CombinedOutput()
	if err != nil {
		t.Skipf("no loop device to be had, so that what is below one is not asked: %v %s", err, output)
	}
	path := strings.TrimSpace(string(output))
	t.Cleanup(func() {
		if output, err := exec.Command("losetup", "--detach", path).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, output)
		}
	})
	return filepath.Base(path)
}
