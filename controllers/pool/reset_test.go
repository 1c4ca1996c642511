package pool

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

const keptDataset = "bench0/parent"

// kept is a pool that is kept between runs, and belongs to the first run.
func kept(reset v1alpha1.ResetPolicy) *v1alpha1.BenchmarkPool {
	pool := wanted("bench0")
	pool.Labels = map[string]string{v1alpha1.LabelReset: string(reset), v1alpha1.LabelRunUID: "run-1"}
	return pool
}

// handOn gives the pool to another run.
func (w *world) handOn(run string) {
	w.t.Helper()
	var pool v1alpha1.BenchmarkPool
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: "bench0"}, &pool); err != nil {
		w.t.Fatal(err)
	}
	pool.Labels[v1alpha1.LabelRunUID] = run
	if err := w.client.Update(w.t.Context(), &pool); err != nil {
		w.t.Fatal(err)
	}
}

// readyFor returns the run for which the dataset is ready according to the status.
func readyFor(pool *v1alpha1.BenchmarkPool) string {
	for _, property := range pool.Status.Properties {
		if property.Dataset == keptDataset && property.Name == naming.PropertyRun {
			return property.Value
		}
	}
	return ""
}

// TestReset: with Dataset the next run gets a new dataset on the same pool, with None the same dataset.
func TestReset(t *testing.T) {
	for reset, guid := range map[v1alpha1.ResetPolicy]int{v1alpha1.ResetDataset: 3, v1alpha1.ResetNone: 2} {
		w := newWorld(t, kept(reset))
		first := w.settle("bench0")
		w.expectReady(first, v1alpha1.ReasonPoolReady)
		if got := readyFor(first); got != "run-1" {
			t.Errorf("%s: at first the dataset is ready for %q", reset, got)
		}
		w.handOn("run-2")
		second := w.settle("bench0")
		w.expectReady(second, v1alpha1.ReasonPoolReady)
		node := w.node.pools[0]
		if readyFor(second) != "run-2" || second.Status.GUID != first.Status.GUID || node.guids[keptDataset] != guid ||
			!node.mounted[keptDataset] || node.datasets[keptDataset]["logbias"] != "throughput" {
			t.Errorf("%s: ready for %q, guid %d, %+v", reset, readyFor(second), node.guids[keptDataset], node)
		}
		w.delete(second)
		if left := w.settle("bench0"); left != nil || !node.destroyed {
			t.Errorf("%s: left are %+v and %+v", reset, left, node)
		}
	}
}

// TestPoolsOfOneRunCarryNoMarks: datasets of a pool that is not kept get no marks and are not reset.
func TestPoolsOfOneRunCarryNoMarks(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.settle("bench0")
	for _, command := range w.node.commands {
		if strings.HasPrefix(command, "zfs create") && strings.Contains(command, "storagebench.dev:") ||
			strings.HasPrefix(command, "zfs destroy") {
			t.Error(command)
		}
	}
}

// TestResetLeavesOthersAlone: a dataset is not destroyed, neither alone nor with the pool, unless it is certainly this pool's own dataset
// of an earlier run.
func TestResetLeavesOthersAlone(t *testing.T) {
	for name, change := range map[string]func(*fakePool){
		"another dataset":          func(p *fakePool) { p.make("bench0/precious", nil) },
		"one below the dataset":    func(p *fakePool) { p.make(keptDataset+"/precious", nil) },
		"a snapshot":               func(p *fakePool) { p.snapshots = []string{keptDataset + "@precious"} },
		"recreated by hand":        func(p *fakePool) { p.make(keptDataset, nil) },
		"another pool's by origin": func(p *fakePool) { p.datasets[keptDataset][naming.PropertyUID] = "uid-other" },
		"of no run":                func(p *fakePool) { delete(p.datasets[keptDataset], naming.PropertyRun) },
	} {
		for _, reset := range []v1alpha1.ResetPolicy{v1alpha1.ResetDataset, v1alpha1.ResetNone} {
			w := newWorld(t, kept(reset))
			w.settle("bench0")
			change(w.node.pools[0])
			before := len(w.node.commands)
			w.handOn("run-2")
			pool := w.settle("bench0")
			w.expectReady(pool, v1alpha1.ReasonPoolDatasetsRemain)
			if !meta.IsStatusConditionTrue(pool.Status.Conditions, v1alpha1.ConditionStalled) {
				t.Errorf("%s, %s: a run would wait for it in vain", name, reset)
			}
			w.delete(pool)
			w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolDatasetsRemain)
			if len(w.node.commands) != before {
				t.Errorf("%s, %s: commands %q", name, reset, w.node.commands[before:])
			}
		}
	}
}

