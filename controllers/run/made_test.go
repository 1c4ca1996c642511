package run

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/volume"
)

// makingRun fills data, clones it as fresh and measures that.
func makingRun() *v1alpha1.BenchmarkRun {
	run := drivenRun()
	run.Spec.Target.ZFS.Dataset.Provisioner = volume.ProvisionerLocal
	run.Spec.Phases = []v1alpha1.Phase{{Name: "fill", Fill: &v1alpha1.FillPhase{}},
		{Name: "clone", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
			Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: "s", As: "fresh"}}}},
		{Name: "read", Volume: "fresh", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}}}}
	run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", ExecutorUID: "job"}, {Name: "clone", ExecutorUID: "operation"}}
	return run
}

// looked returns the state that a turn observes after some phases are done.
func looked(t *testing.T, r *Reconciler, run *v1alpha1.BenchmarkRun, done int) *runs.State {
	t.Helper()
	state := &runs.State{Run: run, Phases: make([]runs.PhaseState, len(run.Spec.Phases))}
	for i := range done {
		state.Phases[i].Stored = &runs.StoredResult{Outcome: results.OutcomeValid}
	}
	if err := r.observeStorage(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	return state
}

// TestClaimsOfMadeVolumes: the claim of a volume that an operation makes is created once the dataset is mounted, wherever the manager dies.
// It counts as lost only after a phase has worked on it. In the end, everything is deleted.
func TestClaimsOfMadeVolumes(t *testing.T) {
	for dies := range 3 { // before the PersistentVolume, before the claim, not at all
		run := makingRun()
		pool := volume.Pool(run, volume.RunVolumes(run)[0], runs.ClusterLabels(run))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: run.Spec.NodeName, Labels: map[string]string{corev1.LabelHostname: "h"}}}
		r := drivenReconciler(t, true, pool, node)
		if err := r.createVolumes(t.Context(), looked(t, r, run, 1)); err != nil {
			t.Fatal(err)
		}
		if state := looked(t, r, run, 1); !state.Claims.Exists || len(state.Unclaimed) > 0 {
			t.Errorf("before it is made: %+v, unclaimed %v", state.Claims, state.Unclaimed)
		}
		state := looked(t, r, run, 2)
		if !state.Claims.Exists || !slices.Equal(state.Unclaimed, []string{"fresh"}) {
			t.Errorf("when it is made: %+v, unclaimed %v", state.Claims, state.Unclaimed)
		}
		fresh := client.ObjectKey{Namespace: run.Namespace, Name: naming.ClaimName(run, "fresh")}
		if err := r.createVolumes(t.Context(), state); err != nil || r.Live.Get(t.Context(), fresh, &corev1.PersistentVolumeClaim{}) == nil {
			t.Errorf("a claim is created before its dataset is mounted: %v", err)
		}
		pool.Status.Properties = []v1alpha1.EffectiveProperty{{Dataset: pool.Name + "/fresh", Name: naming.PropertyOperation, Value: "uid"}}
		if err := r.Client.Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		dying, left := *r, dies
		dying.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch,
			object client.Object, options ...client.CreateOption) error {
			if _, isFresh := object.(*corev1.PersistentVolume); left == 0 && (isFresh && object.GetName() == naming.RunPoolName(run, "fresh") ||
				object.GetName() == fresh.Name) {
				return errors.New("the manager dies")
			}
			if object.GetName() == naming.RunPoolName(run, "fresh") {
				left--
			}
			return c.Create(ctx, object, options...)
		}})
		if err := dying.createVolumes(t.Context(), looked(t, r, run, 2)); (err != nil) != (dies < 2) {
			t.Fatalf("dies at %d: %v", dies, err)
		}
		if state = looked(t, r, run, 2); !state.Claims.Exists || len(state.Unclaimed) > 0 != (dies < 2) {
			t.Errorf("dies at %d: %+v, unclaimed %v", dies, state.Claims, state.Unclaimed)
		}
		if err := r.createVolumes(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		if state = looked(t, r, run, 2); !state.Claims.Exists || len(state.Unclaimed) > 0 {
			t.Errorf("created: %+v, unclaimed %v", state.Claims, state.Unclaimed)
		}
		var claim corev1.PersistentVolumeClaim
		if err := r.Live.Get(t.Context(), fresh, &claim); err != nil || claim.Spec.VolumeName != naming.RunPoolName(run, "fresh") {
			t.Errorf("claim %+v: %v", claim.Spec, err)
		}
		if err := r.Client.Delete(t.Context(), &claim); err != nil {
			t.Fatal(err)
		}
		run.Status.Phases = append(run.Status.Phases, v1alpha1.RunPhaseStatus{Name: "read", ExecutorUID: "job"})
		if state = looked(t, r, run, 2); state.Claims.Exists || len(state.Unclaimed) > 0 {
			t.Errorf("lost: %+v, unclaimed %v", state.Claims, state.Unclaimed)
		}
		now := metav1.Now()
		run.DeletionTimestamp = &now
		for range 3 {
			if err := r.deleteVolumes(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		}
		if state = looked(t, r, run, 0); state.Claims.Left() {
			t.Errorf("left: %+v", state.Claims)
		}
		var volumes corev1.PersistentVolumeList
		if err := r.Live.List(t.Context(), &volumes); err != nil || len(volumes.Items) > 0 {
			t.Errorf("left: %d PersistentVolumes, %v", len(volumes.Items), err)
		}
	}
}

// reads counts the objects that are read.
type reads struct {
	client.Reader
	count int
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	r.count++
	return r.Reader.Get(ctx, key, object, options...)
}

// TestRequestsForMadeVolumes: only what is missing is created, and the API server is asked for a claim only when it is to be created.
func TestRequestsForMadeVolumes(t *testing.T) {
	run := makingRun()
	old := run.Spec.Phases[2]
	old.Name, old.Volume = "old", "data"
	run.Spec.Phases = slices.Insert(run.Spec.Phases, 2, old)
	pool := volume.Pool(run, volume.RunVolumes(run)[0], runs.ClusterLabels(run))
	pool.Status.Properties = []v1alpha1.EffectiveProperty{{Dataset: pool.Name + "/fresh", Name: naming.PropertyOperation, Value: "uid"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: run.Spec.NodeName, Labels: map[string]string{corev1.LabelHostname: "h"}}}
	r := drivenReconciler(t, true, pool, node)
	live := &reads{Reader: r.Live}
	r.Live = live
	var created []string
	r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch,
		object client.Object, options ...client.CreateOption) error {
		created = append(created, object.GetName())
		return c.Create(ctx, object, options...)
	}})
	for _, step := range []struct {
		done, reads int
		want        []string
	}{
		{0, 2, []string{naming.RunPoolName(run, "data"), naming.ClaimName(run, "data")}},
		{1, 0, nil},
		{2, 0, nil}, // it is made, and the next phase works on data
		{3, 2, []string{naming.RunPoolName(run, "fresh"), naming.ClaimName(run, "fresh")}},
		{3, 0, nil},
	} {
		created, live.count = nil, 0
		state := looked(t, r, run, step.done)
		if err := r.createVolumes(t.Context(), state); err != nil || !slices.Equal(created, step.want) || live.count != step.reads {
			t.Errorf("after %d phases: created %v, want %v, with %d reads, want %d: %v", step.done, created, step.want, live.count, step.reads, err)
		}
	}
}
