package benchmark

import (
	"context"
	"fmt"
	"strconv"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/write"
)

// act carries out the decision.
func (r *Reconciler) act(ctx context.Context, observed *observation, decision experiment.Decision) error {
	benchmark := observed.Benchmark
	for _, action := range decision.Actions {
		var err error
		switch action.Kind {
		case experiment.Rehearse:
			err = r.rehearse(ctx, observed, action.Rehearsal)
		case experiment.AddFinalizer:
			err = write.Finalizer(ctx, r.Client, benchmark, controllerutil.AddFinalizer)
		case experiment.RemoveBenchmarkFinalizer:
			err = client.IgnoreNotFound(write.Finalizer(ctx, r.Client, benchmark, controllerutil.RemoveFinalizer))
		case experiment.TakeLease:
			err = r.takeLease(ctx, observed, action.Node)
		case experiment.BreakLease:
			err = r.breakLease(ctx, observed, action.Node)
		case experiment.ReleaseLease:
			err = r.releaseLease(ctx, observed, action.Node)
		case experiment.CreateRun:
			err = r.createRun(ctx, observed, experiment.NewRun(observed.State, action, decision.NodeNames, decision.DefaultClass))
		case experiment.DeleteRun:
			err = r.deleteRun(ctx, observed, action.Run)
		case experiment.DeletePool:
			err = r.deletePool(ctx, benchmark, action.Pool, action.RunUID)
		case experiment.WriteResults:
			err = r.writeResults(ctx, observed, decision, action)
		case experiment.WriteHistory:
			err = r.writeHistory(ctx, observed)
		case experiment.DeleteResults:
			err = r.deleteResults(ctx, benchmark, action.ConfigMap)
		case experiment.DeleteBenchmark:
			err = client.IgnoreNotFound(r.Client.Delete(ctx, benchmark,
				client.Preconditions{UID: &benchmark.UID, ResourceVersion: &benchmark.ResourceVersion}))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", action.Kind, err)
		}
	}
	return nil
}

// takeLease takes a node by creating its Lease. If two benchmarks try, the API server lets only one of them succeed, and that reconcile
// continues with the node.
func (r *Reconciler) takeLease(ctx context.Context, observed *observation, node string) error {
	benchmark := observed.Benchmark
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.LeaseName(node), Namespace: r.LeaseNamespace,
			Labels: map[string]string{v1alpha1.LabelNodeLease: "true"},
			Annotations: map[string]string{
				v1alpha1.AnnotationNode:    node,
				v1alpha1.AnnotationHolder:  benchmark.Namespace + "/" + benchmark.Name,
				v1alpha1.AnnotationHeldFor: observed.Experiment,
				v1alpha1.AnnotationTurn:    strconv.FormatInt(turnOf(benchmark), 10),
			},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(string(benchmark.UID)),
			AcquireTime:    &metav1.MicroTime{Time: r.Clock.Now()},
		},
	}
	if err := r.Client.Create(ctx, lease); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	observed.Leases, observed.changed = append(observed.Leases, *LeaseState(lease)), true
	return nil
}

func turnOf(benchmark *v1alpha1.StorageBenchmark) int64 {
	if queue := benchmark.Status.Queue; queue != nil {
		return queue.Turn
	}
	return 0
}

// releaseLease releases a node after a final check that none of our runs is still running on it.
func (r *Reconciler) releaseLease(ctx context.Context, observed *observation, node string) error {
	benchmark := observed.Benchmark
	own, err := r.liveRuns(ctx, benchmark.Namespace, string(benchmark.UID))
	if err != nil {
		return fmt.Errorf("confirm that no run is running on node %s: %w", node, err)
	}
	for i := range own {
		if own[i].Spec.NodeName == node && !runs.Resting(&own[i]) {
			return nil // the cache will show it, and the planner will decide again
		}
	}
	if keeps, err := r.keepsPools(ctx, observed, node, own); err != nil || keeps {
		return err
	}
	return r.deleteLease(ctx, node, string(benchmark.UID))
}

// breakLease releases a node whose holder is confirmed to be gone.
func (r *Reconciler) breakLease(ctx context.Context, observed *observation, node string) error {
	for _, lease := range observed.Leases {
		if lease.Node == node && lease.Abandoned {
			return r.deleteLease(ctx, node, lease.Holder)
		}
	}
	return nil
}

// deleteLease deletes the Lease of a node if the given holder still has it. The deletion is conditional on the version that was checked. If
// the cached version is outdated, the Lease is read live and checked again.
func (r *Reconciler) deleteLease(ctx context.Context, node, holder string) (err error) {
	key := types.NamespacedName{Namespace: r.LeaseNamespace, Name: naming.LeaseName(node)}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		var lease coordinationv1.Lease
		if err = reader.Get(ctx, key, &lease); apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if ptr.Deref(lease.Spec.HolderIdentity, "") != holder {
			continue
		}
		err = r.Client.Delete(ctx, &lease, client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion})
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return client.IgnoreNotFound(err)
}

// createRun creates a run. If the run already exists and belongs to this benchmark, that is a success: the cache will show it. If the
// previous reconcile has just created it, this one does nothing, and a later one looks again.
func (r *Reconciler) createRun(ctx context.Context, observed *observation, run *v1alpha1.BenchmarkRun) error {
	benchmark, created := observed.Benchmark, "created "+run.Name
	if r.memory.Noted(benchmark, created) {
		r.memory.Note(benchmark, created, false)
		observed.again = true
		return nil
	}
	err := r.Client.Create(ctx, run)
	if err == nil {
		r.Runs.Keep(run)
		r.memory.Note(benchmark, created, true)
		return nil
	}
	if refuses(err) {
		observed.SpecError, observed.changed = experiment.RefusedRun(run, err), true
		r.rehearsed.refuse(benchmark, run, observed.SpecError)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var existing v1alpha1.BenchmarkRun
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(run), &existing); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !naming.IsControlledBy(&existing, benchmark) {
		return fmt.Errorf("BenchmarkRun %s exists and does not belong to this benchmark: delete it, so that the run can be created", run.Name)
	}
	return nil
}

func (r *Reconciler) deleteRun(ctx context.Context, observed *observation, name string) error {
	for i := range observed.Runs {
		if run := &observed.Runs[i]; run.Name == name {
			return client.IgnoreNotFound(r.Client.Delete(ctx, run, client.Preconditions{UID: &run.UID}))
		}
	}
	return nil
}

func (r *Reconciler) deleteResults(ctx context.Context, benchmark *v1alpha1.StorageBenchmark, name string) error {
	var stored corev1.ConfigMap
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: benchmark.Namespace, Name: name}, &stored); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !naming.IsControlledBy(&stored, benchmark) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, &stored, client.Preconditions{UID: &stored.UID}))
}
