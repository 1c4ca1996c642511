package operation

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// replace puts another BenchmarkPool and another pool, with a dataset of the same name, in the place of bench0.
func (w *world) replace() {
	w.t.Helper()
	other := readyPool("bench0")
	if err := w.client.Delete(w.t.Context(), other); err != nil {
		w.t.Fatal(err)
	}
	other.UID = "uid-other"
	status := other.Status
	if err := w.client.Create(w.t.Context(), other); err != nil {
		w.t.Fatal(err)
	}
	other.Status = status
	if err := w.client.Status().Update(w.t.Context(), other); err != nil {
		w.t.Fatal(err)
	}
	w.node.mutex.Lock()
	defer w.node.mutex.Unlock()
	w.node.pools[0] = w.node.pool("bench0", diskA, diskB)
	w.node.pools[0].datasets = append(w.node.pools[0].datasets, w.node.dataset("bench0/data", "filesystem"))
	w.node.pools[0].datasets[0].properties[naming.PropertyUID] = "uid-other"
}

// TestAWaitingOperationKeepsToItsPool: if the pool is replaced while an operation waits, the new pool of that name is left alone.
func TestAWaitingOperationKeepsToItsPool(t *testing.T) {
	for name, waits := range map[string]struct {
		block, free func(*world)
	}{
		"for users": {func(w *world) { w.node.users["bench0/data"] = []string{"a mount"} }, func(w *world) { w.node.users = nil }},
		"for its turn": {func(w *world) {
			other := wanted("older", acts()["scrub"].action)
			other.UID = "0"
			if err := w.client.Create(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}, func(w *world) {
			if err := w.client.Delete(t.Context(), wanted("older", acts()["scrub"].action)); err != nil {
				t.Fatal(err)
			}
		}},
		"for ZFS": {func(w *world) { w.agent.ZFS = zfs.New(silent{}) }, func(w *world) { w.start() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", acts()["destroyDataset"].action))
			waits.block(w)
			if _, err := w.turn("op"); (err != nil) != (name == "for ZFS") {
				t.Fatal(err)
			}
			waits.free(w)
			if got := w.get("op").Status.PoolUID; got != "uid-bench0" {
				t.Fatalf("the pool that was seen is %q", got)
			}
			w.replace()
			expect(t, w.settle("op"), "Failed", v1alpha1.ReasonPoolLost)
			if w.node.pools[0].find("bench0/data") == nil || len(w.node.commands) > 0 {
				t.Errorf("commands %q", w.node.commands)
			}
		})
	}
}

// TestAnOperationThatIsMadeBeforeItsPool: the operation waits for the pool, and then begins.
func TestAnOperationThatIsMadeBeforeItsPool(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["destroyDataset"].action))
	if err := w.client.Delete(t.Context(), readyPool("bench0")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	expect(t, w.get("op"), "", v1alpha1.ReasonPoolNotReady)
	pool := readyPool("bench0")
	if err := w.client.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	pool.Status = readyPool("bench0").Status
	if err := w.client.Status().Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	operation := w.settle("op")
	expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
	if operation.Status.PoolUID != "uid-bench0" {
		t.Errorf("status %+v", operation.Status)
	}
}
