package operation

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/zfs"
)

// watched shows each command before it runs.
type watched struct {
	*fakeNode
	before func(zfs.Command)
}

func (n watched) Run(ctx context.Context, command zfs.Command) ([]byte, error) {
	n.before(command)
	return n.fakeNode.Run(ctx, command)
}

// watch checks that the BenchmarkPool already names every disk that a command adds.
func (w *world) watch() {
	w.agent.ZFS = zfs.New(watched{w.node, func(command zfs.Command) {
		if command.Args[0] != "add" && command.Args[0] != "replace" {
			return
		}
		claimed := objects.ClaimedDevices(w.pool("bench0"))
		for _, word := range command.Args {
			if strings.HasPrefix(word, "/dev/disk/") && !slices.Contains(claimed, word) {
				w.t.Errorf("only %q are recorded before %s", claimed, command)
			}
		}
	}})
}

func (w *world) pool(name string) *v1alpha1.BenchmarkPool {
	w.t.Helper()
	pool := readyPool(name)
	if err := w.client.Get(w.t.Context(), keyOf(pool), pool); err != nil {
		w.t.Fatal(err)
	}
	return pool
}

// poolTurn records what the pool controller would record: disks that are not in the pool are no longer listed as joining.
func (w *world) poolTurn() {
	w.t.Helper()
	pool := w.pool("bench0")
	pool.Status.Vdevs, pool.Status.Joining = nil, nil
	for _, top := range w.node.pools[0].tops {
		for _, disk := range top.disks {
			pool.Status.Vdevs = append(pool.Status.Vdevs, v1alpha1.VdevStatus{Name: disk.path + "-part1", State: "ONLINE"})
			if disk.replacing != nil {
				pool.Status.Vdevs = append(pool.Status.Vdevs, v1alpha1.VdevStatus{Name: disk.replacing.path + "-part1", State: "ONLINE"})
			}
		}
	}
	if err := w.client.Status().Update(w.t.Context(), pool); err != nil {
		w.t.Fatal(err)
	}
}

// TestDisksAreRecordedFirst: wherever the agent dies, the object of the pool names all of its disks without help of the operation's object,
// whatever the pool controller does in between.
func TestDisksAreRecordedFirst(t *testing.T) {
	for _, name := range []string{"addVdev", "replaceDevice"} {
		for at := 1; ; at++ {
			w := newWorld(t, wanted("op", acts()[name].action))
			w.node.diesAfter = at
			w.watch()
			for turns := 0; turns < 20 && !w.node.isDead(); turns++ {
				_, _ = w.turn("op")
				w.node.clock.Step(time.Second)
			}
			died := w.node.isDead()
			claimed := objects.ClaimedDevices(w.pool("bench0"))
			for _, top := range w.node.pools[0].tops {
				for _, disk := range top.disks {
					if !slices.Contains(claimed, disk.path) || disk.replacing != nil && !slices.Contains(claimed, disk.replacing.path) {
						t.Errorf("%s, crash after event %d: claimed are only %q", name, at, claimed)
					}
				}
			}
			if died {
				w.node.diesAfter = 0
				w.start()
				w.poolTurn()
				w.watch()
			}
			expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
			if !died {
				break
			}
		}
	}
}

// TestNoDiskIsTakenUnrecorded: without a record, no command runs. So a pool whose object was just deleted gets no new disk.
func TestNoDiskIsTakenUnrecorded(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["addVdev"].action))
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	state, err := w.agent.observe(t.Context(), w.get("op"))
	if err != nil {
		t.Fatal(err)
	}
	changed := w.pool("bench0")
	changed.Labels = map[string]string{"changed": "meanwhile"}
	if err := w.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if err := w.agent.act(t.Context(), &state, planned(state).Actions); err == nil || w.node.count("zpool ") > 0 {
		t.Errorf("%v, commands %q", err, w.node.commands)
	}
	expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
}
