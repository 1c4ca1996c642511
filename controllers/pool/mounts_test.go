package pool

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func (w *world) says(pool *v1alpha1.BenchmarkPool) string {
	w.t.Helper()
	return meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady).Message
}

// TestNothingIsMountedWithAnother: a child dataset that ZFS would mount together with its parent would be mounted where pods write.
func TestNothingIsMountedWithAnother(t *testing.T) {
	for name, test := range map[string]struct {
		child map[string]string
		stays bool
	}{
		"mounted by itself": {map[string]string{"canmount": "on", "mountpoint": "/x"}, false},
		"not known":         {map[string]string{}, false},
		"an operation's":    {map[string]string{"canmount": "noauto", "mountpoint": "none"}, true},
		"a driver's":        {map[string]string{"canmount": "on", "mountpoint": "legacy"}, true},
	} {
		wish := wanted("bench0")
		wish.Spec.Datasets[0].Mounted = false
		w := newWorld(t, wish)
		pool := w.settle("bench0")
		w.expectReady(pool, v1alpha1.ReasonPoolReady)
		w.node.pools[0].datasets["bench0/parent/child"] = test.child
		pool.Spec.Datasets[0].Mounted, pool.Generation = true, 2
		if err := w.client.Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		pool = w.settle("bench0")
		if is := w.node.pools[0].mounted["bench0/parent"]; is != test.stays {
			t.Errorf("%s: mounted %v; %s", name, is, w.says(pool))
		}
		if !test.stays && (!strings.Contains(w.says(pool), "bench0/parent/child would be mounted") ||
			w.node.pools[0].datasets["bench0/parent"]["mountpoint"] != "") {
			t.Errorf("%s: %s", name, w.says(pool))
		}
	}
}

// TestMountsElsewhereAreUndone: a dataset that ZFS reports as mounted, but the node does not show in its place, is unmounted.
func TestMountsElsewhereAreUndone(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.node.elsewhere = true
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonActionFailed)
	if w.node.pools[0].mounted["bench0/parent"] {
		t.Error("it stays mounted")
	}
	w.node.elsewhere = false
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	w.node.set("/var/lib/storagebench/volumes/bench0/parent", "sealed") // the folder for pods was removed
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	if w.node.made["/var/lib/storagebench/volumes/bench0/parent"] != "ready" {
		t.Error("the folder for pods is not made again")
	}
}

// TestDatasetBelowOneThatIsNotMounted: this is no nested mount, because pods write only to mounted datasets.
func TestDatasetBelowOneThatIsNotMounted(t *testing.T) {
	wish := wanted("bench0")
	wish.Spec.Datasets = []v1alpha1.PoolDataset{{Path: "parent"}, {Path: "parent/data", Mounted: true}}
	w := newWorld(t, wish)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	if !w.node.pools[0].mounted["bench0/parent/data"] {
		t.Errorf("it is not mounted: %q", w.node.commands)
	}
}

// TestNestedMountsAreUnmounted: they are unmounted even while the pool is in use, because the kubelet cannot unmount the volume before
// that.
func TestNestedMountsAreUnmounted(t *testing.T) {
	for name, deleting := range map[string]bool{"a live pool": false, "one that goes": true} {
		w := newWorld(t, wanted("bench0"))
		pool := w.settle("bench0")
		w.expectReady(pool, v1alpha1.ReasonPoolReady)
		const nested = "bench0/parent/c"
		w.node.nested = []string{nested}
		w.node.pools[0].datasets[nested] = map[string]string{"storagebench.dev:operation": "uid-op", "canmount": "noauto", "mountpoint": "none"}
		w.node.pools[0].mount(nested, true)
		w.node.users = []string{"a pod"}
		if deleting {
			w.delete(pool)
		}
		w.settle("bench0")
		if w.node.pools[0].mounted[nested] || !slices.Contains(w.node.commands, "zfs unmount "+nested) {
			t.Errorf("%s: it stays mounted: %q", name, w.node.commands)
		}
		if w.node.pools[0].destroyed {
			t.Errorf("%s: destroyed under its users", name)
		}
	}
}
