package observe

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoopDevice measures a real file system on a real loop device. It needs root, losetup, mkfs.ext4 and fio, and runs only with
// STORAGEBENCH_TEST_LOOP=1.
func TestLoopDevice(t *testing.T) {
	if os.Getenv("STORAGEBENCH_TEST_LOOP") == "" {
		t.Skip("set STORAGEBENCH_TEST_LOOP=1 to use a loop device, as root")
	}
	for _, test := range []struct {
		name          string
		block, direct bool
	}{{"file system", false, true}, {"file system on a cached file", false, false}, {"block device", true, true}} {
		t.Run(test.name, func(t *testing.T) {
			size := int64(256 << 20)
			if test.block {
				size = 100 << 20 // readahead ends where the device ends
			}
			device := loopDevice(t, size, test.direct)
			target := Target{Path: device, Block: true}
			file := device
			if !test.block {
				target = Target{Path: mountLoop(t, device)}
				file = filepath.Join(target.Path, "data")
			}
			o, err := New(target)
			if err != nil {
				t.Fatal(err)
			}
			tryCaches(t, o, file, test.direct)
		})
	}
}

// tryCaches writes 100 MiB, reads it from the device, and reads it from memory.
func tryCaches(t *testing.T, o *Observer, file string, direct bool) {
	const bytes = 100 << 20
	job := []string{"--name=x", "--filename=" + file, "--size=100m", "--bs=128k", "--direct=0"}
	near(t, between(t, o, append(job, "--rw=write", "--end_fsync=1")...), "deviceWrittenBytes", bytes)

	open, err := os.Open(file) // the kernel drops the cache of a block device that is not open
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	cold := between(t, o, append(job, "--rw=read", "--invalidate=1")...)
	near(t, cold, "deviceReadBytes", bytes)
	// With direct I/O of the loop device, the disk delivers the data. Without it, the cache of the file does, and that is no cold read.
	ok, message := JudgeCache("Cold", bytes, cold)
	t.Log(message)
	if ok != direct {
		t.Errorf("cold is %v where direct I/O of the loop device is %v", ok, direct)
	}
	warm := between(t, o, append(job, "--rw=read", "--invalidate=0")...)
	ok, message = JudgeCache("Warm", bytes, warm)
	t.Log(message)
	if !ok {
		t.Error("a read from memory was not seen")
	}
	if ok, message := JudgeCache("Cold", bytes, warm); ok {
		t.Error("a warm read passed for a cold one: ", message)
	}
}

func between(t *testing.T, o *Observer, arguments ...string) Delta {
	t.Helper()
	before := o.Take()
	run(t, "fio", arguments...)
	delta := o.Between(before, o.Take())
	metrics, _ := json.Marshal(delta.Metrics)
	t.Logf("%s: %s, %d bytes of details", strings.Join(arguments[4:], " "), metrics, len(delta.Details))
	return delta
}

func near(t *testing.T, delta Delta, metric string, want int64) {
	t.Helper()
	got, found := delta.Metrics[metric]
	t.Logf("%s is %d, wanted %d: %+.3f%%", metric, got, want, 100*float64(got-want)/float64(want))
	if !found || got < want*99/100 || got > want*101/100 {
		t.Errorf("%s is %d (%v), not within 1%% of %d; %v", metric, got, found, want, delta.Unavailable)
	}
}

func run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

func loopDevice(t *testing.T, size int64, direct bool) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	options := []string{"--find", "--show", file}
	if direct {
		options = append(options, "--direct-io=on")
	}
	device := run(t, "losetup", options...)
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return device
}

func mountLoop(t *testing.T, device string) string {
	t.Helper()
	run(t, "mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
	folder := t.TempDir()
	run(t, "mount", device, folder)
	t.Cleanup(func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return folder
}
