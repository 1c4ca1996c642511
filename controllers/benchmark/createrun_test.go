package benchmark

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
)

// TestCreateRun: a run that the previous turn has created is not created again at once, but later if the cache still does not show it.
func TestCreateRun(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	benchmark, tried := waiting(1), 0
	server := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := &Reconciler{Live: server, Client: interceptor.NewClient(server, interceptor.Funcs{Create: func(ctx context.Context,
		server client.WithWatch, object client.Object, options ...client.CreateOption) error {
		tried++
		return server.Create(ctx, object, options...)
	}})}
	r.memory.Keep(benchmark)
	for turn, want := range []struct {
		tried int
		again bool
	}{{1, false}, {1, true}, {2, false}, {3, false}} {
		observed := &observation{State: experiment.State{Benchmark: benchmark}}
		run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: benchmark.Namespace, Name: "b1-000",
			OwnerReferences: []metav1.OwnerReference{experiment.OwnerReference(benchmark)}}}
		if err := r.createRun(t.Context(), observed, run); err != nil || tried != want.tried || observed.again != want.again {
			t.Errorf("turn %d: created %d times, again %t, want %+v (%v)", turn+1, tried, observed.again, want, err)
		}
	}
}
