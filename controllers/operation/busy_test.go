package operation

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
)

// TestAnOperationDoesNotWaitForAStuckPool: it is retried later and says why, and an operation on another pool continues.
func TestAnOperationDoesNotWaitForAStuckPool(t *testing.T) { synctest.Test(t, stuckPool) }

func stuckPool(t *testing.T) {
	other := wanted("other", acts()["scrub"].action)
	other.UID = types.UID("87654321-other")
	other.Spec.Pool = "bench1"
	w := newWorld(t, wanted("op", acts()["scrub"].action), other)
	w.agent.Turns = &guard.Turns{Patience: 10 * time.Millisecond}
	_, stuck, err := w.agent.Turns.Take(t.Context(), "BenchmarkPool bench0", "pool bench0")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for range 20 {
		if result, err := w.turn("op"); err != nil || result.RequeueAfter != busyRecheck {
			t.Fatalf("%v, comes back in %s", err, result.RequeueAfter)
		}
	}
	if spent := time.Since(begun); spent != w.agent.Turns.Patience {
		t.Errorf("20 turns took %s, want those of the first", spent)
	}
	if ready := w.get("op").Status.Conditions[0]; !strings.Contains(ready.Message,
		"waiting for BenchmarkPool bench0, which has been using pool bench0 since") {
		t.Errorf("it says %q", ready.Message)
	}
	if len(w.node.commands) > 0 {
		t.Errorf("commands %q", w.node.commands)
	}
	for range 3 {
		if _, err := w.turn("other"); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.get("other"); got.Status.StartedAt == nil {
		t.Errorf("the operation on the other pool has not begun: %+v", got.Status)
	}
	stuck.End()
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.get("op"); got.Status.StartedAt == nil {
		t.Errorf("it does not begin when it has its turn: %+v", got.Status)
	}
}

// TestATurnIsForAllThatAnOperationTouches: the turn covers its pools, their disks, the disks that it names, and module parameters.
func TestATurnIsForAllThatAnOperationTouches(t *testing.T) {
	for name, wants := range map[string][]string{
		"scrub":           {"BenchmarkPool bench0", "pool bench0"},
		"replicate":       {"BenchmarkPool bench0", "BenchmarkPool bench1", "pool bench0", "pool bench1"},
		"moduleParameter": {"BenchmarkPool bench0", parametersTurn},
	} {
		w := newWorld(t)
		names, err := w.agent.turnNames(t.Context(), wanted("op", acts()[name].action))
		if err != nil || !guard.Covers(names, wants) {
			t.Errorf("%s: %v, the turn is for %q, want %q", name, err, names, wants)
		}
	}
	w := newWorld(t)
	action := v1alpha1.PoolAction{AddVdev: &v1alpha1.AddVdevAction{Devices: []v1alpha1.DiskRef{"/dev/disk/by-id/new"}}}
	if names, err := w.agent.turnNames(t.Context(), wanted("op", action)); err != nil ||
		!guard.Covers(names, []string{"disk /dev/disk/by-id/new", "device /dev/disk/by-id/new"}) {
		t.Errorf("%v, the turn is for %q", err, names)
	}
}
