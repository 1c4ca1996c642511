package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// carries is a SignatureCheck that finds the same on every device.
type carries struct {
	found string
	err   error
}

func (c carries) Signature(context.Context, string) (string, error) { return c.found, c.err }

// disk is a machine with one disk, as the kernel tells of it, with some files changed, added, or removed by an empty text.
func disk(t *testing.T, changes map[string]string) Local {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"dev/sdb":                          "",
		"sys/dev/block/8:16/size":          "4194304\n",
		"sys/dev/block/8:16/ro":            "0\n",
		"sys/dev/block/8:16/device/serial": "S123 \n",
		"sys/dev/block/8:16/holders/.keep": "",
		"proc/self/mountinfo":              "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
		"proc/swaps":                       "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
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
	if err := os.Remove(filepath.Join(root, "sys/dev/block/8:16/holders/.keep")); err != nil {
		t.Fatal(err)
	}
	return Local{Root: root, Signatures: carries{}}
}

func TestDeviceIsAccepted(t *testing.T) {
	for name, changes := range map[string]map[string]string{
		"S123":        nil,
		"VIRTIO":      {"sys/dev/block/8:16/device/serial": "-", "sys/dev/block/8:16/serial": "VIRTIO\n"},
		"page":        {"sys/dev/block/8:16/device/serial": "-", "sys/dev/block/8:16/device/vpd_pg80": "\x00\x80\x00\x04page"},
		"udev short":  {"sys/dev/block/8:16/device/serial": "-", "run/udev/data/b8:16": "S:disk/by-id/x\nE:ID_SERIAL=model_long\nE:ID_SERIAL_SHORT=udev short\n"},
		"/srv/a disk": {"sys/dev/block/8:16/device/serial": "-", "sys/dev/block/8:16/loop/backing_file": "/srv/a disk\n"},
	} {
		storage, err := disk(t, changes).disk(t.Context(), "/dev/sdb", name, "8:16")
		if err != nil || storage.bytes != 2<<30 || storage.mode != "Block" || storage.path != "/dev/sdb" {
			t.Errorf("%s: %+v %v", name, storage, err)
		}
		if storage != nil && storage.remove(storage.path) != nil {
			t.Error("a device was removed")
		}
	}
}

// TestDeviceIsRefused: in doubt, nothing is written.
func TestDeviceIsRefused(t *testing.T) {
	const folder = "sys/dev/block/8:16/"
	for _, test := range []struct {
		name, serial string
		changes      map[string]string
		signatures   SignatureCheck
		says         string
	}{
		{"named once", "", nil, carries{}, "name it a second time with --serial"},
		{"another serial", "S12", nil, carries{}, "its serial number is not S12"},
		{"no serial", "S123", map[string]string{folder + "device/serial": "-"}, carries{}, "cannot be named twice"},
		{"partition", "S123", map[string]string{folder + "partition": "1"}, carries{}, "it is a partition"},
		{"partitions", "S123", map[string]string{folder + "sdb1/partition": "1"}, carries{}, "it has partitions (sdb1)"},
		{"read-only", "S123", map[string]string{folder + "ro": "1\n"}, carries{}, "it is read-only"},
		{"held", "S123", map[string]string{folder + "holders/dm-0/x": "1"}, carries{}, "it is part of dm-0"},
		{"mounted", "S123", map[string]string{"proc/self/mountinfo": "9 1 8:16 / /srv rw - ext4 /dev/sdb rw\n"}, carries{}, "it is mounted at /srv"},
		{"no mounts", "S123", map[string]string{"proc/self/mountinfo": "-"}, carries{}, "the mounts cannot be read"},
		{"gone", "S123", map[string]string{"dev/sdb": "-"}, carries{}, "no such file"},
		{"unknown", "S123", map[string]string{}, nil, "cannot check what is on a device"},
		{"data", "S123", nil, carries{found: "an ext4 file system"}, "there is an ext4 file system on it"},
		{"unreadable", "S123", nil, carries{err: errors.New("input/output error")}, "look what is on it: input/output error"},
	} {
		local := disk(t, test.changes)
		local.Signatures = test.signatures
		storage, err := local.disk(t.Context(), "/dev/sdb", test.serial, "8:16")
		if code, _ := exitCode(err); err == nil || code != ExitRefused || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v %v", test.name, storage, err)
		}
		if err != nil && test.name == "another serial" && strings.Contains(err.Error(), "S123") {
			t.Error("it tells the serial number that is asked for")
		}
	}
	if _, err := disk(t, nil).disk(t.Context(), "/dev/sdb", "S123", "8:32"); err == nil || !strings.Contains(err.Error(), "the kernel tells nothing of it") {
		t.Error(err)
	}
}

// loop attaches a file of 64 MiB to a loop device.
func loop(t *testing.T) (device, backing string) {
	t.Helper()
	backing = filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(backing, nil, 0o600), os.Truncate(backing, 64<<20)); err != nil {
		t.Fatal(err)
	}
	device = strings.TrimSpace(command(t, "losetup", "--find", "--show", backing))
	t.Cleanup(func() { // the context of the test is over by now
		if output, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	})
	return device, backing
}

func command(t *testing.T, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Skipf("SKIP: no loop device can be used here: %s: %v: %s", argv[0], err, output)
	}
	return string(output)
}

// TestRealDevice goes all the way with a device of the kernel.
func TestRealDevice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can attach a loop device")
	}
	device, backing := loop(t)
	path := file(t, "b.yaml", strings.ReplaceAll(read(t, here(t, "")), "size: 16Mi", "size: 16Mi, volumeMode: Block"))
	run := func(app *App, errors *written, arguments ...string) (int, string) {
		code := app.Main(t.Context(), append([]string{"run", path, "--local", device, "--output", filepath.Join(t.TempDir(), "r")}, arguments...))
		return code, errors.String()
	}
	for _, test := range []struct {
		signatures SignatureCheck
		arguments  []string
		code, runs int
		says       string
	}{
		{carries{}, nil, ExitRefused, 0, "name it a second time"},
		{carries{}, []string{"--serial", "other"}, ExitRefused, 0, "its serial number is not other"},
		{carries{found: "swap space"}, []string{"--serial", backing}, ExitRefused, 0, "there is swap space on it"},
		{carries{}, []string{"--serial", backing}, ExitPassed, 4, ""},
	} {
		app, _, errors := testApp()
		e := &executor{}
		app.Local = Local{Executor: e, Signatures: test.signatures}
		code, said := run(app, errors, test.arguments...)
		if code != test.code || len(e.requests) != test.runs || !strings.Contains(said, test.says) {
			t.Errorf("%v: exit code %d, %d phases: %s", test.arguments, code, len(e.requests), said)
		}
		for _, request := range e.requests {
			if request.Path != device || request.VolumeMode != "Block" || request.Promised != "" {
				t.Errorf("%+v", request)
			}
		}
	}
}
