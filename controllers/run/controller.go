// Package run reconciles BenchmarkRuns: one volume, one Job per phase, one verified result per phase, and teardown.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	batchv1 "k8s.io/api/batch/v1"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/fresh"
	"github.com/storagebench/storagebench/internal/documents"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// LogReader reads the log of a container.
type LogReader interface {
	ReadLog(ctx context.Context, namespace, pod, container string) (io.ReadCloser, error)
}

// Reconciler reconciles BenchmarkRuns.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	Logs LogReader
	// Recorder emits events for what has been written to the status.
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// LeaseNamespace holds the Leases of the nodes.
	LeaseNamespace string
	Timings        runs.Timings
	// Memory saves live reads of runs that this process wrote last. If it is nil, all of them are read.
	Memory *fresh.Memory[*v1alpha1.BenchmarkRun]
	// Stored remembers the results that this controller stores. If it is nil, they are not remembered.
	Stored *fresh.Stored
	// WithoutAgent is true if no agent is installed: the manager has no permissions for pools, and requests nothing that needs them.
	WithoutAgent bool
	// WithoutClusterReads is true if the manager may not read nodes.
	WithoutClusterReads bool
}

// Reconcile observes, plans, acts and summarises.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
	// A run at rest needs no further reconciles, even if other objects change.
	var cached v1alpha1.BenchmarkRun
	if err := r.Client.Get(ctx, request.NamespacedName, &cached, client.UnsafeDisableDeepCopy); err == nil && atRest(&cached) {
		r.Memory.Forget(request.NamespacedName)
		return reconcile.Result{}, r.deleteAbandoned(ctx, &cached)
	}
	// The run itself is read fresh: its status records the actions that must not be repeated.
	read, err := r.Memory.Get(ctx, r.Client, r.Live, request.NamespacedName, &v1alpha1.BenchmarkRun{})
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.Memory.Keep(read)
	run := *read.DeepCopy()
	if r.WithoutAgent && run.Spec.Target.ZFS != nil {
		return reconcile.Result{}, r.writeStatus(ctx, &run, runs.SummariseWithoutAgent(&run))
	}
	var turn documents.Turn
	defer turn.End()
	state, err := r.observe(ctx, &run, &turn)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, r.writeStatus(ctx, &run, runs.SummariseFailure(&run, err)))
	}
	decision := runs.Plan(state)
	actErr := r.act(ctx, &state, decision.Actions)
	taken, isTaken := errors.AsType[*takenError](actErr)
	refused, isRefused := errors.AsType[*refusedError](actErr)
	if isTaken || isRefused { // returning the error would retry forever, but the planner has a time limit
		if actErr = nil; isTaken {
			state.Taken = taken.object
		} else {
			state.Refused = refused.Error()
		}
		decision = runs.Plan(state)
		decision.Actions = nil
	}
	if actErr == nil && gone(decision) {
		return reconcile.Result{}, nil
	}
	if actErr != nil && !apierrors.IsConflict(actErr) && decision.Ending == nil {
		decision.Reason, decision.Message = v1alpha1.ReasonActionFailed, actErr.Error()+" (will be retried)"
	}
	status := runs.Summarise(state, decision)
	if err := r.writeStatus(ctx, &run, status); err != nil {
		return reconcile.Result{}, errors.Join(actErr, err)
	}
	if actErr != nil {
		return reconcile.Result{}, actErr
	}
	if !decision.WakeAt.IsZero() {
		result.RequeueAfter = max(decision.WakeAt.Sub(r.Clock.Now()), 10*time.Millisecond)
	}
	return result, nil
}

// atRest reports whether a run has ended, is torn down and is not being deleted: nothing changes it any more.
func atRest(run *v1alpha1.BenchmarkRun) bool {
	return run.DeletionTimestamp.IsZero() && runs.Settled(run) && run.Status.ObservedGeneration == run.Generation
}

// gone reports whether the last finalizer, and with it the object, was removed.
func gone(decision runs.Decision) bool {
	return slices.ContainsFunc(decision.Actions, func(action runs.Action) bool { return action.Kind == runs.RemoveRunFinalizer })
}

