package run

import (
	"testing"

	"github.com/storagebench/storagebench/internal/naming"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/volume"
)

// repetition is a run of a benchmark whose pools are kept.
func repetition(name string, reset v1alpha1.ResetPolicy) *v1alpha1.BenchmarkRun {
	yes := true
	return &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab", UID: types.UID("uid-" + name),
			Labels: map[string]string{v1alpha1.LabelBenchmarkUID: "b1", v1alpha1.LabelExperiment: "0a1b2c3d"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "storagebench.dev/v1alpha1", Kind: "StorageBenchmark", Name: "b", UID: "b1",
				Controller: &yes}}},
		Spec: v1alpha1.BenchmarkRunSpec{NodeName: "n1", Variant: "default", Experiment: "0a1b2c3d", Phases: []v1alpha1.Phase{{Name: "fill"}},
			Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Reset: reset, Dataset: &v1alpha1.DatasetTemplate{Type: "Filesystem"}}}},
	}
}

// over records the outcome of a run.
func over(run *v1alpha1.BenchmarkRun, valid metav1.ConditionStatus) {
	kstatus.Set(&run.Status.Conditions, 1, v1alpha1.ConditionComplete, metav1.ConditionTrue, "X", "x")
	kstatus.Set(&run.Status.Conditions, 1, v1alpha1.ConditionValid, valid, "X", "x")
	kstatus.SetReady(&run.Status.Conditions, 1, "X", "x")
}

// TestTakePools: a pool is taken over from a valid run of the same benchmark, and only from such a run.
func TestTakePools(t *testing.T) {
	for name, test := range map[string]struct {
		change func(before *v1alpha1.BenchmarkRun, pool *v1alpha1.BenchmarkPool)
		taken  bool
	}{
		"it is handed on":            {func(*v1alpha1.BenchmarkRun, *v1alpha1.BenchmarkPool) {}, true},
		"the run before was Invalid": {func(b *v1alpha1.BenchmarkRun, _ *v1alpha1.BenchmarkPool) { over(b, metav1.ConditionFalse) }, false},
		"the run before is not over": {func(b *v1alpha1.BenchmarkRun, _ *v1alpha1.BenchmarkPool) { b.Status.Conditions = nil }, false},
		"it was another benchmark's": {func(b *v1alpha1.BenchmarkRun, _ *v1alpha1.BenchmarkPool) { b.OwnerReferences[0].UID = "b2" }, false},
		"a namesake of the run":      {func(b *v1alpha1.BenchmarkRun, _ *v1alpha1.BenchmarkPool) { b.UID = "x" }, false},
		"the pool is of another": {func(_ *v1alpha1.BenchmarkRun, p *v1alpha1.BenchmarkPool) {
			p.Labels[v1alpha1.LabelBenchmarkUID] = "b2"
		}, false},
		"the pool is not kept": {func(_ *v1alpha1.BenchmarkRun, p *v1alpha1.BenchmarkPool) { delete(p.Labels, v1alpha1.LabelReset) },
			false},
		"the pool was changed":         {func(_ *v1alpha1.BenchmarkRun, p *v1alpha1.BenchmarkPool) { p.Generation = 2 }, false},
		"the pool is made by a person": {func(_ *v1alpha1.BenchmarkRun, p *v1alpha1.BenchmarkPool) { p.Labels = nil }, false},
	} {
		before, run := repetition("r1", v1alpha1.ResetNone), repetition("r2", v1alpha1.ResetNone)
		over(before, metav1.ConditionTrue)
		pool := volume.Pool(before, volume.RunVolumes(before)[0], runs.ClusterLabels(before))
		test.change(before, pool)
		kinds := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(kinds); err != nil {
			t.Fatal(err)
		}
		cluster := fake.NewClientBuilder().WithScheme(kinds).WithStatusSubresource(&v1alpha1.BenchmarkPool{}).WithObjects(before, pool).Build()
		r := &Reconciler{Client: cluster, Live: cluster}
		err := r.takePools(t.Context(), run)
		var now v1alpha1.BenchmarkPool
		if get := cluster.Get(t.Context(), client.ObjectKeyFromObject(pool), &now); get != nil {
			t.Fatal(get)
		}
		if (err == nil) != test.taken || ofRun(&now, run) != test.taken {
			t.Errorf("%s: %v, labels %v", name, err, now.Labels)
		}
		if !test.taken {
			continue
		}
		if now.Annotations[v1alpha1.AnnotationKeptFrom] != "r1" || now.Annotations[v1alpha1.AnnotationKeptFromUID] != "uid-r1" ||
			now.Labels[v1alpha1.LabelRun] != "r2" {
			t.Errorf("%s: %v %v", name, now.Labels, now.Annotations)
		}
		version := now.ResourceVersion
		if err := r.takePools(t.Context(), run); err != nil {
			t.Errorf("%s, a second time: %v", name, err)
		}
		if _ = cluster.Get(t.Context(), client.ObjectKeyFromObject(pool), &now); now.ResourceVersion != version {
			t.Errorf("%s: it is written a second time", name)
		}
	}
}

// TestKeptPoolsState follows a pool from one run to the next.
func TestKeptPoolsState(t *testing.T) {
	before, run := repetition("r1", v1alpha1.ResetNone), repetition("r2", v1alpha1.ResetNone)
	pool := volume.Pool(before, volume.RunVolumes(before)[0], runs.ClusterLabels(before))
	if pool.Labels[v1alpha1.LabelReset] != "None" {
		t.Errorf("labels %v", pool.Labels)
	}
	kstatus.SetReady(&pool.Status.Conditions, 0, v1alpha1.ReasonPoolReady, "ready")
	look := func() runs.Pools { return runs.PoolsOf(run, []*v1alpha1.BenchmarkPool{pool}, nil) }
	if got := look(); got.Exist || got.Some || got.Ready || got.Foreign != "" || got.Earlier == nil || got.Earlier.RunName != "r1" ||
		got.Earlier.RunUID != "uid-r1" {
		t.Errorf("of the run before: %+v", got)
	}
	pool.Labels[v1alpha1.LabelRunUID] = "uid-r2"
	pool.Annotations = map[string]string{v1alpha1.AnnotationKeptFrom: "r1", v1alpha1.AnnotationKeptFromUID: "uid-r1"}
	mark := v1alpha1.EffectiveProperty{Dataset: pool.Name + "/data", Name: naming.PropertyRun, Value: "uid-r1", Source: "local"}
	pool.Status.Properties = []v1alpha1.EffectiveProperty{mark}
	if got := look(); got.Ready || got.Broken || !got.Exist || got.Earlier != nil || got.Reason != v1alpha1.ReasonPoolNotReady {
		t.Errorf("taken, not reset: %+v", got)
	}
	pool.Status.Properties[0].Value = "uid-r2"
	got := look()
	wanted := results.RunIdentity{Namespace: "lab", Name: "r1", UID: "uid-r1"}
	if !got.Ready || !got.Kept || got.KeptFrom["data"] != wanted || got.Volumes[0].KeptFrom != "r1" || len(got.Volumes[0].Properties) != 0 {
		t.Errorf("reset: %+v", got)
	}
	for reset, keeps := range map[v1alpha1.ResetPolicy]bool{v1alpha1.ResetNone: true, v1alpha1.ResetDataset: false} {
		run.Spec.Target.ZFS.Reset = reset
		request, err := runs.Request(run, run.Spec.Phases[0], got)
		if data := request.KeepsDataOf; err != nil || (data != nil) != keeps || keeps && *data != wanted {
			t.Errorf("%s: the runner is to keep the data of %v: %v", reset, data, err)
		}
	}
}