// TestResetOfAUsedDataset: the reset waits while the dataset is in use.
func TestResetOfAUsedDataset(t *testing.T) {
	w := newWorld(t, kept(v1alpha1.ResetDataset))
	w.settle("bench0")
	w.node.users = []string{"dataset bench0/parent is mounted at /x"}
	before := len(w.node.commands)
	w.handOn("run-2")
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolInUse)
	if len(w.node.commands) != before {
		t.Errorf("commands %q", w.node.commands[before:])
	}
	w.node.users = nil
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
}

// TestDatasetIsProvenLast: the commands right before a destroy prove the dataset, so a change between check and action is noticed.
func TestDatasetIsProvenLast(t *testing.T) {
	w := newWorld(t, kept(v1alpha1.ResetDataset))
	w.settle("bench0")
	w.handOn("run-2")
	var pool v1alpha1.BenchmarkPool
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "bench0"}, &pool); err != nil {
		t.Fatal(err)
	}
	state, err := w.agent.observe(t.Context(), &pool)
	if err != nil {
		t.Fatal(err)
	}
	action := pools.Action{Kind: pools.DestroyDataset, GUID: "700", DatasetGUID: "2", Dataset: zfs.DatasetSpec{Name: keptDataset}}
	datasets := w.node.pools[0].datasets
	marks := datasets[keptDataset]
	before := len(w.node.commands)
	for name, change := range map[string]func(*pools.Action){
		"another pool":         func(a *pools.Action) { a.GUID = "701" },
		"another dataset":      func(a *pools.Action) { a.DatasetGUID = "9" },
		"it has lost its mark": func(*pools.Action) { datasets[keptDataset] = map[string]string{naming.PropertyRun: "run-1"} },
		"it is this run's": func(*pools.Action) {
			datasets[keptDataset] = map[string]string{naming.PropertyUID: "uid-bench0", naming.PropertyRun: "run-2"}
		},
		"it has a child": func(*pools.Action) { datasets[keptDataset+"/x"] = map[string]string{} },
	} {
		asked := action
		change(&asked)
		if err := w.agent.act(t.Context(), &state, []pools.Action{asked}); !errors.Is(err, guard.ErrNotOurs) {
			t.Errorf("%s: %v", name, err)
		}
		datasets[keptDataset] = marks
		delete(datasets, keptDataset+"/x")
	}
	w.handOn("run-3")
	if err := w.agent.act(t.Context(), &state, []pools.Action{action}); err == nil || !strings.Contains(err.Error(), "just been changed") {
		t.Errorf("handed on meanwhile: %v", err)
	}
	if len(w.node.commands) != before {
		t.Errorf("commands %q", w.node.commands[before:])
	}
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	at := slices.IndexFunc(w.node.all, func(command string) bool { return strings.HasPrefix(command, "zfs destroy") })
	if at < 0 || !strings.HasPrefix(w.node.all[at-1], "zfs get") ||
		!strings.Contains(w.node.all[at-1], naming.PropertyUID+","+naming.PropertyRun) || strings.Contains(w.node.all[at], " -") {
		t.Errorf("commands %q", w.node.all[max(0, at-1):at+1])
	}
}

// changedByOperation does what a setProperty operation does: it changes one property of the spec, and one that the spec does not name.
func changedByOperation(node *fakeNode) {
	dataset := node.find("bench0").datasets[keptDataset]
	dataset["logbias"], dataset["sync"] = "latency", "disabled"
	dataset[pools.PropertyChanged] = "uid-op,logbias=latency,sync=disabled"
}

// expectSetBack checks that the properties are those of the spec, and that nothing is left of operations of the previous run.
func expectSetBack(t *testing.T, node *fakeNode, at int) {
	t.Helper()
	dataset := node.find("bench0").datasets[keptDataset]
	if dataset["logbias"] != "throughput" || dataset["sync"] != "" || dataset[pools.PropertyChanged] != "" {
		t.Errorf("crash after change %d: the next run has %v", at, dataset)
	}
}

// TestCrashesOfTheReset ends the agent, and in half of the cases the node, after each command from the first run to the end of the second.
func TestCrashesOfTheReset(t *testing.T) {
	for _, reset := range []v1alpha1.ResetPolicy{v1alpha1.ResetDataset, v1alpha1.ResetNone} {
		for _, resets := range []bool{false, true} {
			for at := 1; ; at++ {
				w := newWorld(t, kept(reset))
				w.node.pools = []*fakePool{foreign("other")}
				w.node.diesAfter, w.node.resets = at, resets
				w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
				changedByOperation(w.node)
				w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
				w.handOn("run-2")
				pool := w.settle("bench0")
				w.expectReady(pool, v1alpha1.ReasonPoolReady)
				expectSetBack(t, w.node, at)
				if got := readyFor(pool); got != "run-2" {
					t.Errorf("%s, crash after change %d: ready for %q", reset, at, got)
				}
				w.delete(pool)
				if w.settle("bench0") != nil {
					t.Errorf("%s, crash after change %d: the object stays", reset, at)
				}
				w.expectClean(at)
				if w.node.changes < at {
					break
				}
			}
		}
	}
}
