//go:build linux

package engine

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/workload"
)

// mountMemory mounts a small separate file system, like a volume of a pod.
func mountMemory(t *testing.T, options string) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("storagebench-test", folder, "tmpfs", 0, options); err != nil {
		t.Skipf("a file system cannot be mounted here (%v): run the tests as root with the right to mount", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// onVolume puts the bench on a separate file system, as the request then promises.
func (b *bench) onVolume(megabytes string) *bench {
	b.request.Path, b.request.Promised = mountMemory(b.t, "size="+megabytes+"m"), ""
	return b
}

// newDeviceBench returns a bench on a sparse file instead of a device.
func newDeviceBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	folder := b.request.Path
	b.request.Path, b.request.VolumeMode, b.request.Promised = filepath.Join(folder, "device"), "Block", ""
	b.request.VolumeSizeBytes = 48 << 20
	if err := errors.Join(os.WriteFile(b.request.Path, nil, 0o600), os.Truncate(b.request.Path, 48<<20)); err != nil {
		t.Fatal(err)
	}
	b.executor.allowFile = true
	b.executor.observe = func(observe.Target) (counters, error) { return observe.New(observe.Target{Path: folder}) }
	return b
}

func (b *bench) entries() []string {
	b.t.Helper()
	entries, err := os.ReadDir(b.request.Path)
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// TestDirectoryOfTheNode: a promised volume is a mount of its own; a directory is refused before anything is written.
func TestDirectoryOfTheNode(t *testing.T) {
	b := newBench(t)
	b.request.Promised = workload.PromisedVolume
	b.refused(fillPhase("50%"), ReasonWrongPlace, "is a directory on the node's own disk")
	b.request.Promised = ""
	b.refused(fillPhase("50%"), ReasonWrongPlace, "but a volume was expected")
	if names := b.entries(); len(names) > 0 {
		t.Errorf("it wrote %v", names)
	}
}

func TestWrongPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bench)
		says   string
	}{
		"missing": {func(b *bench) { b.request.Path += "/missing" }, "where the volume should be"},
		"a file": {func(b *bench) { b.request.Path = filepath.Join(b.request.Path, "x"); touch(b.t, b.request.Path, "") },
			"there is a plain file"},
		"a directory":         {func(b *bench) { b.request.VolumeMode = "Block" }, "a block device was expected"},
		"a character device":  {func(b *bench) { b.request.Path, b.request.VolumeMode = "/dev/null", "Block" }, "there is a character device"},
		"the root":            {func(b *bench) { b.request.Path = "/" }, "cannot be used for a benchmark"},
		"too small":           {func(b *bench) { b.request.VolumeSizeBytes = 1 << 60 }, "it is another volume"},
		"a user's files":      {func(b *bench) { touch(b.t, filepath.Join(b.request.Path, "mail.db"), "x") }, `there is "mail.db" on the volume`},
		"a file of that name": {func(b *bench) { touch(b.t, filepath.Join(b.request.Path, markerName), "mine") }, "not a marker of this program"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.change(b)
			b.refused(fillPhase("50%"), ReasonWrongPlace, c.says)
		})
	}
}

func touch(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAnotherVolume: later phases refuse a volume that is not as the fill has left it.
func TestAnotherVolume(t *testing.T) {
	oltp := oltpPhase(2, 0, 0.2)
	b := newBench(t)
	b.refused(oltp, ReasonNoData, "add a fill phase before")
	b.valid(fillPhase("25%"))
	b.request.Run.UID = "uid-2"
	b.refused(oltp, ReasonWrongPlace, "carries the data of run lab/run (uid-1)")
	b.refused(fillPhase("25%"), ReasonWrongPlace, "each run needs its own volume")
	b.request.Run.UID = "uid-1"
	if err := os.Truncate(filepath.Join(b.request.Path, "storagebench.data.0000"), 4096); err != nil {
		t.Fatal(err)
	}
	b.refused(oltp, ReasonWrongPlace, "was changed since")
	if err := os.Remove(filepath.Join(b.request.Path, markerName)); err != nil {
		t.Fatal(err)
	}
	b.refused(oltp, ReasonWrongPlace, "which this program did not write")
}

// TestFillBehindLogs: the logs of redo count too. If they already take more than the share of a fill, the fill says so, because another
// attempt would not help.
func TestFillBehindLogs(t *testing.T) {
	b := newBench(t).onVolume("64")
	b.valid(redoPhase(2, "dsync", 0.3)) // they take half of it
	b.refused(fillPhase("40%"), ReasonNotPossible, "but 40% were requested: nothing is left to write, because files of earlier phases take")
	more, _ := b.valid(fillPhase("70%"))
	if share := 100 * more.Metrics["allocatedBytes"] / more.Metrics["volumeBytes"]; share < 69 || share > 71 {
		t.Errorf("%d%% are allocated: %v", share, more.Metrics)
	}
}

func TestVolumeOfItsOwn(t *testing.T) {
	b := newBench(t).onVolume("64")
	filled, _ := b.valid(fillPhase("50%"))
	if share := 100 * filled.Metrics["allocatedBytes"] / filled.Metrics["volumeBytes"]; share < 49 || share > 51 {
		t.Errorf("%d%% are allocated: %v", share, filled.Metrics)
	}
	more, _ := b.valid(fillPhase("80%"))
	if share := 100 * more.Metrics["allocatedBytes"] / more.Metrics["volumeBytes"]; share < 79 || share > 81 ||
		more.Metrics["filledBytes"] > 21<<20 {
		t.Errorf("%d%% are allocated: %v", share, more.Metrics)
	}
	b.refused(fillPhase("30%"), ReasonNotPossible, "but 30% were requested: nothing is left to write")
	b.valid(oltpPhase(2, 50, 0.3))
	marked := filepath.Join(b.request.Path, markerName)
	text, err := os.ReadFile(marked)
	if err != nil {
		t.Fatal(err)
	}
	touch(t, marked, strings.Replace(string(text), `"totalBytes":67108864`, `"totalBytes":99999999`, 1))
	b.refused(oltpPhase(2, 0, 0.2), ReasonWrongPlace, "was changed in between")
}

// TestFullVolume: the kernel's own ENOSPC, met by real fio, and a fill that cannot fit.
func TestFullVolume(t *testing.T) {
	b := newBench(t).onVolume("32")
	b.request.VolumeSizeBytes = 32 << 20
	b.refused(userPhase("[a]\nrw=write\nbs=64k\nsize=64m\n"), ReasonVolumeFull, "the volume is full")
	b.refused(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("40Mi")}}, ReasonVolumeFull, "do not fit")
}

