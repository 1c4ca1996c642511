package operation

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestADiskComesBackToADeletedPool: the agent is killed while the disk is offline, and the BenchmarkPool is deleted meanwhile. Its finalizer
// waits for the operation, whose next agent brings the disk back.
func TestADiskComesBackToADeletedPool(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["offlineDevice"].action))
	pool := w.pool("bench0")
	pool.Finalizers = []string{v1alpha1.FinalizerTeardown}
	if err := w.client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	for turns := 0; turns < 20 && w.node.pools[0].offline() == nil; turns++ {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		w.rest("op")
		w.node.clock.Step(time.Second)
	}
	if w.node.pools[0].offline() == nil {
		t.Fatal("the disk is not offline")
	}
	w.node.mutex.Lock()
	w.node.dead = true
	w.node.mutex.Unlock()
	if err := w.client.Delete(t.Context(), w.pool("bench0")); err != nil {
		t.Fatal(err)
	}
	expect(t, w.settle("op"), "Failed", v1alpha1.ReasonAgentDied)
	if disk := w.node.pools[0].offline(); disk != nil {
		t.Errorf("%s is offline", disk.path)
	}
}

// TestAnOfflineDiskIsNotOpened: a check opens a disk exclusively, for seconds. If the disk came back in that moment, ZFS could not open it,
// and the pool would stay degraded.
func TestAnOfflineDiskIsNotOpened(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["offlineDevice"].action))
	away := 0
	for range 40 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		w.rest("op")
		if w.node.pools[0].offline() != nil {
			away++
		}
		w.node.clock.Step(time.Second)
	}
	expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	if len(w.node.blocked) > 0 || away < 2 {
		t.Errorf("%v were opened in %d turns with a disk that is offline", w.node.blocked, away)
	}
}
