package operation

import (
	"runtime"
	"strings"
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

// TestADiskThatGoesOfflineLate: the command that takes the disk offline hangs in the kernel, and takes effect after the operation was
// cancelled. The operation waits for that, and brings the disk back.
func TestADiskThatGoesOfflineLate(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["offlineDevice"].action))
	w.node.hangs, w.node.responds = "zpool offline", make(chan struct{})
	hung := func() bool {
		job := w.agent.jobs.look(w.get("op").UID)
		return job != nil && job.Progress != nil && strings.Contains(job.Progress.Message, "hangs in the kernel")
	}
	for turns := 0; turns < 20 && w.node.count("zpool offline") == 0; turns++ {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		for waited := time.Now(); turns > 2 && !hung() && time.Since(waited) < 10*time.Second; {
			runtime.Gosched()
		}
	}
	if !hung() {
		t.Fatalf("the command does not hang: %q", w.node.commands)
	}
	cancel(t, w, "op")
	for range 5 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		w.node.clock.Step(time.Minute)
	}
	if operation := w.get("op"); operation.Status.Outcome != "" || len(operation.Finalizers) == 0 {
		t.Fatalf("the operation has ended, and the command has not: %+v", operation.Status)
	}
	if w.node.count("zpool offline") != 1 {
		t.Errorf("commands %q", w.node.commands)
	}
	close(w.node.responds)
	expect(t, w.settle("op"), "Cancelled", v1alpha1.ReasonCancelled)
	if disk := w.node.pools[0].offline(); disk != nil {
		t.Errorf("%s is offline", disk.path)
	}
}
