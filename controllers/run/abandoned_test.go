package run

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestAbandonedRunsGo: a run at rest that was orphaned, and whose benchmark is gone for good, is deleted, and no other.
func TestAbandonedRunsGo(t *testing.T) {
	benchmark := func(uid types.UID) *v1alpha1.StorageBenchmark {
		return &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Name: "ageing", Namespace: "lab", UID: uid}}
	}
	nothing := func(*v1alpha1.BenchmarkRun) {}
	for name, test := range map[string]struct {
		change       func(*v1alpha1.BenchmarkRun)
		cached, live []client.Object
		goes         bool
	}{
		"its benchmark is gone":     {nothing, nil, nil, true},
		"it is another's namesake":  {nothing, []client.Object{benchmark("other")}, []client.Object{benchmark("other")}, true},
		"its benchmark is there":    {nothing, []client.Object{benchmark("bench-uid")}, nil, false},
		"the cache is late":         {nothing, nil, []client.Object{benchmark("bench-uid")}, false},
		"nothing says whose it was": {func(r *v1alpha1.BenchmarkRun) { r.Labels = nil }, nil, nil, false},
		"garbage collection has it": {func(r *v1alpha1.BenchmarkRun) {
			r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(benchmark("bench-uid"),
				v1alpha1.GroupVersion.WithKind("StorageBenchmark"))}
		}, nil, nil, false},
	} {
		run := testRun(corev1.PersistentVolumeFilesystem)
		run.Spec.Benchmark, run.Spec.Retain, run.Finalizers = "ageing", v1alpha1.RetainAlways, []string{v1alpha1.FinalizerTeardown}
		runstest.Record(run, runstest.ValidEnding, true)
		run.Status.ObservedGeneration = run.Generation
		test.change(run)
		if !atRest(run) || !runs.Settled(run) {
			t.Fatalf("%s: the run is not at rest", name)
		}
		r := drivenReconciler(t, false, append(test.cached, run)...)
		r.Live = drivenReconciler(t, false, test.live...).Client
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(run)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var left v1alpha1.BenchmarkRun
		err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(run), &left)
		if gone := apierrors.IsNotFound(err) || err == nil && !left.DeletionTimestamp.IsZero(); gone != test.goes {
			t.Errorf("%s: it goes: %t, want %t (%v)", name, gone, test.goes, err)
		}
	}
}
