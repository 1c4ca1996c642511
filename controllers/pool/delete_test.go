package pool

import (
	"errors"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
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

// TestOnlyGrantedDisksAreOpened: an opened disk cannot be mounted by its owner, so a disk that is not granted is never opened.
func TestOnlyGrantedDisksAreOpened(t *testing.T) {
	other := wanted("bench1")
	other.Spec.Vdevs[0].Devices = []v1alpha1.DevicePath{"/dev/disk/by-id/other", diskD}
	w := newWorld(t, wanted("bench0"), other)
	w.agent.Policy = pools.DevicePolicy{{Pattern: diskA}, {Pattern: diskB}, {Pattern: diskD}}
	w.expectReady(w.settle("bench1"), v1alpha1.ReasonPoolDeviceDenied)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	if slices.Contains(w.node.opened, "/dev/disk/by-id/other") {
		t.Errorf("opened were %q", w.node.opened)
	}
}
