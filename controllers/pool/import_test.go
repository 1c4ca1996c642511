package pool

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
)

// TestCrashesOfTheImport ends the agent between the commands by which a pool comes back after a reboot.
func TestCrashesOfTheImport(t *testing.T) {
	const commands = 3 // read-only import, export, import
	for at := 1; at <= commands; at++ {
		w := newWorld(t, wanted("bench0"))
		w.node.pools = []*fakePool{foreign("other")}
		w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
		w.node.reset()
		w.node.diesAfter = w.node.changes + at
		pool := w.settle("bench0")
		w.expectReady(pool, v1alpha1.ReasonPoolReady)
		if w.node.changes < w.node.diesAfter || w.node.pools[1].readOnly {
			t.Errorf("crash after change %d did not happen, or left %+v", at, w.node.pools[1])
		}
		w.delete(pool)
		if w.settle("bench0") != nil {
			t.Errorf("crash after change %d: the object stays", at)
		}
		w.expectClean(at)
	}
}

// TestDisksThatOnlyHaveAPathComeBack: a grant may name them, so a pool on them is found again too.
func TestDisksThatOnlyHaveAPathComeBack(t *testing.T) {
	wants := wanted("bench0")
	wants.Spec.Vdevs[0].Devices = []v1alpha1.DevicePath{"/dev/disk/by-path/pci-0000:00:05.0", diskB}
	w := newWorld(t, wants)
	w.agent.Policy = append(w.agent.Policy, pools.DeviceGrant{Pattern: "/dev/disk/by-path/pci-*"})
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	w.node.reset()
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	w.delete(pool)
	if left := w.settle("bench0"); left != nil || !w.node.pools[0].destroyed || len(w.node.pools[0].labels) > 0 {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
}
