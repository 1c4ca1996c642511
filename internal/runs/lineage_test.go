package runs

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestPoolAge: the age of a pool counts each run that takes it over, and each experiment once.
func TestPoolAge(t *testing.T) {
	created := metav1.NewTime(time.Unix(1_800_000_000, 0))
	pool := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created, Labels: map[string]string{
		v1alpha1.LabelLineage: "l", v1alpha1.LabelExperiment: "night-1", v1alpha1.LabelRun: "r0", v1alpha1.LabelRunUID: "u0"}}}
	age, known := PoolAgeOf(pool)
	if want := (v1alpha1.PoolAge{Since: created, Experiments: 1, Runs: 1}); !known || *age != want {
		t.Errorf("a new pool: %+v", age)
	}
	for _, step := range []struct {
		experiment, run   string
		experiments, runs int32
	}{{"night-1", "r1", 1, 2}, {"night-2", "r2", 2, 3}, {"night-2", "r3", 2, 4}, {"night-3", "r4", 3, 5}} {
		before := pool.Labels[v1alpha1.LabelRun]
		run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: step.run, UID: "u"}, Spec: v1alpha1.BenchmarkRunSpec{Experiment: step.experiment}}
		pool = Taken(pool, run)
		age, known = PoolAgeOf(pool)
		if want := (v1alpha1.PoolAge{Since: created, Experiments: step.experiments, Runs: step.runs}); !known || *age != want {
			t.Errorf("%s: %+v, want %+v", step.run, age, want)
		}
		if pool.Annotations[v1alpha1.AnnotationKeptFrom] != before || pool.Labels[v1alpha1.LabelExperiment] != step.experiment ||
			pool.Labels[v1alpha1.LabelRun] != step.run {
			t.Errorf("%s: %v %v", step.run, pool.Labels, pool.Annotations)
		}
	}
	for _, text := range []string{"", "3", "3/", "0/1", "3/-1", "3/5/7", "1e3/5", "3/99999999999", "3/2000000"} {
		pool.Annotations[v1alpha1.AnnotationPoolAge] = text
		if age, known := PoolAgeOf(pool); known {
			t.Errorf("%q is read as %+v", text, age)
		}
	}
	delete(pool.Labels, v1alpha1.LabelLineage)
	if age, known := PoolAgeOf(pool); age != nil || !known {
		t.Errorf("a pool of one experiment: %+v", age)
	}
}

// TestKeptForLineage: a run takes a pool over from another experiment only within its lineage.
func TestKeptForLineage(t *testing.T) {
	for name, test := range map[string]struct {
		change func(pool, run map[string]string)
		want   bool
	}{
		"the next experiment": {func(_, _ map[string]string) {}, true},
		"another lineage":     {func(p, _ map[string]string) { p[v1alpha1.LabelLineage] = "x" }, false},
		"the run has none": {func(p, r map[string]string) {
			delete(r, v1alpha1.LabelLineage)
			p[v1alpha1.LabelExperiment] = r[v1alpha1.LabelExperiment]
		}, false},
		"the pool has none": {func(p, r map[string]string) {
			delete(p, v1alpha1.LabelLineage)
			p[v1alpha1.LabelExperiment] = r[v1alpha1.LabelExperiment]
		}, false},
		"another benchmark": {func(p, _ map[string]string) { p[v1alpha1.LabelBenchmarkUID] = "x" }, false},
	} {
		run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Labels: map[string]string{v1alpha1.LabelBenchmarkUID: "b",
			v1alpha1.LabelExperiment: "night-2", v1alpha1.LabelLineage: "l"}},
			Spec: v1alpha1.BenchmarkRunSpec{NodeName: "n1", Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetNone}}}}
		pool := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Generation: 1, Labels: map[string]string{v1alpha1.LabelBenchmarkUID: "b",
			v1alpha1.LabelExperiment: "night-1", v1alpha1.LabelLineage: "l", v1alpha1.LabelNamespace: "lab", v1alpha1.LabelReset: "None"}},
			Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "n1"}}
		test.change(pool.Labels, run.Labels)
		if got := KeptFor(pool, run); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		pool.Annotations = map[string]string{v1alpha1.AnnotationPoolAge: "many"}
		if test.want && KeptFor(pool, run) {
			t.Errorf("%s: its age was edited, and it is taken over", name)
		}
	}
}
