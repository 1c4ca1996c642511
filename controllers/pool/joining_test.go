package pool

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
)

// record does what an operation does before its command adds disks to the pool.
func (w *world) record(pool *v1alpha1.BenchmarkPool, paths ...string) {
	w.t.Helper()
	var disks []pools.Disk
	for _, path := range paths {
		disks = append(disks, pools.Disk{Disk: host.Disk{Path: path}})
	}
	if err := guard.Record(w.t.Context(), w.client, pool, disks); err != nil {
		w.t.Fatal(err)
	}
}

// TestRecordedDisksAreLookedOn: the node went down right before or right after an operation added disks, and the operation is gone when the
// agent is back. The pool is imported, and can be destroyed. Disks that did not get into it are left alone.
func TestRecordedDisksAreLookedOn(t *testing.T) {
	for _, test := range []struct{ added, deleted bool }{{true, false}, {true, true}, {false, false}, {false, true}} {
		w := newWorld(t, wanted("bench0"))
		pool := w.settle("bench0")
		w.record(pool, diskC, diskD)
		on := w.node.pools[0]
		if test.added {
			on.mirror = append(on.mirror, []string{diskC, diskD})
			on.labels[diskC], on.labels[diskD] = true, true
		} else {
			w.node.pools = append(w.node.pools, foreign("other"))
		}
		w.node.reset()
		if test.deleted {
			w.delete(pool)
		}
		left, before := w.settle("bench0"), len(w.node.commands)
		if test.deleted {
			if left != nil || !on.destroyed || len(on.labels) > 0 {
				t.Errorf("%+v: left are %+v and %+v", test, left, on)
			}
		} else {
			want := map[bool]string{true: v1alpha1.ReasonPoolDisksDiffer, false: v1alpha1.ReasonPoolReady}[test.added]
			w.expectReady(left, want)
			if len(left.Status.Joining) > 0 || slices.Contains(objects.ClaimedDevices(left), diskC) != test.added {
				t.Errorf("%+v: joining are %q, claimed %q", test, left.Status.Joining, objects.ClaimedDevices(left))
			}
		}
		for _, command := range w.node.commands[:before] {
			if touched := strings.Contains(command, diskC); touched && !test.added && !strings.HasPrefix(command, "zpool import") {
				t.Errorf("%+v: %s", test, command)
			}
		}
		if !test.added && (!w.node.pools[1].labels[diskC] || w.node.pools[1].destroyed) {
			t.Errorf("%+v: the pool of others is %+v", test, w.node.pools[1])
		}
	}
}

// TestASpecThatIsTakenBack: the node goes down after each command by which a pool gets the disks of a new spec, and the spec is reverted
// before the node is back. The pool is not lost.
func TestASpecThatIsTakenBack(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.BenchmarkPoolSpec){
		"attach": func(s *v1alpha1.BenchmarkPoolSpec) { s.Vdevs[0].Devices = append(s.Vdevs[0].Devices, diskC) },
		"add": func(s *v1alpha1.BenchmarkPoolSpec) {
			s.Vdevs = append(s.Vdevs, v1alpha1.Vdev{Type: "mirror", Devices: []v1alpha1.DevicePath{diskC, diskD}})
		},
	} {
		for at := 1; ; at++ {
			w := newWorld(t, wanted("bench0"))
			pool := w.settle("bench0")
			w.node.diesAfter, w.node.resets = w.node.changes+at, true
			store := func(pool *v1alpha1.BenchmarkPool) {
				pool.Generation++
				if err := w.client.Update(t.Context(), pool); err != nil {
					t.Fatal(err)
				}
			}
			earlier := pool.Spec.DeepCopy()
			change(&pool.Spec)
			store(pool)
			pool = w.settleUntilDead("bench0")
			dead := w.node.dead
			pool.Spec = *earlier
			store(pool)
			pool = w.settle("bench0")
			ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
			if !w.node.pools[0].imported || ready.Reason != v1alpha1.ReasonPoolReady && ready.Reason != v1alpha1.ReasonPoolDisksDiffer {
				t.Errorf("%s, crash after change %d: %s: %s", name, at, ready.Reason, ready.Message)
			}
			if !dead {
				if at <= 2 {
					t.Errorf("%s: only %d crash points", name, at-1)
				}
				break
			}
		}
	}
}
