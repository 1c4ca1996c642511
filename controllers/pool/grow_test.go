package pool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

// change stores another layout and raises the generation, like the API server.
func (w *world) change(pool *v1alpha1.BenchmarkPool, devices ...v1alpha1.DevicePath) {
	w.t.Helper()
	pool.Spec.Vdevs[0].Devices = devices
	pool.Generation++
	if err := w.client.Update(w.t.Context(), pool); err != nil {
		w.t.Fatal(err)
	}
}

// TestMirrorsFollowTheSpec ends the agent after each command by which a mirror gets a third side and loses its first.
func TestMirrorsFollowTheSpec(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t, wanted("bench0"))
		pool := w.settle("bench0")
		w.expectReady(pool, v1alpha1.ReasonPoolReady)
		live, before := w.node.pools[0], w.node.changes
		w.node.diesAfter = before + at
		for _, want := range [][]v1alpha1.DevicePath{{diskA, diskB, diskC}, {diskB, diskC}} {
			w.change(pool, want...)
			pool = w.settle("bench0")
			w.expectReady(pool, v1alpha1.ReasonPoolReady)
			var is []v1alpha1.DevicePath
			for _, path := range live.mirror[0] {
				is = append(is, v1alpha1.DevicePath(path))
			}
			if !slices.Equal(is, want) || len(live.mirror) != 1 {
				t.Fatalf("crash after change %d: the mirror has %q, want %q; commands:\n%s", at, is, want, strings.Join(w.node.commands, "\n"))
			}
		}
		if w.node.changes < w.node.diesAfter {
			if at <= 4 { // attach, generation, detach, generation
				t.Errorf("only %d crash points", at-1)
			}
			return
		}
	}
}

// TestWhatWasTakenOutDoesNotComeBack: only a change of the spec adds disks.
func TestWhatWasTakenOutDoesNotComeBack(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.change(pool, diskA, diskB, diskC)
	pool = w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	w.node.pools[0].mirror[0] = []string{diskA, diskB}
	before := len(w.node.commands)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolDisksDiffer)
	if len(w.node.commands) != before {
		t.Errorf("commands %q", w.node.commands[before:])
	}
}

// TestPathsAreVerifiedLast: a link that moves to another disk while the pool is being proven gives that disk to no command. Nor does a command
// get a disk that has a user since its check.
func TestPathsAreVerifiedLast(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	state, err := w.agent.observe(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	taken := []pools.Disk{}
	for _, path := range []string{diskC, diskD} {
		disk, err := w.node.Check(host.Wish{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, pools.Disk{Disk: disk})
	}
	vdev := zfs.Vdev{Type: zfs.Mirror, Devices: []string{diskC, diskD}}
	before := len(w.node.commands)
	w.node.swapAfter = "zfs get"
	for _, action := range []pools.Action{
		{Kind: pools.GrowPool, GUID: "700", Create: zfs.PoolSpec{Name: "bench0", Layout: zfs.Layout{Data: []zfs.Vdev{vdev}}}},
		{Kind: pools.AttachDisk, GUID: "700", Member: fmt.Sprint(leafGUID(diskA)), Device: diskC},
	} {
		action.Disks, w.node.swapped = taken, false
		if err := w.agent.act(t.Context(), &state, []pools.Action{action}); !errors.Is(err, host.Changed) || len(w.node.commands) > before {
			t.Errorf("%s: %v, commands %q", action.Kind, err, w.node.commands[before:])
		}
		w.node.swapAfter, w.node.swapped, w.node.usedSince = "", false, true
		if err := w.agent.act(t.Context(), &state, []pools.Action{action}); !errors.Is(err, host.InUse) || len(w.node.commands) > before {
			t.Errorf("%s of a disk with a user: %v, commands %q", action.Kind, err, w.node.commands[before:])
		}
		w.node.swapAfter, w.node.usedSince = "zfs get", false
	}
}
