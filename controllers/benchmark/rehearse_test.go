package benchmark

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
)

// TestRehearsedOnce: a Stalled benchmark asks for rehearsals in every turn, but each dry run is sent only once, unless it was refused.
func TestRehearsedOnce(t *testing.T) {
	requests := map[string]int{}
	r := &Reconciler{Client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			variant := object.(*v1alpha1.BenchmarkRun).Spec.Variant //nolint:forcetypeassert // a panic fails the test
			if requests[variant]++; variant == "wrong" {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "BenchmarkRun"}, "r", nil)
			}
			return nil
		}}).Build()}
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "b", UID: "u", Generation: 1}}
	turn := func(variants ...string) *observation {
		observed := &observation{State: experiment.State{Benchmark: benchmark}}
		for _, variant := range variants {
			run := &v1alpha1.BenchmarkRun{Spec: v1alpha1.BenchmarkRunSpec{Variant: variant, Experiment: "e"}}
			if err := r.rehearse(t.Context(), observed, run); err != nil {
				t.Fatal(err)
			}
		}
		return observed
	}
	for range 3 {
		if observed := turn("a", "b"); observed.SpecError != nil || !observed.Rehearsed {
			t.Errorf("%+v", observed)
		}
	}
	for range 2 {
		if observed := turn("a", "wrong", "c"); observed.SpecError == nil {
			t.Error("a refused run is accepted")
		}
	}
	if requests["a"] != 1 || requests["b"] != 1 || requests["wrong"] != 2 || requests["c"] != 0 {
		t.Errorf("requests: %v", requests)
	}
	benchmark.Generation = 2
	if turn("a"); requests["a"] != 2 {
		t.Errorf("after a change of the spec: %v", requests)
	}
	r.rehearsed.forget(client.ObjectKeyFromObject(benchmark))
	if len(r.rehearsed.of) > 0 {
		t.Errorf("%d benchmarks are remembered", len(r.rehearsed.of))
	}
}
