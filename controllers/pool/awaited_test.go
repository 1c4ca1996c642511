package pool

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

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

// freshIsReady reports whether the status of the pool reports that dataset fresh is ready for pods.
func freshIsReady(pool *v1alpha1.BenchmarkPool) bool {
	return slices.ContainsFunc(pool.Status.Properties, func(is v1alpha1.EffectiveProperty) bool {
		return is.Dataset == "bench0/fresh" && is.Name == naming.PropertyOperation
	})
}

// TestAwaitedDatasetIsMounted: it is also destroyed with its pool, wherever the agent or the node dies.
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

// listing counts the lists of PoolOperations.
type listing struct {
	client.Client
	lists int
}

func (c *listing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*v1alpha1.PoolOperationList); is {
		c.lists++
	}
	return c.Client.List(ctx, list, options...)
}

// TestACompleteDatasetNeedsNoOperation: the agent waits for its operation once. Later the object may be gone, but the dataset has to be
// mounted anyway, for example after a restart of the node.
func TestACompleteDatasetNeedsNoOperation(t *testing.T) {
	pool, operation := awaiting(v1alpha1.OutcomeSucceeded)
	w := newWorld(t, pool, operation)
	counted := &listing{Client: w.agent.Client}
	w.agent.Client = counted
	w.settle("bench0")
	if counted.lists = 0; w.settle("bench0") == nil || counted.lists > 0 {
		t.Errorf("operations were listed %d times without such a dataset", counted.lists)
	}
	w.clone("uid-op")
	w.settle("bench0")
	if counted.lists == 0 || !w.node.pools[0].mounted["bench0/fresh"] {
		t.Fatal("it was not mounted")
	}
	if err := w.client.Delete(t.Context(), operation); err != nil {
		t.Fatal(err)
	}
	counted.lists = 0
	w.node.pools[0].mount("bench0/fresh", false)
	pool = w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	if !w.node.pools[0].mounted["bench0/fresh"] || !freshIsReady(pool) || counted.lists > 0 {
		t.Errorf("without its operation: mounted %v, %d lists", w.node.pools[0].mounted, counted.lists)
	}
}

// TestAwaitedDatasetsFitIntoTheStatus: the status has only their mark and the properties that differ from those of the root.
func TestAwaitedDatasetsFitIntoTheStatus(t *testing.T) {
	pool, operation := awaiting(v1alpha1.OutcomeSucceeded)
	w := newWorld(t, pool, operation)
	w.settle("bench0")
	w.clone("uid-op")
	w.node.pools[0].datasets["bench0"]["recordsize"] = "8192"
	for name, value := range map[string]string{"recordsize": "131072", "compression": "lz4"} { // the root has lz4 as well
		w.node.pools[0].datasets["bench0/fresh"][name] = value
	}
	pool = w.settle("bench0")
	reported := map[string]string{}
	for _, is := range pool.Status.Properties {
		if is.Dataset == "bench0/fresh" {
			reported[is.Name] = is.Value
		}
	}
	want := map[string]string{naming.PropertyOperation: "uid-op", "recordsize": "131072"}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFinishedOperationsWakeTheirPool: an operation that has created a dataset wakes the pool of that dataset.
func TestFinishedOperationsWakeTheirPool(t *testing.T) {
	for name, test := range map[string]struct {
		action v1alpha1.PoolAction
		wakes  string
	}{
		"a clone":          {v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{To: "fresh"}}, "bench0"},
		"a copy within":    {v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{To: "fresh"}}, "bench0"},
		"a copy elsewhere": {v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{To: "fresh", ToPool: "bench1"}}, "bench1"},
		"a replica":        {v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{To: "fresh", ToPool: "bench1"}}, "bench1"},
		"a new disk":       {v1alpha1.PoolAction{AddVdev: &v1alpha1.AddVdevAction{}}, "bench0"},
		"a removed disk":   {v1alpha1.PoolAction{RemoveVdev: &v1alpha1.RemoveVdevAction{}}, "bench0"},
		"a scrub":          {v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}, ""},
	} {
		before := &v1alpha1.PoolOperation{Spec: v1alpha1.PoolOperationSpec{Pool: "bench0", Action: test.action}}
		after := before.DeepCopy()
		after.Status.Outcome = v1alpha1.OutcomeSucceeded
		wakes := changesPool().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
		if wakes != (test.wakes != "") || wakes && poolOf(t.Context(), after)[0].Name != test.wakes {
			t.Errorf("%s: wakes %v, %v", name, wakes, poolOf(t.Context(), after))
		}
		if changesPool().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after}) {
			t.Errorf("%s: wakes again", name)
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
