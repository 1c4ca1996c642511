package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/host"
)

const blockFolder = "sys/devices/pci0000:00/block/sdb/"

// disk returns a fake machine with one disk of 16 MiB. changes replaces or adds files that describe the machine, or removes a file if the
// text is "-".
func disk(t *testing.T, changes map[string]string) Local {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"dev/sdb": strings.Repeat("\x00", 16<<20), blockFolder + "dev": "8:16\n", blockFolder + "size": "32768\n", blockFolder + "ro": "0\n",
		blockFolder + "queue/logical_block_size": "512\n", blockFolder + "queue/physical_block_size": "512\n",
		blockFolder + "queue/rotational": "0\n",
		blockFolder + "device/serial":    "S123 \n", "proc/1/mountinfo": "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
		"proc/swaps": "Filename Type Size Used Priority\n",
	}
	for name, text := range changes {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if text == "-" {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"sys/class/block/sdb": "../../devices/pci0000:00/block/sdb",
		"dev/disk/by-id/ata-x": "../../sdb"} {
		path := filepath.Join(root, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
	}
	return Local{Disks: Disks{Node: host.NewFake(root)}}
}

func TestDeviceIsAccepted(t *testing.T) {
	for serial, changes := range map[string]map[string]string{
		"S123":   nil,
		"VIRTIO": {blockFolder + "device/serial": "-", blockFolder + "serial": "VIRTIO\n"},
		"page":   {blockFolder + "device/serial": "-", blockFolder + "device/vpd_pg80": "\x00\x80\x00\x04page"},
		"udevshort": {blockFolder + "device/serial": "-",
			"run/udev/data/b8:16": "S:disk/by-id/x\nE:ID_SERIAL=model_long\nE:ID_SERIAL_SHORT=udevshort\n"},
	} {
		for _, path := range []string{"/dev/sdb", "/dev/disk/by-id/ata-x"} {
			storage, err := disk(t, changes).device(path, serial)
			if err != nil || storage.bytes != 16<<20 || storage.mode != "Block" || storage.path != path {
				t.Errorf("%s: %+v %v", serial, storage, err)
				continue
			}
			if got, err := storage.make("run"); err != nil || got != path || storage.remove(got) != nil {
				t.Errorf("%s: %s %v", serial, got, err)
			}
		}
	}
}

// TestDeviceIsRefused: in doubt, nothing is written. The check is that of the agent, whose own tests cover all refusals.
func TestDeviceIsRefused(t *testing.T) {
	for _, test := range []struct {
		name, serial string
		changes      map[string]string
		says         string
	}{
		{"named once", "", nil, "confirm it with --serial"},
		{"another serial", "S12", nil, "its serial number is not S12"},
		{"no serial", "S123", map[string]string{blockFolder + "device/serial": "-"}, "cannot be identified"},
		{"partition", "S123", map[string]string{blockFolder + "partition": "1"}, "is a partition: use the whole disk"},
		{"read-only", "S123", map[string]string{blockFolder + "ro": "1\n"}, "it is read-only"},
		{"held", "S123", map[string]string{blockFolder + "holders/dm-0/x": "1"}, "is part of dm-0"},
		{"mounted elsewhere", "S123", map[string]string{"proc/77/mountinfo": "9 1 8:16 / /srv rw - ext4 /dev/sdb rw\n"},
			"mounted at /srv, seen by process 77"},
		{"no mounts", "S123", map[string]string{"proc/1/mountinfo": "-"}, "no process of the node is visible"},
		{"gone", "S123", map[string]string{"dev/sdb": "-"}, "no such file"},
		{"data in the middle", "S123", map[string]string{"dev/sdb": strings.Repeat("\x00", 9<<20) + "data" + strings.Repeat("\x00", 7<<20-4)},
			"'blkdiscard --zeroout /dev/sdb' empties it"},
	} {
		storage, err := disk(t, test.changes).device("/dev/sdb", test.serial)
		if code, _ := exitCode(err); err == nil || code != ExitRefused || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v %v", test.name, storage, err)
		}
		if err != nil && test.name == "another serial" && strings.Contains(err.Error(), "S123") {
			t.Error("it tells the serial number that is asked for")
		}
	}
	if _, err := (Local{}).device("/dev/sdb", "S123"); err == nil || !strings.Contains(err.Error(), "cannot check what is on a device") {
		t.Error(err)
	}
}

// TestDeviceIsVerifiedBeforeEachRun: nothing is written if the path leads to another disk in the meantime.
func TestDeviceIsVerifiedBeforeEachRun(t *testing.T) {
	storage := localStorage{path: "/dev/sdb", mode: "Block", verify: func() error { return errors.New("another disk") }}
	if _, err := storage.make("run"); err == nil || !strings.Contains(err.Error(), "another disk") {
		t.Error(err)
	}
}

// TestLoopDeviceIsRefused runs the whole command on a real loop device.
func TestLoopDeviceIsRefused(t *testing.T) {
	backing := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(backing, nil, 0o600), os.Truncate(backing, 64<<20)); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", backing).CombinedOutput()
	if err != nil {
		t.Skipf("SKIP: no loop device can be used here: %v: %s", err, output)
	}
	path := strings.TrimSpace(string(output))
	t.Cleanup(func() { // the context of the test is over by now
		if output, err := exec.Command("losetup", "--detach", path).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	})
	app, _, said := testApp()
	e := &executor{}
	app.Local = Local{Executor: e, Disks: Disks{Node: host.NewNode("/")}}
	yaml := file(t, "b.yaml", strings.ReplaceAll(read(t, here(t, "")), "size: 16Mi", "size: 16Mi, volumeMode: Block"))
	code := app.Main(t.Context(), []string{"run", yaml, "--local", path, "--serial", backing, "--output",
		filepath.Join(t.TempDir(), fmt.Sprint(time.Now().Unix()))})
	if code != ExitRefused || len(e.requests) != 0 ||
		!strings.Contains(said.String(), "is a loop device, not a disk: use the disk below it") {
		t.Errorf("exit code %d, %d phases: %s", code, len(e.requests), said)
	}
}
