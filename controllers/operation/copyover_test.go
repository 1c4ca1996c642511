package operation

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// over prepares a copy, with overwrite, into a dataset that has files.
func over(t *testing.T) *world {
	t.Helper()
	one := acts()["copy"]
	one.action.Copy.Overwrite = true
	w := newWorld(t, wanted("op", one.action))
	one.prepare(t, w)
	w.node.write(t, "/mnt/copy/large", strings.Repeat("old", 2000))
	w.node.write(t, "/mnt/copy/theirs", "stays")
	return w
}

// TestACopyOverwrites: with overwrite, longer files get the length of the original, and other files stay.
func TestACopyOverwrites(t *testing.T) {
	w := over(t)
	inode := func() uint64 {
		info, err := os.Lstat(filepath.Join(w.node.root, "/mnt/copy/large"))
		if err != nil {
			t.Fatal(err)
		}
		status, _ := unixStat(info)
		return status.Ino
	}
	before := inode()
	operation := w.settle("op")
	expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
	if got := w.node.read(t, "/mnt/copy/large"); got != strings.Repeat("x", 3000) || inode() != before {
		t.Errorf("%d bytes %.9q, in place: %v", len(got), got, inode() == before)
	}
	if w.node.read(t, "/mnt/copy/theirs") != "stays" || w.node.read(t, "/mnt/copy/folder/small") != "y" {
		t.Error("other files were changed, or a new one is not there")
	}
	if metricOf(operation, "overwrittenFiles") != 1 || metricOf(operation, "copiedFiles") != 2 ||
		!strings.Contains(operation.Status.Conditions[0].Message, "1 of the files were there before") {
		t.Errorf("status %+v", operation.Status)
	}
}

// TestACopyIntoAnotherDataset: while the source is walked through, the target is destroyed, and another dataset gets its name.
func TestACopyIntoAnotherDataset(t *testing.T) {
	for name, change := range map[string]func(target *fakeDataset){
		"another one": func(target *fakeDataset) { target.guid = "999" },
		"none":        func(target *fakeDataset) { target.name = "bench0/renamed" },
	} {
		w := over(t)
		opened := false
		w.node.onOpen = func(dataset string, readOnly bool) {
			for _, target := range w.node.pools[0].datasets {
				if dataset == "bench0/copy" && target.name == dataset && !readOnly {
					opened = true
					change(target)
				}
			}
		}
		expect(t, w.settle("op"), "Failed", v1alpha1.ReasonActionFailed)
		if !opened || w.node.read(t, "/mnt/copy/large") != strings.Repeat("old", 2000) {
			t.Errorf("%s: opened %v, and it was written into", name, opened)
		}
	}
}

// TestOverwritingStaysInside: a tenant has put something else where a file is to be overwritten.
func TestOverwritingStaysInside(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a link out":       func(path string) error { return os.Symlink("/../../outside", path) },
		"a link upwards":   func(path string) error { return os.Symlink("../../outside", path) },
		"a pipe":           func(path string) error { return syscall.Mkfifo(path, 0o666) },
		"a folder":         func(path string) error { return os.Mkdir(path, 0o755) },
		"a hanging link":   func(path string) error { return os.Symlink("nothing", path) },
		"a link to theirs": func(path string) error { return os.Symlink("theirs", path) },
	} {
		t.Run(name, func(t *testing.T) {
			w := over(t)
			at := filepath.Join(w.node.root, "/mnt/copy/large")
			if err := os.Remove(at); err != nil {
				t.Fatal(err)
			}
			if err := put(at); err != nil {
				t.Fatal(err)
			}
			operation := w.settle("op")
			expect(t, operation, "Failed", v1alpha1.ReasonActionFailed)
			if !strings.Contains(operation.Status.Conditions[0].Message, "large already exists in dataset bench0/copy") {
				t.Errorf("status %+v", operation.Status)
			}
			if w.node.read(t, "/outside") != "secret" || w.node.read(t, "/mnt/copy/theirs") != "stays" {
				t.Error("something else was overwritten")
			}
			noHalves(t, w)
		})
	}
}

// TestWhatACopyMeasures: the fake disks write 9003 bytes in 3 requests and read 3001 bytes a second, and a sync takes 2 s.
func TestWhatACopyMeasures(t *testing.T) {
	measured := func(w *world) map[string]int64 {
		operation := w.settle("op")
		expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
		found := map[string]int64{}
		for _, metric := range operation.Status.Metrics {
			if strings.Contains(metric.Name, "Per") || metric.Name == "durationNanoseconds" {
				found[metric.Name] = metric.Value
			}
		}
		return found
	}
	for name, elsewhere := range map[string]bool{"within a pool": false, "to another pool": true} {
		kind := map[bool]string{false: "copy", true: "copy elsewhere"}[elsewhere]
		one := acts()[kind]
		w := newWorld(t, wanted("op", one.action))
		one.prepare(t, w)
		w.node.syncs = 2 * time.Second
		want := map[string]int64{"durationNanoseconds": int64(2 * time.Second), "copiedBytesPerSecond": 1500,
			"diskWrittenBytesPerCopiedBytePartsPerMillion": 6_000_000, "diskReadBytesPerCopiedBytePartsPerMillion": 2_000_000,
			"diskWritesPerCopiedMebibyteMilli": 6 * 1000 * (1 << 20) / 3001}
		if elsewhere { // the disks of that pool have other names in the fake
			maps.DeleteFunc(want, func(name string, _ int64) bool { return strings.HasPrefix(name, "diskWr") })
		}
		if diff := cmp.Diff(want, measured(w)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		// The copy takes two turns of a second and two syncs. The agent notices the end a second later.
		if status := w.get("op").Status; status.FinishedAt.Sub(status.StartedAt.Time) != 5*time.Second {
			t.Errorf("%s: from %v to %v", name, status.StartedAt, status.FinishedAt)
		}
	}
	// A stopped agent takes its attempt back. It has overwritten files that are now overwritten again, so the copy reports no metrics.
	w := over(t)
	w.node.syncs = 2 * time.Second
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	if err := w.agent.jobs.start(w.get("op"), w.node.clock, untilCancelled); err != nil {
		t.Fatal(err)
	}
	w.agent.endJobs(t.Context())
	if left := w.get("op").Status.Attempts; len(left) > 0 {
		t.Fatalf("attempts %q are left", left)
	}
	w.start()
	if got := measured(w); len(got) > 0 || !strings.Contains(w.get("op").Status.Conditions[0].Message, "interrupted") {
		t.Errorf("stopped in between, and measured was %v", got)
	}
	// After a crash only the rest is copied, so the metrics would be those of a smaller copy.
	one := acts()["copy"]
	w = newWorld(t, wanted("op", one.action))
	one.prepare(t, w)
	w.node.syncs, w.node.diesAfter = 2*time.Second, 2
	if got := measured(w); len(got) > 0 || w.lives != 2 {
		t.Errorf("%d lives, and measured was %v", w.lives, got)
	}
}