// writeStatus writes a changed status. The update carries the observed resourceVersion: a status that has changed meanwhile is not
// overwritten, and the conflict causes another reconcile. If the API server refuses the status as invalid, a minimal status is written.
// That is not an error: a failed reconcile would be retried with increasing delays, and not at the deadline of the run.
func (r *Reconciler) writeStatus(ctx context.Context, run *v1alpha1.BenchmarkRun, status v1alpha1.BenchmarkRunStatus) error {
	if kstatus.Same(run.Status, status) {
		return nil
	}
	before := run.Status
	changed := run.DeepCopy()
	changed.Status = status
	err := r.Client.Status().Update(ctx, changed)
	if apierrors.IsInvalid(err) {
		ctrl.LoggerFrom(ctx).Error(err, "the API server refuses the status of a run as invalid")
		if status = runs.MinimalStatus(r.Clock.Now(), run, status); kstatus.Same(before, status) {
			return nil
		}
		changed.Status = status
		err = r.Client.Status().Update(ctx, changed)
	}
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of run %s/%s: %w", run.Namespace, run.Name, err))
	}
	r.Memory.Keep(changed)
	r.announce(run, before, status)
	return nil
}

// SetupWithManager registers the controller and its watches, limited to what the manager has permissions for.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager, options controller.Options) error {
	if err := indexRuns(context.Background(), manager.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index runs by their node: %w", err)
	}
	if err := indexEvents(context.Background(), manager.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index events by their object: %w", err)
	}
	registered := ctrl.NewControllerManagedBy(manager).
		Named("run").
		For(&v1alpha1.BenchmarkRun{}).
		Watches(&v1alpha1.BenchmarkRun{}, handler.EnqueueRequestsFromMapFunc(peersOf)).
		Owns(&batchv1.Job{}).
		Owns(&corev1.PersistentVolumeClaim{}).
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(runOfLabel)).
		Watches(&corev1.Event{}, handler.EnqueueRequestsFromMapFunc(r.runOfEvent)).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(r.runsOfLease))
	if !r.WithoutAgent {
		for _, kind := range []client.Object{&corev1.PersistentVolume{}, &storagev1.StorageClass{}, &v1alpha1.BenchmarkPool{},
			&v1alpha1.PoolOperation{}} {
			registered = registered.Watches(kind, handler.EnqueueRequestsFromMapFunc(runOfClusterWide))
		}
	}
	if !r.WithoutClusterReads {
		registered = registered.Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.runsOn), builder.WithPredicates(bootChanged()))
	}
	return registered.WithOptions(options).Complete(r)
}

func runOfLabel(_ context.Context, object client.Object) []reconcile.Request {
	if name := object.GetLabels()[v1alpha1.LabelRun]; name != "" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
	}
	return nil
}

// runOfEvent returns the run of a Warning about a claim or Job.
func (r *Reconciler) runOfEvent(ctx context.Context, object client.Object) []reconcile.Request {
	event, ok := object.(*corev1.Event)
	if !ok {
		return nil
	}
	var involved client.Object
	switch event.InvolvedObject.Kind {
	case "PersistentVolumeClaim":
		involved = &corev1.PersistentVolumeClaim{}
	case "Job":
		involved = &batchv1.Job{}
	default:
		return nil
	}
	key := types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}
	if err := r.Client.Get(ctx, key, involved); err != nil {
		return nil // not ours: the cache holds only objects with our label
	}
	return runOfLabel(ctx, involved)
}

// byNode is the index of the runs that are not settled, by their node's Lease.
const byNode = "lease"

// indexRuns indexes the runs that are at work, or may be, by the Lease of their node.
func indexRuns(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &v1alpha1.BenchmarkRun{}, byNode, func(object client.Object) []string {
		run, is := object.(*v1alpha1.BenchmarkRun)
		if !is || runs.Settled(run) {
			return nil
		}
		return []string{naming.LeaseName(run.Spec.NodeName)}
	})
}

// runsOfLease returns the unsettled runs on the node of a Lease.
func (r *Reconciler) runsOfLease(ctx context.Context, object client.Object) []reconcile.Request {
	return r.unsettled(ctx, object.GetName())
}

// unsettled returns the unsettled runs on the node with the given Lease.
func (r *Reconciler) unsettled(ctx context.Context, lease string) []reconcile.Request {
	var list v1alpha1.BenchmarkRunList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byNode: lease}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the runs on a node for a watch")
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests
}
