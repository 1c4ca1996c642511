package operation

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func TestParameterAfterAReboot(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["moduleParameter"].action))
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
	}
	if value := w.node.read(t, "/sys/module/zfs/parameters/zfs_txg_timeout"); value != "30" {
		t.Fatalf("the parameter is %s", value)
	}
	w.node.write(t, "/proc/sys/kernel/random/boot_id", "boot-2")
	w.node.write(t, "/sys/module/zfs/parameters/zfs_txg_timeout", "7")
	w.start()
	expect(t, w.settle("op"), "Failed", v1alpha1.ReasonParameterInterrupted)
	if value := w.node.read(t, "/sys/module/zfs/parameters/zfs_txg_timeout"); value != "7" {
		t.Errorf("after the reboot the parameter was set to %s", value)
	}
}

func TestOrphanedParametersAreRestored(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["moduleParameter"].action))
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
	}
	operation := w.get("op")
	operation.Finalizers = nil
	if err := errors.Join(w.client.Update(t.Context(), operation), w.client.Delete(t.Context(), operation)); err != nil {
		t.Fatal(err)
	}
	w.start()
	if err := w.agent.restoreOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkParameter(t, w, nil)
}

// TestAParameterThatTheKernelRefuses is remembered before the attempt, and forgotten afterwards.
func TestAParameterThatTheKernelRefuses(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["moduleParameter"].action))
	file := filepath.Join(w.node.root, "/sys/module/zfs/parameters/zfs_txg_timeout")
	// Readable, and not writable even for root.
	if err := errors.Join(os.Remove(file), os.Symlink("/proc/sys/kernel/osrelease", file)); err != nil {
		t.Fatal(err)
	}
	for w.get("op").Status.Outcome == "" {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, w.get("op"), "Failed", v1alpha1.ReasonActionFailed)
	if left, _ := filepath.Glob(filepath.Join(w.node.root, parameterFolder, "*.json")); len(left) != 1 {
		t.Errorf("remembered were %q", left)
	}
	expect(t, w.settle("op"), "Failed", v1alpha1.ReasonActionFailed)
	if left, _ := filepath.Glob(filepath.Join(w.node.root, parameterFolder, "*")); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}
