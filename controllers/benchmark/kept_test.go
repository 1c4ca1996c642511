package benchmark

import (
	"testing"

	"github.com/storagebench/storagebench/internal/experiment"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// TestDeletePool: a pool is deleted only if this benchmark keeps it, and if its last run is the one in the plan and is over or gone.
func TestDeletePool(t *testing.T) {
	over := func(run *v1alpha1.BenchmarkRun) {
		kstatus.Set(&run.Status.Conditions, 1, v1alpha1.ConditionComplete, metav1.ConditionTrue, "X", "x")
		kstatus.Set(&run.Status.Conditions, 1, v1alpha1.ConditionValid, metav1.ConditionFalse, "X", "x")
		kstatus.SetReady(&run.Status.Conditions, 1, "X", "x")
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.BenchmarkPool, *v1alpha1.BenchmarkRun)
		goes   bool
	}{
		"its run is over":         {func(_ *v1alpha1.BenchmarkPool, r *v1alpha1.BenchmarkRun) { over(r) }, true},
		"its run is gone":         {func(_ *v1alpha1.BenchmarkPool, r *v1alpha1.BenchmarkRun) { r.Name = "another" }, true},
		"a namesake has its name": {func(_ *v1alpha1.BenchmarkPool, r *v1alpha1.BenchmarkRun) { r.UID = "u9" }, true},
		"its run is at work":      {func(*v1alpha1.BenchmarkPool, *v1alpha1.BenchmarkRun) {}, false},
		"another run has it now": {func(p *v1alpha1.BenchmarkPool, r *v1alpha1.BenchmarkRun) {
			over(r)
			p.Labels[v1alpha1.LabelRunUID] = "u2"
		}, false},
		"it is another benchmark's": {func(p *v1alpha1.BenchmarkPool, r *v1alpha1.BenchmarkRun) {
			over(r)
			p.Labels[v1alpha1.LabelBenchmarkUID] = "b2"
		}, false},
		"it is not kept": {func(p *v1alpha1.BenchmarkPool, r *v1alpha1.BenchmarkRun) {
			over(r)
			delete(p.Labels, v1alpha1.LabelReset)
		}, false},
	} {
		kinds := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(kinds); err != nil {
			t.Fatal(err)
		}
		benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "lab", UID: "b1"}}
		run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "r1", Namespace: "lab", UID: "u1"}}
		pool := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: "sb-1-data", Labels: map[string]string{
			v1alpha1.LabelBenchmarkUID: "b1", v1alpha1.LabelReset: "None", v1alpha1.LabelRun: "r1", v1alpha1.LabelRunUID: "u1"}}}
		test.change(pool, run)
		cluster := fake.NewClientBuilder().WithScheme(kinds).WithObjects(run, pool).Build()
		r := &Reconciler{Client: cluster, Live: cluster}
		if err := r.deletePool(t.Context(), benchmark, pool.Name, "u1"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		err := cluster.Get(t.Context(), client.ObjectKeyFromObject(pool), &v1alpha1.BenchmarkPool{})
		if apierrors.IsNotFound(err) != test.goes {
			t.Errorf("%s: %v", name, err)
		}
		if keeps, err := r.keepsPools(t.Context(), &observation{State: experiment.State{Benchmark: benchmark}}, "", nil); err != nil || keeps &&
			test.goes {
			t.Errorf("%s: keeps %t, %v", name, keeps, err)
		}
	}
}
