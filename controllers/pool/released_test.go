package pool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
)

// releasedAndRestored releases bench0 while it is deleted and in use, and then restores a backup from right before the release.
func releasedAndRestored(t *testing.T, release func(*world)) *world {
	t.Helper()
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.node.users = []string{"dataset bench0/parent is mounted at /x"}
	w.delete(pool)
	backup := w.settle("bench0")
	w.expectReady(backup, v1alpha1.ReasonPoolInUse)
	release(w)
	if w.settle("bench0") != nil {
		t.Fatal("the object stays")
	}
	w.told()
	w.restore(backup)
	return w
}

// restore brings an object that was being deleted back from a backup.
func (w *world) restore(backup *v1alpha1.BenchmarkPool) {
	w.t.Helper()
	again := backup.DeepCopy()
	again.ResourceVersion = ""
	if err := w.client.Create(w.t.Context(), again); err != nil {
		w.t.Fatal(err)
	}
	again.Status = *backup.Status.DeepCopy()
	if err := w.client.Status().Update(w.t.Context(), again); err != nil {
		w.t.Fatal(err)
	}
	w.delete(again)
	if now := w.object("bench0"); now.UID != backup.UID || now.DeletionTimestamp.IsZero() || len(now.Annotations) > 0 {
		w.t.Fatalf("restored is %+v", now)
	}
}

func retain(w *world) {
	now := w.object("bench0")
	now.Spec.DeletionPolicy = v1alpha1.DeletionRetain
	if err := w.client.Update(w.t.Context(), now); err != nil {
		w.t.Fatal(err)
	}
}

// TestAReleaseOutlivesARestore: the object is back without the annotation or the policy by which it went, and then nothing uses the pool any
// more. The pool stays.
func TestAReleaseOutlivesARestore(t *testing.T) {
	for name, release := range map[string]func(*world){"released": (*world).release, "retained meanwhile": retain} {
		for _, imported := range []bool{true, false} {
			w := releasedAndRestored(t, release)
			w.node.users = nil
			if !imported {
				w.node.reset()
			}
			before := len(w.node.commands)
			if left := w.settle("bench0"); left != nil || w.node.pools[0].destroyed || len(w.node.commands) != before || len(w.node.folders) > 0 {
				t.Errorf("%s, imported %v: left are %+v and %+v; commands %q, folders %q", name, imported, left, w.node.pools[0],
					w.node.commands[before:], w.node.folders)
			}
			if told := w.told(); !strings.Contains(told, "LeftBehind released before a backup") ||
				!strings.Contains(told, pools.ReleasePath("uid-bench0")) || !strings.Contains(told, "zpool destroy bench0") {
				t.Errorf("%s, imported %v: told is only %q", name, imported, told)
			}
		}
	}
}

// TestAReleaseIsReadLast: right before the destruction, the record of the node counts as the annotation does.
func TestAReleaseIsReadLast(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.delete(w.settle("bench0"))
	state, err := w.agent.observe(t.Context(), w.object("bench0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.agent.Releases.Record(state.Pool.UID); err != nil {
		t.Fatal(err)
	}
	if err := w.agent.act(t.Context(), &state, []pools.Action{{Kind: pools.DestroyPool, GUID: "700"}}); err == nil ||
		w.node.pools[0].destroyed {
		t.Errorf("%v, destroyed: %v", err, w.node.pools[0].destroyed)
	}
}

// TestARecordComesFirst: the agent dies before the finalizer is removed, and the pool stays nevertheless.
func TestARecordComesFirst(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.delete(w.settle("bench0"))
	w.release()
	w.node.dead = true // it writes nothing to the API any more
	if _, err := w.agent.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "bench0"}}); err == nil {
		t.Error("the dead have written")
	}
	if known, err := w.agent.Releases.Recorded("uid-bench0"); !known || err != nil {
		t.Error(known, err)
	}
}

// TestARecordThatCannotBeWritten: the object goes, because a release is for nodes that are broken, and the event says what to do.
func TestARecordThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.delete(w.settle("bench0"))
	folder := filepath.Dir(filepath.Join(w.node.root, pools.ReleasePath("uid-bench0")))
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // a file instead of the folder
		t.Fatal(err)
	}
	w.release()
	w.told()
	if _, err := w.agent.release(t.Context(), w.object("bench0")); err != nil {
		t.Fatal(err)
	}
	if told := w.told(); !strings.Contains(told, "zfs inherit storagebench.dev:uid bench0") {
		t.Errorf("told is only %q", told)
	}
}
