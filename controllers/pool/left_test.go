package pool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/naming"
)

// leaving are ways in which disks leave a pool, step by step: operations, and a node that goes down.
var leaving = map[string][]func(w *world, on *fakePool){
	"a cache device": {func(_ *world, on *fakePool) { on.remove(diskC) }},
	"a spare":        {func(_ *world, on *fakePool) { on.remove(diskD) }},
	"a vdev that was added before": {
		func(w *world, on *fakePool) {
			w.record(w.object("bench0"), diskE, diskF)
			on.mirror = append(on.mirror, []string{diskE, diskF})
			on.labels[diskE], on.labels[diskF] = true, true
		},
		func(_ *world, on *fakePool) { on.remove(diskE); on.remove(diskF) },
	},
	"replaced twice": {
		func(w *world, on *fakePool) { w.record(w.object("bench0"), diskE); on.replace(diskB, diskE) },
		func(w *world, on *fakePool) { w.record(w.object("bench0"), diskF); on.replace(diskE, diskF) },
	},
	"the node went down while it was added": {func(w *world, on *fakePool) {
		w.record(w.object("bench0"), diskE)
		on.labels[diskE] = true
		on.remove(diskE)
		w.node.reset()
	}},
}

const diskE, diskF = "/dev/disk/by-id/e", "/dev/disk/by-id/f"

// TestWhatHasLeftIsLeftClean: no label stays on a disk that has left the pool before its end, whether or not the agent looked at the pool
// in between, and wherever the agent or the node dies. If it looked, the disk is clean at once.
func TestWhatHasLeftIsLeftClean(t *testing.T) {
	for name, steps := range leaving {
		for run, version := range []string{"2.2.7", "2.3.9", "2.3.9", "2.2.7"} { // the older one reports no guids of data disks
			resets, looks := run%2 == 1, run/2 == 1
			t.Run(fmt.Sprintf("%s, %s, resets %v, looks %v", name, version, resets, looks), func(t *testing.T) {
				for at := 1; leaves(t, steps, version, resets, looks, at); at++ {
					if at > 40 {
						t.Fatal("it does not end")
					}
				}
			})
		}
	}
}

// leaves reports whether the agent died.
func leaves(t *testing.T, steps []func(*world, *fakePool), version string, resets, looks bool, at int) (died bool) {
	t.Helper()
	w := newWorld(t, withAuxiliaries())
	w.node.version, w.node.resets = version, resets
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	on := w.node.pools[0]
	w.node.diesAfter = w.node.changes + at
	for _, step := range steps {
		step(w, on)
		if looks {
			pool = w.settle("bench0")
		}
	}
	if looks && (len(on.left) > 0 || slices.ContainsFunc(pool.Status.Vdevs, isLeft)) {
		t.Errorf("crash after change %d: labels %v are left before the end, status %+v", at, on.left, pool.Status.Vdevs)
	}
	w.delete(pool)
	if left := w.settle("bench0"); left != nil || !on.destroyed || len(on.labels) > 0 {
		t.Fatalf("crash after change %d: left are %+v and %+v; commands:\n%s", at, left, on, strings.Join(w.node.commands, "\n"))
	}
	return w.node.changes >= w.node.diesAfter
}

func isLeft(vdev v1alpha1.VdevStatus) bool { return vdev.State == pools.StateLeft }

