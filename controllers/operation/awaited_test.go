package operation

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// awaits makes pool bench0 await dataset data, which the agent has mounted, and dataset late, which others have mounted.
func (w *world) awaits(mountedAt string) {
	w.t.Helper()
	pool := &v1alpha1.BenchmarkPool{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: "bench0"}, pool); err != nil {
		w.t.Fatal(err)
	}
	for _, path := range []v1alpha1.DatasetPath{"data", "late"} {
		pool.Spec.Datasets = append(pool.Spec.Datasets, v1alpha1.PoolDataset{Path: path, Type: "Filesystem", Mounted: true, Awaited: true})
	}
	if err := w.client.Update(w.t.Context(), pool); err != nil {
		w.t.Fatal(err)
	}
	data, late := w.node.pools[0].find("bench0/data"), w.node.dataset("bench0/late", "filesystem")
	data.mountedAt, data.properties = mountedAt, map[string]string{naming.PropertyOperation: "uid", "mountpoint": cmp.Or(mountedAt, "none")}
	w.node.pools[0].datasets = append(w.node.pools[0].datasets, late)
}

var ownPlace = naming.MountPoint("bench0", "data")

// TestAnAwaitedDatasetIsDestroyed: it is destroyed although the agent itself has mounted it, whenever the agent dies.
func TestAnAwaitedDatasetIsDestroyed(t *testing.T) {
	one := acts()["destroyDataset"]
	one.prepare = func(_ *testing.T, w *world) { w.awaits(ownPlace) }
	one.once = append(one.once, "zfs unmount bench0/data")
	for at := 1; crashAfter(t, one, at, false); at++ {
	}
	w := newWorld(t, wanted("op", one.action))
	w.awaits("/x")
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
	}
	ready := meta.FindStatusCondition(w.get("op").Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != v1alpha1.ReasonDatasetInUse || len(w.node.commands) > 0 {
		t.Errorf("mounted by others: %+v, commands %q", ready, w.node.commands)
	}
}

// TestExportLeavesMountsAsTheyWere: an awaited dataset is mounted again only if it was mounted before, not just because the spec awaits it.
func TestExportLeavesMountsAsTheyWere(t *testing.T) {
	for _, place := range []string{ownPlace, ""} {
		w := newWorld(t, wanted("op", acts()["exportImport"].action))
		w.awaits(place)
		w.node.pools[0].datasets = slices.DeleteFunc(w.node.pools[0].datasets, func(d *fakeDataset) bool { // it would be mounted where pods write
			return d.name == "bench0/data/child"
		})
		expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
		var mounts []string
		for _, command := range w.node.commands {
			if strings.HasPrefix(command, "zfs mount") || strings.HasPrefix(command, "zfs unmount") {
				mounts = append(mounts, command)
			}
		}
		var want []string
		if place != "" {
			want = []string{"zfs unmount bench0/data", "zfs mount -o nosuid,nodev,noexec bench0/data"}
		}
		if !slices.Equal(mounts, want) {
			t.Errorf("mounted at %q: %q, want %q", place, mounts, want)
		}
	}
}
