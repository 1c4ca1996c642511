package operation

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
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

// loseOperation removes an operation by hand once its parameter is set, and starts another agent.
func (w *world) loseOperation() {
	w.t.Helper()
	w.vanish()
	w.start()
}

// vanish removes an operation by hand once its parameter is set.
func (w *world) vanish() {
	w.t.Helper()
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			w.t.Fatal(err)
		}
	}
	operation := w.get("op")
	operation.Finalizers = nil
	if err := errors.Join(w.client.Update(w.t.Context(), operation), w.client.Delete(w.t.Context(), operation)); err != nil {
		w.t.Fatal(err)
	}
}

// TestAParameterIsRestoredAtOnce: if an operation vanishes while the agent runs, nothing waits for the next agent, also if another operation
// has its name by then. If the kernel refuses the earlier value for now, the reconcile is retried.
func TestAParameterIsRestoredAtOnce(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		w := newWorld(t, wanted("op", acts()["moduleParameter"].action))
		w.vanish()
		if replaced {
			other := wanted("op", acts()["scrub"].action)
			other.UID = "12345678-other"
			if err := w.client.Create(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}
		file, away := filepath.Join(w.node.root, "/sys/module/zfs/parameters/zfs_txg_timeout"), filepath.Join(w.node.root, "away")
		refuses := func() error { return errors.Join(os.Rename(file, away), os.Mkdir(file, 0o755)) }
		if err := refuses(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.turn("op"); err == nil {
			t.Errorf("replaced %v: the failure is not retried", replaced)
		}
		if err := errors.Join(os.Remove(file), os.Rename(away, file)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		checkParameter(t, w, nil)
	}
}

// TestAnOperationWithoutARecordWaitsForNoParameter: a write of a parameter may hang, and other operations have to end meanwhile.
func TestAnOperationWithoutARecordWaitsForNoParameter(t *testing.T) {
	w := newWorld(t, wanted("scrub", acts()["scrub"].action))
	w.agent.parameters.Lock()
	defer w.agent.parameters.Unlock()
	expect(t, w.settle("scrub"), "Succeeded", v1alpha1.ReasonSucceeded)
	if _, err := w.turn("gone"); err != nil {
		t.Error(err)
	}
}

func TestOrphanedParametersAreRestored(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["moduleParameter"].action))
	w.loseOperation()
	if err := w.agent.restoreOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkParameter(t, w, nil)
}

// TestAParameterThatAnotherProgramChanges: the operation fails, and the value of the other program stays.
func TestAParameterThatAnotherProgramChanges(t *testing.T) {
	for name, value := range map[string]string{"to a third value": "9", "to the earlier one": "5"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", acts()["moduleParameter"].action))
			file := "/sys/module/zfs/parameters/zfs_txg_timeout"
			earlier := w.node.read(t, file)
			for range 3 {
				if _, err := w.turn("op"); err != nil {
					t.Fatal(err)
				}
			}
			if earlier != "5" || w.node.read(t, file) != "30" {
				t.Fatalf("the parameter was %s and is %s", earlier, w.node.read(t, file))
			}
			w.node.write(t, file, value)
			ended := w.settle("op")
			expect(t, ended, "Failed", v1alpha1.ReasonParameterInterrupted)
			message := meta.FindStatusCondition(ended.Status.Conditions, v1alpha1.ConditionReady).Message
			if want := "changed zfs_txg_timeout from 30 to " + value; !strings.Contains(message, want) {
				t.Errorf("it says %q, without %q", message, want)
			}
			if is := w.node.read(t, file); is != value {
				t.Errorf("afterwards, the parameter is %s", is)
			}
			if left, _ := filepath.Glob(filepath.Join(w.node.root, parameterFolder, "*")); len(left) > 0 {
				t.Errorf("left on the node are %q", left)
			}
		})
	}
}