// TestLabelsThatStay: a label is not touched, and nothing waits for it, if the pool has not certainly left it, or if others may use the
// disk. An event says so, and the object no longer claims the disk.
func TestLabelsThatStay(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world, on *fakePool)
		says   string
	}{
		"another pool has taken it": {func(w *world, on *fakePool) {
			delete(on.labels, diskC)
			w.node.pools = append(w.node.pools, foreign("other"))
		}, ""},
		"another pool's label too": {func(w *world, _ *fakePool) { w.node.pools = append(w.node.pools, foreign("other")) }, "has other contents"},
		"a file system":            {func(w *world, _ *fakePool) { w.node.also = map[string]host.Reason{diskC: host.Signature} }, "has other contents"},
		"another cache's label": {func(_ *world, on *fakePool) {
			on.left[diskC] = host.PoolLabel{State: host.PoolCache, VdevGUID: 1}
		}, ""},
		"as in the pool": {func(_ *world, on *fakePool) {
			on.left[diskC] = host.PoolLabel{Name: "bench0", GUID: 700, State: host.PoolActive, Txg: 4}
		}, "still says that the disk is in the pool"},
		"silent": {func(w *world, _ *fakePool) { w.node.refused = map[string]error{diskC: refusedFor(host.Silent)} }, "cannot be cleared"},
		"not granted": {func(w *world, _ *fakePool) {
			w.agent.Policy = pools.DevicePolicy{{Pattern: diskA}, {Pattern: diskB}, {Pattern: diskD}}
		}, "is not granted"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withAuxiliaries())
			w.settle("bench0")
			on := w.node.pools[0]
			on.remove(diskC)
			test.change(w, on)
			w.told()
			before := len(w.node.commands)
			w.node.opened = nil
			pool := w.settle("bench0")
			w.expectReady(pool, v1alpha1.ReasonPoolDisksDiffer)
			if told := w.told(); !strings.Contains(told, test.says) || test.says == "" && strings.Contains(told, "has left") {
				t.Errorf("events %q", told)
			}
			if len(w.node.commands) > before || slices.ContainsFunc(pool.Status.Vdevs, isLeft) {
				t.Errorf("commands %q, status %+v", w.node.commands[before:], pool.Status.Vdevs)
			}
			if name == "not granted" && slices.Contains(w.node.opened, diskC) {
				t.Error("it was opened")
			}
			if w.settle("bench0"); strings.Contains(w.told(), "has left") {
				t.Error("it is said again")
			}
		})
	}
}

func refusedFor(reason host.Reason) error {
	return &host.RefusedError{Findings: []host.Finding{{Reason: reason, Detail: string(reason)}}}
}

// TestLabelsThatWait: a temporary obstacle does not stop the pool. The object continues to claim the disk, and says why, until the label
// can be cleared.
func TestLabelsThatWait(t *testing.T) {
	rival := onDisks("rival", diskF)
	rival.Status.Vdevs = []v1alpha1.VdevStatus{{Name: diskC + "-part1", State: "ONLINE"}}
	older := func(w *world, generation string) { w.node.pools[0].datasets["bench0"][pools.PropertySpec] = generation }
	for name, test := range map[string]struct {
		begins, ends func(w *world)
		says, reason string
	}{
		"in use": {func(w *world) { w.node.also = map[string]host.Reason{diskC: host.InUse} }, func(w *world) { w.node.also = nil },
			"InUse", v1alpha1.ReasonPoolDisksDiffer},
		"its users are not found out": {func(w *world) { w.node.also = map[string]host.Reason{diskC: host.Unreadable} },
			func(w *world) { w.node.also = nil }, "Unreadable", v1alpha1.ReasonPoolDisksDiffer},
		"not there": {func(w *world) { w.node.refused = map[string]error{diskC: refusedFor(host.Missing)} },
			func(w *world) { w.node.refused = nil }, "Missing", v1alpha1.ReasonPoolDisksDiffer},
		"the path leads elsewhere": {func(w *world) { w.node.swapped = true }, func(w *world) { w.node.swapped = false },
			"leads to another disk", v1alpha1.ReasonPoolDisksDiffer},
		"a rival has it": {func(w *world) { _ = w.client.Create(w.t.Context(), rival.DeepCopy()) },
			func(w *world) { w.delete(w.object("rival")) }, "BenchmarkPool rival has it too", v1alpha1.ReasonPoolDisksDiffer},
		"an older spec": {func(w *world) { older(w, "9:held") }, func(w *world) { older(w, "1") },
			"older than the pool", v1alpha1.ReasonPoolOlderSpec},
	} {
		for _, deleted := range []bool{false, true} {
			w := newWorld(t, withAuxiliaries())
			w.settle("bench0")
			on := w.node.pools[0]
			on.remove(diskC)
			test.begins(w)
			for range 2 {
				pool := w.settle("bench0")
				w.expectReady(pool, test.reason)
				if !slices.ContainsFunc(pool.Status.Vdevs, isLeft) || !strings.Contains(w.says(pool), diskC+" (") ||
					!strings.Contains(w.says(pool), test.says) || !slices.Contains(objects.ClaimedDevices(pool), diskC) {
					t.Errorf("%s: %s; status %+v", name, w.says(pool), pool.Status.Vdevs)
				}
			}
			if len(on.left) == 0 || slices.ContainsFunc(w.node.commands, func(c string) bool { return strings.Contains(c, "labelclear") }) {
				t.Errorf("%s: commands %q", name, w.node.commands)
			}
			if deleted {
				w.delete(w.object("bench0"))
			}
			test.ends(w)
			if pool := w.settle("bench0"); len(on.left) > 0 || on.labels[diskC] || deleted != (pool == nil) ||
				pool != nil && slices.ContainsFunc(pool.Status.Vdevs, isLeft) {
				t.Errorf("%s, deleted %v: left are %v, %+v", name, deleted, on.left, pool)
			}
		}
	}
}

