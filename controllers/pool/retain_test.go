package pool

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
)

// retained is a pool that stays when its object is deleted.
func retained(name string) *v1alpha1.BenchmarkPool {
	pool := wanted(name)
	pool.Spec.DeletionPolicy = v1alpha1.DeletionRetain
	return pool
}

func (w *world) told() string {
	var told []string
	for range len(w.events) {
		told = append(told, <-w.events)
	}
	return strings.Join(told, "\n")
}

func (w *world) message(pool *v1alpha1.BenchmarkPool) string {
	w.t.Helper()
	return meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady).Message
}

// TestARetainedPoolStays: the object goes, the pool stays as it is, with what is mounted, and the event says what to do with it.
func TestARetainedPoolStays(t *testing.T) {
	for name, prepare := range map[string]func(*fakeNode){
		"as it is":            func(*fakeNode) {},
		"in use":              func(n *fakeNode) { n.users = []string{"dataset bench0/parent is mounted at /x"} },
		"not imported":        func(n *fakeNode) { n.reset() },
		"ZFS does not answer": func(n *fakeNode) { n.version = "none" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, retained("bench0"))
			pool := w.settle("bench0")
			w.expectReady(pool, v1alpha1.ReasonPoolReady)
			prepare(w.node)
			w.told()
			before := len(w.node.commands)
			w.delete(pool)
			if left := w.settle("bench0"); left != nil {
				t.Fatalf("the object stays: %+v", left)
			}
			if len(w.node.commands) != before || len(w.node.folders) > 0 || w.node.pools[0].destroyed {
				t.Errorf("commands %q, folders %q, pool %+v", w.node.commands[before:], w.node.folders, w.node.pools[0])
			}
			if told := w.told(); !strings.Contains(told, "LeftBehind") || !strings.Contains(told, "guid 700") ||
				!strings.Contains(told, "zpool destroy bench0") {
				t.Errorf("told is only %q", told)
			}
		})
	}
}

