package pool

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// awaiting is a pool that awaits dataset fresh, and the operation that creates it.
func awaiting(outcome string) (*v1alpha1.BenchmarkPool, *v1alpha1.PoolOperation) {
	pool := wanted("bench0")
	pool.Spec.Datasets = append(pool.Spec.Datasets, v1alpha1.PoolDataset{Path: "fresh", Type: "Filesystem", Mounted: true, Awaited: true})
	operation := &v1alpha1.PoolOperation{ObjectMeta: metav1.ObjectMeta{Name: "op", UID: types.UID("uid-op")},
		Spec: v1alpha1.PoolOperationSpec{NodeName: "node-a", Pool: "bench0", Action: v1alpha1.PoolAction{
			Clone: &v1alpha1.CloneAction{Dataset: "parent", Snapshot: "s", To: "fresh"}}}}
	operation.Status.PoolUID, operation.Status.Outcome = string(pool.UID), outcome
	return pool, operation
}

func (w *world) clone(mark string) {
	w.node.pools[0].datasets["bench0/fresh"] = map[string]string{"canmount": "noauto", "mountpoint": "none"}
	if mark != "" {
		w.node.pools[0].datasets["bench0/fresh"][naming.PropertyOperation] = mark
	}
}

// ready says whether the status of the pool tells that dataset fresh is ready for pods.
func freshIsReady(pool *v1alpha1.BenchmarkPool) bool {
	return slices.ContainsFunc(pool.Status.Properties, func(is v1alpha1.EffectiveProperty) bool {
		return is.Dataset == "bench0/fresh" && is.Name == naming.PropertyOperation
	})
}

// TestAwaitedDatasetIsMounted, and goes with its pool, whenever the agent or the node goes down in between.
func TestAwaitedDatasetIsMounted(t *testing.T) {
	for _, resets := range []bool{false, true} {
		for at := 1; ; at++ {
			pool, operation := awaiting(v1alpha1.OutcomeSucceeded)
			w := newWorld(t, pool, operation)
			pool = w.settle("bench0")
			w.expectReady(pool, v1alpha1.ReasonPoolReady)
			if freshIsReady(pool) {
				t.Fatal("it is ready before it is there")
			}
			w.clone("uid-op")
			before := w.node.changes
			w.node.diesAfter, w.node.resets = before+at, resets
			pool = w.settle("bench0")
			w.expectReady(pool, v1alpha1.ReasonPoolReady)
			if !w.node.pools[0].mounted["bench0/fresh"] || !freshIsReady(pool) ||
				w.node.made["/var/lib/storagebench/volumes/bench0/fresh"] != "ready" {
				t.Errorf("crash after change %d: it is not ready: %+v", at, pool.Status.Properties)
			}
			w.delete(pool)
			if pool = w.settle("bench0"); pool != nil {
				t.Errorf("crash after change %d: the pool stays: %s", at, w.says(pool))
			}
			if w.node.changes-before < at {
				if at < 5 { // two properties, a mount, an unmount, the end
					t.Errorf("only %d crash points", at-1)
				}
				break
			}
		}
	}
}

// TestWhatIsNotAwaited: a dataset of that name is mounted only if an operation on this very pool has created and completed it.
func TestWhatIsNotAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		mark, outcome, poolUID string
	}{
		"made by hand":         {"", v1alpha1.OutcomeSucceeded, "uid-bench0"},
		"under way":            {"uid-op", "", "uid-bench0"},
		"failed half-way":      {"uid-op", v1alpha1.OutcomeFailed, "uid-bench0"},
		"of an earlier pool":   {"uid-op", v1alpha1.OutcomeSucceeded, "uid-before"},
		"of another operation": {"uid-another", v1alpha1.OutcomeSucceeded, "uid-bench0"},
	} {
		pool, operation := awaiting(test.outcome)
		operation.Status.PoolUID = test.poolUID
		w := newWorld(t, pool, operation)
		w.settle("bench0")
		w.clone(test.mark)
		commands := len(w.node.commands)
		pool = w.settle("bench0")
		w.expectReady(pool, v1alpha1.ReasonPoolReady)
		if len(w.node.commands) > commands || freshIsReady(pool) {
			t.Errorf("%s: %q", name, w.node.commands[commands:])
		}
		w.delete(pool)
		pool = w.settle("bench0")
		if stays := pool != nil; stays != (test.mark == "") {
			t.Errorf("%s: the pool stays %v", name, stays)
		} else if stays && !strings.Contains(w.says(pool), "bench0/fresh") {
			t.Errorf("%s: %s", name, w.says(pool))
		}
	}
}
