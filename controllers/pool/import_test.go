package pool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
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

// TestAPersonsLookIsLeftAlone: another host had the pool last, and a person imports it read-only to see what is on it. The agent neither
// exports nor destroys it, and still does not import it afterwards.
func TestAPersonsLookIsLeftAlone(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	on := w.node.pools[0]
	w.node.reset()
	on.host = "n2"
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolLost)
	on.imported, on.readOnly = true, true
	before := len(w.node.commands)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolUnhealthy)
	w.delete(pool)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolUnhealthy)
	on.imported, on.readOnly = false, false
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolLost)
	if len(w.node.commands) > before || on.destroyed {
		t.Errorf("commands %q", w.node.commands[before:])
	}
}

// TestALookThatWasInterrupted: the agent dies after its own read-only import. Before the import for good, it reads again which host has the
// pool.
func TestALookThatWasInterrupted(t *testing.T) {
	for host, reason := range map[string]string{nodeHost: v1alpha1.ReasonPoolReady, "n2": v1alpha1.ReasonPoolLost} {
		w := newWorld(t, wanted("bench0"))
		w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
		w.node.reset()
		w.node.diesAfter = w.node.changes + 1
		w.settleUntilDead("bench0")
		on := w.node.pools[0]
		if on.altroot != zfs.LookRoot || !on.readOnly {
			t.Fatalf("the look is %+v", on)
		}
		on.host = host
		w.expectReady(w.settle("bench0"), reason)
		if on.readOnly != (host == "n2") || on.altroot != zfs.LookRoot && on.readOnly {
			t.Errorf("last used by %s: %+v", host, on)
		}
	}
}

// TestALookThatIsReplaced: a person imports the pool read-only between the agent's look and its import for good.
func TestALookThatIsReplaced(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	w.node.reset()
	on := w.node.pools[0]
	w.node.meanwhile = func() { on.altroot = "" }
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolUnhealthy)
	if !on.imported || !on.readOnly || w.node.commands[len(w.node.commands)-1] == "zpool export bench0" {
		t.Errorf("the pool is %+v after %q", on, w.node.commands)
	}
}

// TestAPoolThatStopsTheNode: the node stops whenever the pool is imported. The agent does not do that to it forever.
func TestAPoolThatStopsTheNode(t *testing.T) {
	const commands = 3 // read-only import, export, import
	for at := 1; at <= commands; at++ {
		w := newWorld(t, wanted("bench0"))
		w.node.pools = []*fakePool{foreign("other")}
		pool := w.settle("bench0")
		w.expectReady(pool, v1alpha1.ReasonPoolReady)
		w.serves(pool)
		w.node.reset()
		imports, booted := 0, w.node.boots
		for range 5 {
			w.node.diesAfter, w.node.resets = w.node.changes+at, true
			w.settleUntilDead("bench0")
			if w.node.dead {
				imports++
			}
			w.node.restart()
		}
		pool = w.settle("bench0")
		w.expectReady(pool, v1alpha1.ReasonPoolStopsNode)
		if imports != 3 || w.node.boots != booted+3 || w.node.pools[1].imported {
			t.Errorf("dies after change %d: %d imports, %d boots", at, imports, w.node.boots-booted)
		}
		w.delete(pool)
		pool = w.settle("bench0")
		w.expectReady(pool, v1alpha1.ReasonPoolStopsNode)
		if err := os.Remove(filepath.Join(w.node.root, pools.AttemptPath(pool.UID))); err != nil {
			t.Fatal(err)
		}
		w.node.diesAfter = 0
		if w.settle("bench0") != nil {
			t.Error("the object stays once a person has removed the record")
		}
		w.expectClean(at)
	}
}

// TestAPoolThatStopsTheSearch: the node stops already while the disks are searched for the pool, because the kernel reads the pool in. After
// three boots, the agent does not even search, until a person allows it.
func TestAPoolThatStopsTheSearch(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.node.pools = []*fakePool{foreign("other")}
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	if w.node.searches != 0 {
		t.Errorf("blank disks were searched %d times", w.node.searches)
	}
	w.serves(pool)
	w.node.reset()
	booted := w.node.boots
	w.node.stopsAtSearch = true
	for range 5 {
		w.settleUntilDead("bench0")
		w.node.restart()
	}
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolStopsNode)
	if w.node.searches != 3 || w.node.boots != booted+3 {
		t.Errorf("%d searches and %d boots, want 3", w.node.searches, w.node.boots-booted)
	}
	w.delete(pool)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolStopsNode)
	if w.node.searches != 3 {
		t.Error("the disks are searched again to delete the pool")
	}
	if err := os.Remove(filepath.Join(w.node.root, pools.AttemptPath(pool.UID))); err != nil {
		t.Fatal(err)
	}
	w.node.stopsAtSearch = false
	if w.settle("bench0") != nil {
		t.Error("the object stays once a person has removed the record")
	}
	w.expectClean(0)
}

// TestASearchIsNoStop: the pool is lost, and the node is reset between two searches.
func TestASearchIsNoStop(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.serves(pool)
	for range 5 {
		w.node.reset()
		w.node.pools[0].host = "n2"
		w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolLost)
	}
	w.node.pools[0].host = nodeHost
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	if w.node.searches < 6 {
		t.Errorf("only %d searches", w.node.searches)
	}
}

// TestARefusedImportIsNoStop: the pool is not imported for long, but the node lives.
func TestARefusedImportIsNoStop(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.serves(pool)
	for range 5 {
		w.node.reset()
		w.node.pools[0].datasets["bench0"][naming.PropertyUID] = "another"
		w.expectReady(w.settle("bench0"), v1alpha1.ReasonActionFailed)
	}
	w.node.reset()
	w.node.pools[0].datasets["bench0"][naming.PropertyUID] = string(pool.UID)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
}

// TestAPoolInService: the node stops often, but not because of the pool, which is in service each time.
func TestAPoolInService(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	for range 5 {
		pool := w.settle("bench0")
		w.expectReady(pool, v1alpha1.ReasonPoolReady)
		w.serves(pool)
		w.node.reset()
	}
}

// serves makes the agent look at a pool that was imported a while ago.
func (w *world) serves(pool *v1alpha1.BenchmarkPool) {
	w.t.Helper()
	path := filepath.Join(w.node.root, pools.AttemptPath(pool.UID))
	if _, err := os.Stat(path); err != nil {
		w.t.Errorf("no record of the import: %v", err)
	}
	w.node.write("/proc/uptime", "100.00 50.00\n")
	w.settle(pool.Name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		w.t.Errorf("the record of the imports stays: %v", err)
	}
}
