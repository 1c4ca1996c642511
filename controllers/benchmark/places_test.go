package benchmark

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/line"
	"github.com/storagebench/storagebench/controllers/trim"
	"github.com/storagebench/storagebench/internal/experiment"
)

// TestPlaceIsWrittenFromTheCache: a new place costs one patch, which leaves what the cache does not hold as it is.
func TestPlaceIsWrittenFromTheCache(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	stored := waiting(2)
	stored.Spec.Phases = []v1alpha1.Phase{{Name: "read"}}
	stored.Status.History = []v1alpha1.ResultsReference{{Experiment: "0a1b2c3d", ConfigMap: "b2-0a1b2c3d-results"}, {Experiment: "1b2c3d4e"}}
	stored.Status.Conditions[0].Status, stored.Status.Conditions[0].LastTransitionTime = metav1.ConditionFalse, metav1.NewTime(noon)
	patches, outdated := 0, false
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).WithStatusSubresource(stored).Build()
	r := &Reconciler{Line: line.New(experiment.Limits{}), Client: interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			if err := c.Get(ctx, key, into); err != nil {
				return err
			}
			if outdated {
				into.SetResourceVersion("1")
			}
			_, err := trim.Benchmark(into)
			return err
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			patches++
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})}
	for i := range 3 {
		r.Line.Put(EntryOf(waiting(i), r.Limits))
	}
	key := client.ObjectKeyFromObject(stored)
	write := func() reconcile.Result {
		t.Helper()
		result, err := r.writePlace(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	want := func(state string, position int32, written int) {
		t.Helper()
		var now v1alpha1.StorageBenchmark
		if err := server.Get(t.Context(), key, &now); err != nil {
			t.Fatal(err)
		}
		if now.Status.State != state || now.Status.Queue.Position != position || patches != written {
			t.Errorf("%s at place %d after %d patches, want %s at %d after %d", now.Status.State, now.Status.Queue.Position, patches, state, position,
				written)
		}
		if diff := cmp.Diff(stored.Spec, now.Spec) + cmp.Diff(stored.Status.History, now.Status.History); diff != "" {
			t.Errorf("the patch has changed what the cache does not hold: %s", diff)
		}
	}
	write()
	want("Queued(3)", 3, 1)
	write()
	want("Queued(3)", 3, 1)
	r.Line.Remove("u0")
	outdated = true
	if result := write(); result.RequeueAfter != placeDelay {
		t.Errorf("after a conflict, the next attempt is in %s, want %s", result.RequeueAfter, placeDelay)
	}
	want("Queued(3)", 3, 2)
	outdated = false
	write()
	want("Queued(2)", 2, 3)
	r.Line.Remove("u1")
	if write(); patches != 3 {
		t.Error("the next benchmark got its place here: only the planner knows whether a node is free")
	}
}

func TestMoved(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.StorageBenchmark){
		"suspended":     func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = true },
		"not queued":    func(b *v1alpha1.StorageBenchmark) { b.Status.Queue = nil },
		"changed spec":  func(b *v1alpha1.StorageBenchmark) { b.Generation++ },
		"another state": func(b *v1alpha1.StorageBenchmark) { b.Status.Conditions[0].Reason = v1alpha1.ReasonTargetNotFound },
		"no node":       func(b *v1alpha1.StorageBenchmark) { b.Status.NodeName, b.Status.NodeNames = "", nil },
	} {
		ahead := []experiment.Place{experiment.PlaceOf(waiting(0), experiment.Limits{})}
		benchmark := waiting(1)
		if _, moved := experiment.Moved(benchmark, ahead, experiment.Limits{}); !moved {
			t.Error("a benchmark in a queue gets no place")
		}
		change(benchmark)
		if _, moved := experiment.Moved(benchmark, ahead, experiment.Limits{}); moved {
			t.Errorf("%s: it gets a place without the planner", name)
		}
	}
}