// TestAnOrphanDoesNotUndoALaterOperation: a parameter that a deleted operation has set is restored before the next operation sets it, not
// afterwards.
func TestAnOrphanDoesNotUndoALaterOperation(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["moduleParameter"].action), wanted("later", acts()["moduleParameter"].action))
	w.loseOperation()
	for range 3 {
		if _, err := w.turn("later"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.agent.restoreOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	if value := w.node.read(t, "/sys/module/zfs/parameters/zfs_txg_timeout"); value != "30" {
		t.Fatalf("while the later operation lasts, the parameter is %s", value)
	}
	expect(t, w.settle("later"), "Succeeded", v1alpha1.ReasonSucceeded)
	checkParameter(t, w, nil)
}

// TestAParameterThatTheKernelRefuses: the earlier value is recorded before the attempt, and the record is removed afterwards.
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

// TestABoundThatTheARCIgnores: the kernel shows any value, but ZFS keeps its own bound.
func TestABoundThatTheARCIgnores(t *testing.T) {
	for name, c := range map[string]struct {
		parameter, value string
		says             []string
	}{
		"max, too small":  {"zfs_arc_max", "1000", []string{"zfs_arc_max was set to 1000", "c_max = 8589934592", "write a value from 64 MiB"}},
		"max, taken":      {"zfs_arc_max", "8589934592", nil},
		"max, by default": {"zfs_arc_max", "0", nil},
		"min, too large":  {"zfs_arc_min", "9000000000", []string{"zfs_arc_min was set to 9000000000", "c_min = 33554432", "to c_max"}},
		"min, taken":      {"zfs_arc_min", "33554432", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{
				Name: c.parameter, Value: v1alpha1.PropertyValue(c.value), Duration: seconds(20)}}))
			w.agent.Parameters = operations.ParameterAllowlist{{Name: c.parameter, Any: true}}
			file := "/sys/module/zfs/parameters/" + c.parameter
			w.node.write(t, file, "5000000000\n")
			w.node.write(t, "/proc/spl/kstat/zfs/arcstats", "13 1 0x01 147 39984 1 2\nname type data\nc_min 4 33554432\nc_max 4 8589934592\n")
			for range 3 {
				if _, err := w.turn("op"); err != nil {
					t.Fatal(err)
				}
			}
			if c.says == nil {
				if value := w.node.read(t, file); value != c.value {
					t.Errorf("while it lasts, the parameter is %s", value)
				}
				expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
			} else {
				if value := w.node.read(t, file); value != "5000000000" {
					t.Errorf("after the failure, the parameter is %s", value)
				}
				ended := w.settle("op")
				expect(t, ended, "Failed", v1alpha1.ReasonActionFailed)
				for _, words := range c.says {
					if message := meta.FindStatusCondition(ended.Status.Conditions, v1alpha1.ConditionReady).Message; !strings.Contains(message, words) {
						t.Errorf("it says %q, without %q", message, words)
					}
				}
			}
			if value := w.node.read(t, file); value != "5000000000" {
				t.Errorf("afterwards, the parameter is %s", value)
			}
			if left, _ := filepath.Glob(filepath.Join(w.node.root, parameterFolder, "*")); len(left) > 0 {
				t.Errorf("left on the node are %q", left)
			}
		})
	}
}

// TestWayBack: writing 0 changes no bound of the ARC, so the bound that was in effect is set first.
func TestWayBack(t *testing.T) {
	for name, c := range map[string]struct {
		earlier, before, now string
		want                 []string
	}{
		"no bound":           {"5", "", "", []string{"5"}},
		"ZFS had its own":    {"0", "8589934592", "1073741824", []string{"8589934592", "0"}},
		"and has it still":   {"0", "8589934592", "8589934592", []string{"0"}},
		"it was set":         {"4294967296", "4294967296", "1073741824", []string{"4294967296"}},
		"it was set in vain": {"1000", "8589934592", "1073741824", []string{"8589934592", "1000"}},
	} {
		if diff := cmp.Diff(c.want, parameterRecord{Earlier: c.earlier, InEffect: c.before}.wayBack(c.now)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestAParameterIsRestoredOnAFullNode: the record cannot be written, because the disk of the node is full. The other pools get the earlier
// value back nevertheless, and the operation ends once there is space.
func TestAParameterIsRestoredOnAFullNode(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["moduleParameter"].action))
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		w.rest("op")
	}
	if value := w.node.read(t, "/sys/module/zfs/parameters/zfs_txg_timeout"); value == "5" {
		t.Fatal("the parameter is not set")
	}
	records, err := filepath.Glob(filepath.Join(w.node.root, parameterFolder, "*.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("records %q: %v", records, err)
	}
	draft := records[0] + ".new"
	if err := os.MkdirAll(filepath.Join(draft, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	cancel(t, w, "op")
	if _, err := w.turn("op"); err == nil {
		t.Error("the missing record is not reported")
	}
	if value := w.node.read(t, "/sys/module/zfs/parameters/zfs_txg_timeout"); value != "5" {
		t.Errorf("the parameter is %s", value)
	}
	if err := os.RemoveAll(draft); err != nil {
		t.Fatal(err)
	}
	if operation := w.settle("op"); operation.Status.Outcome == "" {
		t.Errorf("the operation does not end: %+v", operation.Status)
	}
	checkParameter(t, w, nil)
}