// TestALeftDiskDoesNotKeepItsPool: the pool is destroyed although the label of a disk that left it cannot be cleared.
func TestALeftDiskDoesNotKeepItsPool(t *testing.T) {
	for _, reason := range []host.Reason{host.InUse, host.Missing, host.Silent} {
		w := newWorld(t, withAuxiliaries())
		pool := w.settle("bench0")
		pool.Spec.Cache = nil // otherwise the deletion would wait for a missing disk of the spec
		pool.Generation++
		if err := w.client.Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		on := w.node.pools[0]
		on.remove(diskC)
		if w.node.also = map[string]host.Reason{diskC: reason}; reason != host.InUse {
			w.node.also, w.node.refused = nil, map[string]error{diskC: refusedFor(reason)}
		}
		w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
		w.delete(pool)
		if left := w.settle("bench0"); left != nil || !on.destroyed || len(on.labels) != 1 || !on.labels[diskC] {
			t.Errorf("%s: left are %+v and %+v", reason, left, on)
		}
	}
}

// TestAnotherPoolGetsTheDisk: a disk that has left a pool is free for others at once, and its earlier pool leaves it to them.
func TestAnotherPoolGetsTheDisk(t *testing.T) {
	next := onDisks("next", diskC, diskE)
	next.CreationTimestamp = metav1.NewTime(metav1.Now().Time)
	w := newWorld(t, withAuxiliaries(), next)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	w.expectReady(w.settle("next"), v1alpha1.ReasonPoolConflict)
	w.node.pools[0].remove(diskC)
	pool := w.object("bench0")
	pool.Spec.Cache = nil
	pool.Generation++
	if err := w.client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	w.expectReady(w.settle("next"), v1alpha1.ReasonPoolReady)
	w.delete(w.object("bench0"))
	taken := w.node.pools[1]
	if left := w.settle("bench0"); left != nil || !taken.imported || !taken.labels[diskC] || !taken.labels[diskE] ||
		taken.datasets["next"][naming.PropertyUID] != "uid-next" {
		t.Errorf("left are %+v and %+v", left, taken)
	}
}

// TestRememberedDisksFit: a pool can lose as many disks as its status names, and as many that were to join it.
func TestRememberedDisksFit(t *testing.T) {
	decision := pools.Decision{Left: make([]pools.LeftDisk, 2*maxVdevs)}
	if vdevs, _ := remembered(observed{}, decision); len(vdevs) != maxVdevs {
		t.Errorf("%d disks are remembered, and the status has room for %d", len(vdevs), maxVdevs)
	}
}
