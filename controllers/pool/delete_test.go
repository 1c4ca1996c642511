package pool

import (
	"errors"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
)

// TestAFolderIsNoReasonToStay: the pool is destroyed and its object goes even if the folder of a mount point cannot be removed.
func TestAFolderIsNoReasonToStay(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.node.folderStays = errors.New("directory not empty")
	w.delete(w.settle("bench0"))
	if left := w.settle("bench0"); left != nil || !w.node.pools[0].destroyed {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
	if len(w.node.folders) != 1 {
		t.Errorf("removed were to be %q", w.node.folders)
	}
}

// TestAReleasedPoolIsLeftAsItIs: a released pool that is in use stays, and so do its mounts.
func TestAReleasedPoolIsLeftAsItIs(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.node.users = []string{"dataset bench0/parent is mounted at /x"}
	w.release()
	w.delete(pool)
	before := len(w.node.commands)
	if w.settle("bench0") != nil {
		t.Error("the object stays")
	}
	if len(w.node.commands) != before || len(w.node.folders) > 0 || !w.node.pools[0].mounted["bench0/parent"] {
		t.Errorf("commands %q, folders %q, pool %+v", w.node.commands[before:], w.node.folders, w.node.pools[0])
	}
}

func TestAUsedPoolIsNotDestroyed(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.node.users = []string{"dataset bench0/parent is mounted at /x"}
	w.delete(pool)
	before := len(w.node.commands)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolInUse)
	if len(w.node.commands) != before {
		t.Errorf("commands %q", w.node.commands[before:])
	}
	w.node.users = nil
	if w.settle("bench0") != nil || !w.node.pools[0].destroyed {
		t.Error("the pool stayed after its use")
	}
}

// TestWhatIsMadeMeanwhileStays: between check and action, a user creates a volume on the pool, or recreates one.
func TestWhatIsMadeMeanwhileStays(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fakePool)
		reason string
	}{
		"a volume":         {func(p *fakePool) { p.make("bench0/parent/pvc-1", nil) }, v1alpha1.ReasonPoolDatasetsRemain},
		"another dataset":  {func(p *fakePool) { p.make("bench0/parent", nil); p.mount("bench0/parent", false) }, ""},
		"a snapshot":       {func(p *fakePool) { p.snapshots = []string{"bench0/parent@precious"} }, ""},
		"nothing but time": {func(*fakePool) {}, ""},
	} {
		w := newWorld(t, wanted("bench0"))
		pool := w.settle("bench0")
		w.delete(pool)
		state, err := w.agent.observe(t.Context(), w.object("bench0"))
		if err != nil {
			t.Fatal(err)
		}
		on := w.node.pools[0]
		test.change(on)
		err = w.agent.act(t.Context(), &state, []pools.Action{{Kind: pools.DestroyPool, GUID: "700"}})
		if same := name == "nothing but time"; same != (err == nil) || same != on.destroyed {
			t.Errorf("%s: %v, destroyed: %v", name, err, on.destroyed)
		}
		if left := w.settle("bench0"); test.reason != "" {
			w.expectReady(left, test.reason)
		} else if left != nil || !on.destroyed {
			t.Errorf("%s: left are %+v and %+v", name, left, on)
		}
	}
}

// TestAPoolReleasedMeanwhileStays: inspecting a pool takes time, in which a user may release it.
func TestAPoolReleasedMeanwhileStays(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.delete(w.settle("bench0"))
	state, err := w.agent.observe(t.Context(), w.object("bench0"))
	if err != nil {
		t.Fatal(err)
	}
	w.release()
	if err := w.agent.act(t.Context(), &state, []pools.Action{{Kind: pools.DestroyPool, GUID: "700"}}); err == nil ||
		w.node.pools[0].destroyed {
		t.Errorf("%v, destroyed: %v", err, w.node.pools[0].destroyed)
	}
	if left := w.settle("bench0"); left != nil || w.node.pools[0].destroyed {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
}

// TestReleaseWithoutZFS: a pool can be released although ZFS on its node does not work any more.
func TestReleaseWithoutZFS(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.delete(w.settle("bench0"))
	w.node.version = "none"
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonActionFailed)
	w.release()
	if left := w.settle("bench0"); left != nil || w.node.pools[0].destroyed {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
}

func (w *world) object(name string) *v1alpha1.BenchmarkPool {
	w.t.Helper()
	var pool v1alpha1.BenchmarkPool
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &pool); err != nil {
		w.t.Fatal(err)
	}
	return &pool
}

