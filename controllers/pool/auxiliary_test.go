package pool

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func withAuxiliaries() *v1alpha1.BenchmarkPool {
	pool := wanted("bench0")
	pool.Spec.Cache, pool.Spec.Spare = []v1alpha1.DevicePath{diskC}, []v1alpha1.DevicePath{diskD}
	return pool
}

// TestCacheAndSpareAreLeftClean: labels of cache devices and spares name no pool. Nevertheless, none is left behind, even with an older
// OpenZFS, which does not report their guids, or if the agent or the node dies after any command.
func TestCacheAndSpareAreLeftClean(t *testing.T) {
	for _, version := range []string{"2.1.15", "2.2.7", "2.3.9"} {
		for _, resets := range []bool{false, true} {
			for at := 1; ; at++ {
				w := newWorld(t, withAuxiliaries())
				w.node.version, w.node.diesAfter, w.node.resets = version, at, resets
				pool := w.settle("bench0")
				w.expectReady(pool, v1alpha1.ReasonPoolReady)
				w.delete(pool)
				if left := w.settle("bench0"); left != nil || !w.node.pools[0].destroyed || len(w.node.pools[0].labels) > 0 {
					t.Fatalf("%s, crash after change %d: left are %+v and %+v; commands:\n%s", version, at, left, w.node.pools[0],
						strings.Join(w.node.commands, "\n"))
				}
				if w.node.changes < at {
					break
				}
			}
		}
	}
}

// TestOthersCacheIsLeft: the label on the disk is that of a cache device, but not of the pool's own.
func TestOthersCacheIsLeft(t *testing.T) {
	w := newWorld(t, withAuxiliaries())
	pool := w.settle("bench0")
	w.node.pools[0].swappedCache = true
	w.delete(pool)
	if left := w.settle("bench0"); left != nil || !w.node.pools[0].destroyed || !w.node.pools[0].labels[diskC] {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
	told := false
	for range len(w.events) {
		told = strings.Contains(<-w.events, "its labels are left") || told
	}
	if !told {
		t.Error("the remaining label was not reported")
	}
}

// TestAReplacedDiskIsLeftClean: the label of a disk that was taken out of the pool would prevent the next pool from taking the disk.
func TestAReplacedDiskIsLeftClean(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	node := w.node.pools[0]
	node.replace(diskB, diskC)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolDisksDiffer)
	w.delete(pool)
	if left := w.settle("bench0"); left != nil || !node.destroyed || len(node.labels) > 0 {
		t.Errorf("left are %+v and %+v; commands:\n%s", left, node, strings.Join(w.node.commands, "\n"))
	}
}
