package pool

import (
	"errors"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestAFolderIsNoReasonToStay: the pool is destroyed, and its object goes, also if a folder of its mounts does not.
func TestAFolderIsNoReasonToStay(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.node.folderStays = errors.New("directory not empty")
	w.delete(w.settle("bench0"))
	if left := w.settle("bench0"); left != nil || !w.node.pools[0].destroyed {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
	if len(w.node.folders) != 1 {
		t.Errorf("removed were to be %q", w.node.folders)
	}
}

// TestAReleasedPoolIsLeftAsItIs: a pool in use that is released stays, with what is mounted.
func TestAReleasedPoolIsLeftAsItIs(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.node.users = []string{"dataset bench0/parent is mounted at /x"}
	pool.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: "node-a"}
	if err := w.client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	w.delete(pool)
	before := len(w.node.commands)
	if w.settle("bench0") != nil {
		t.Error("the object stays")
	}
	if len(w.node.commands) != before || len(w.node.folders) > 0 || !w.node.pools[0].mounted["bench0/parent"] {
		t.Errorf("commands %q, folders %q, pool %+v", w.node.commands[before:], w.node.folders, w.node.pools[0])
	}
}

func TestAUsedPoolIsNotDestroyed(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.node.users = []string{"dataset bench0/parent is mounted at /x"}
	w.delete(pool)
	before := len(w.node.commands)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolInUse)
	if len(w.node.commands) != before {
		t.Errorf("commands %q", w.node.commands[before:])
	}
	w.node.users = nil
	if w.settle("bench0") != nil || !w.node.pools[0].destroyed {
		t.Error("the pool stayed after its use")
	}
}