// release says that bench0 may stay behind.
func (w *world) release() {
	w.t.Helper()
	pool := w.object("bench0")
	pool.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: "node-a"}
	if err := w.client.Update(w.t.Context(), pool); err != nil {
		w.t.Fatal(err)
	}
}

// TestOnlyGrantedDisksAreOpened: an opened disk cannot be mounted by its owner, so a disk that is not granted is never opened: not for a
// new pool, and not for one that exists, whatever its spec says.
func TestOnlyGrantedDisksAreOpened(t *testing.T) {
	const stranger = "/dev/disk/by-id/other"
	other := wanted("bench1")
	other.Spec.Vdevs[0].Devices = []v1alpha1.DevicePath{stranger, diskD}
	w := newWorld(t, wanted("bench0"), other)
	w.agent.Policy = pools.DevicePolicy{{Pattern: diskA}, {Pattern: diskB}, {Pattern: diskD}}
	w.expectReady(w.settle("bench1"), v1alpha1.ReasonPoolDeviceDenied)
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	pool.Spec.Vdevs = append(pool.Spec.Vdevs, v1alpha1.Vdev{Type: "mirror", Devices: []v1alpha1.DevicePath{stranger, diskC}})
	pool.Generation++
	if err := w.client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolDeviceDenied)
	w.node.reset()
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolDeviceDenied) // imported again
	on := w.node.pools[0]
	w.node.reset()
	on.destroyed = true // its disks are there, without the pool
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolLost)
	on.destroyed = false
	w.delete(w.settle("bench0"))
	if left := w.settle("bench0"); left != nil || !on.destroyed {
		t.Errorf("left are %+v and %+v", left, on)
	}
	for _, path := range []string{stranger, diskC} {
		if slices.Contains(w.node.opened, path) {
			t.Errorf("%s was opened: %q", path, w.node.opened)
		}
	}
}

// TestAPoolWithoutItsGrant: a pool whose grant was withdrawn is still imported, exported and destroyed on its own disks, and its labels are
// cleared. A disk of the spec that it never had is not opened any more, also while the pool is lost.
func TestAPoolWithoutItsGrant(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	w.node.also = map[string]host.Reason{diskC: host.Mounted} // granted, but not taken
	pool.Spec.Vdevs[0].Devices = append(pool.Spec.Vdevs[0].Devices, diskC)
	pool.Generation++
	if err := w.client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolDeviceRefused)
	w.agent.Policy, w.node.opened = nil, nil
	on := w.node.pools[0]
	w.node.reset()
	on.destroyed = true
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolLost)
	on.destroyed = false
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolDeviceDenied)
	if !on.imported || on.readOnly {
		t.Errorf("the pool is %+v", on)
	}
	w.delete(w.settle("bench0"))
	if left := w.settle("bench0"); left != nil || !on.destroyed || len(on.labels) > 0 {
		t.Errorf("left are %+v and %+v", left, on)
	}
	if slices.Contains(w.node.opened, diskC) {
		t.Errorf("opened were %q", w.node.opened)
	}
}

// TestARefusedPropertyLeavesNoLabels: a property that ZFS refuses keeps the pool from being ready, and goes with it.
func TestARefusedPropertyLeavesNoLabels(t *testing.T) {
	pool := wanted("bench0")
	pool.Spec.RootProperties["reservation"] = "1P"
	w := newWorld(t, pool)
	got := w.settle("bench0")
	w.expectReady(got, v1alpha1.ReasonActionFailed)
	w.delete(got)
	if left := w.settle("bench0"); left != nil || !w.node.pools[0].destroyed || len(w.node.pools[0].labels) > 0 {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
}