// TestAPoolRetainedMeanwhileStays: inspecting a pool takes time, in which a user may change the policy.
func TestAPoolRetainedMeanwhileStays(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.delete(w.settle("bench0"))
	state, err := w.agent.observe(t.Context(), w.object("bench0"))
	if err != nil {
		t.Fatal(err)
	}
	now := w.object("bench0")
	now.Spec.DeletionPolicy = v1alpha1.DeletionRetain
	if err := w.client.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := w.agent.act(t.Context(), &state, []pools.Action{{Kind: pools.DestroyPool, GUID: "700"}}); err == nil ||
		w.node.pools[0].destroyed {
		t.Errorf("%v, destroyed: %v", err, w.node.pools[0].destroyed)
	}
	if left := w.settle("bench0"); left != nil || w.node.pools[0].destroyed {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
}

// TestARetainedPoolIsTakenOver follows the messages, from a new object with the same name until the pool belongs to it.
func TestARetainedPoolIsTakenOver(t *testing.T) {
	for _, imported := range []bool{true, false} {
		w := newWorld(t, retained("bench0"))
		w.delete(w.settle("bench0"))
		if w.settle("bench0") != nil {
			t.Fatal("the object stays")
		}
		on := w.node.pools[0]
		if !imported {
			w.node.reset()
		}
		next := retained("bench0")
		next.UID = "uid-next"
		next.Spec.Vdevs[0].Devices = []v1alpha1.DevicePath{diskA, diskB, diskC} // disks that the pool does not have are reported, not taken
		if err := w.client.Create(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		refused := w.settle("bench0")
		if !imported {
			w.expectReady(refused, v1alpha1.ReasonPoolNameTaken)
			if !strings.Contains(w.message(refused), "zpool import -N -d /dev/disk/by-id 700") {
				t.Fatalf("the way is not shown: %s", w.message(refused))
			}
			on.imported = true
			refused = w.settle("bench0")
		}
		w.expectReady(refused, v1alpha1.ReasonPoolNameTaken)
		command := regexp.MustCompile(`zfs set (.*) bench0;`).FindStringSubmatch(w.message(refused))
		if command == nil {
			t.Fatalf("the way is not shown: %s", w.message(refused))
		}
		for _, word := range strings.Fields(command[1]) {
			name, value, _ := strings.Cut(word, "=")
			on.datasets["bench0"][name] = value
		}
		before := len(w.node.commands)
		w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolDisksDiffer)
		if slices.ContainsFunc(w.node.commands[before:], func(command string) bool { return strings.HasPrefix(command, "zpool") }) {
			t.Errorf("commands %q", w.node.commands[before:])
		}
		owned := w.object("bench0")
		w.change(owned, diskA, diskB)
		w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	}
}

// TestARestoredSpecChangesNothing crashes the agent at each step of a change of disks, and then restores each earlier version of the
// object.
func TestARestoredSpecChangesNothing(t *testing.T) {
	layouts := [][]v1alpha1.DevicePath{{diskA, diskB}, {diskA, diskB, diskC}, {diskB, diskC}}
	crashes := 0
	for backup := range layouts[:2] {
		for at := 1; ; at++ {
			w := newWorld(t, wanted("bench0"))
			pool := w.settle("bench0")
			w.expectReady(pool, v1alpha1.ReasonPoolReady)
			first := w.node.changes
			for _, layout := range layouts[1:] {
				w.change(pool, layout...)
				if at > w.node.changes-first { // otherwise nothing after the crash would ever be written, because the agent stays dead
					w.node.diesAfter = first + at
				}
				pool = w.settleUntilDead("bench0")
				if w.node.dead {
					break
				}
			}
			died := w.node.dead
			newest := pool.Generation
			if newest == int64(backup)+1 {
				continue // it died before there was a newer one
			}
			pool = w.object("bench0")
			pool.Spec.Vdevs[0].Devices, pool.Generation = layouts[backup], int64(backup)+1
			if err := w.client.Update(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			is, before := strings.Join(w.node.pools[0].mirror[0], " "), len(w.node.commands)
			for range 3 { // the first look, and changes of other things that raise the generation
				pool = w.settle("bench0")
				pool.Generation++
				if err := w.client.Update(t.Context(), pool); err != nil {
					t.Fatal(err)
				}
			}
			for _, command := range w.node.commands[before:] {
				if strings.HasPrefix(command, "zpool") {
					t.Errorf("crash after change %d, generation %d of %d restored: %s", at, backup+1, newest, command)
				}
			}
			if now := strings.Join(w.node.pools[0].mirror[0], " "); now != is {
				t.Errorf("crash after change %d, generation %d of %d restored: the mirror had %s and has %s", at, backup+1, newest, is, now)
			}
			if !died {
				w.expectAccepted(layouts[backup])
				break
			}
			crashes++
		}
	}
	if crashes < 10 { // two marks before, attach, detach, two marks after, for two backups
		t.Errorf("only %d crashes", crashes)
	}
}

// expectAccepted checks that a user who follows the message makes the agent accept the restored spec.
func (w *world) expectAccepted(layout []v1alpha1.DevicePath) {
	w.t.Helper()
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolOlderSpec)
	words := regexp.MustCompile(`kubectl annotate --overwrite benchmarkpool bench0 (\S+)=(\d+)$`).FindStringSubmatch(w.message(pool))
	if words == nil {
		w.t.Fatalf("the way is not shown: %s", w.message(pool))
	}
	pool.Annotations = map[string]string{words[1]: words[2]}
	if err := w.client.Update(w.t.Context(), pool); err != nil {
		w.t.Fatal(err)
	}
	if !slices.Contains(layout, diskC) { // as always, only a person can correct a disk that is in the place of another
		w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolDisksDiffer)
		return
	}
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	var is []v1alpha1.DevicePath
	for _, path := range w.node.pools[0].mirror[0] {
		is = append(is, v1alpha1.DevicePath(path))
	}
	slices.Sort(is)
	if !slices.Equal(is, layout) {
		w.t.Errorf("after the spec was accepted the mirror has %q, not %q", is, layout)
	}
}