func TestForeignDevices(t *testing.T) {
	for name, c := range map[string]struct {
		offset int64
		text   string
		says   string
	}{
		"ext4":                 {0x438, "\x53\xef", "an ext2, ext3 or ext4 file system"},
		"partitions":           {512, "EFI PART", "a GPT partition table"},
		"LVM":                  {512, "LABELONE", "an LVM physical volume"},
		"LUKS":                 {0, "LUKS\xba\xbe", "a LUKS encrypted volume"},
		"something":            {100_000, "hello", "data of an unknown kind on"},
		"something at the end": {48<<20 - 100, "hello", "data of an unknown kind at its end"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newDeviceBench(t)
			writeTo(t, b.request.Path, c.offset, c.text)
			before, err := os.ReadFile(b.request.Path)
			if err != nil {
				t.Fatal(err)
			}
			b.refused(fillPhase("50%"), ReasonWrongPlace, c.says)
			if after, err := os.ReadFile(b.request.Path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the device was written to (%v)", err)
			}
		})
	}
}

func writeTo(t *testing.T, path string, offset int64, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt([]byte(text), offset)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDevice runs phases of each kind on a device, and finds both ends unchanged except for the marker.
func TestDevice(t *testing.T) {
	b := newDeviceBench(t)
	filled, _ := b.valid(fillPhase("50%"))
	if got := filled.Metrics["filledBytes"]; got != 24<<20 {
		t.Errorf("filled %d bytes", got)
	}
	b.valid(scanPhase(4))
	b.valid(oltpPhase(4, 50, 0.3))
	b.valid(fragmentPhase(2))
	b.valid(redoPhase(2, "dsync", 0.3))
	ofFill, _ := b.valid(userPhase("[a]\nfilename=data\nrw=read\nbs=64k\n"))
	if got := ofFill.Metrics["readBytes"]; got != 24<<20 {
		t.Errorf("filename=data read %d bytes of a fill of %d", got, 24<<20)
	}
	b.valid(userPhase("[a]\nrw=randwrite\nbs=8k\nsize=1m\noffset=0\n"))
	b.valid(scanPhase(4)) // the marker is still there, or again
	b.request.Run.UID = "uid-2"
	b.refused(scanPhase(4), ReasonNoData, "add a fill phase before") // claimed again: the data of an earlier run is useless
	b.request.VolumeSizeBytes = 1 << 30
	b.refused(fillPhase("50%"), ReasonWrongPlace, "it is another device")
}

// TestErasedDevice: flash that was erased contains 0xff, and phases after the first find their own marker there.
func TestErasedDevice(t *testing.T) {
	b := newDeviceBench(t)
	writeTo(t, b.request.Path, 0, strings.Repeat("\xff", 48*mib))
	b.valid(fillPhase("50%"))
	b.valid(scanPhase(4))
}

func FuzzDecodeMarker(f *testing.F) {
	whole, err := marker{Version: markerVersion, TotalBytes: 5, Data: &data{Files: 2, FileBytes: 7}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"version":"` + markerVersion + `","data":{"files":-1}}`))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, ours := decodeMarker(text)
		if !ours {
			return
		}
		if m.Data != nil && (m.Data.Files < 1 || m.Data.FileBytes < 1 || m.Data.FileBytes*int64(m.Data.Files) < 0) {
			t.Errorf("%+v", m.Data)
		}
	})
}

// TestWarnings: a file system in memory is named before anything is measured. A folder that is missing is named by the first phase.
func TestWarnings(t *testing.T) {
	folder := mountMemory(t, "size=1m")
	if all := (Executor{}).Warnings(t.Context(), folder, false); !slices.ContainsFunc(all, func(one string) bool {
		return strings.HasPrefix(one, "The volume is tmpfs: ")
	}) {
		t.Errorf("%q", all)
	}
	if all := (Executor{}).Warnings(t.Context(), folder+"/missing", false); len(all) > 0 {
		t.Errorf("%q", all)
	}
}
