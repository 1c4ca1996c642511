package benchmark

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// placeDelay is how long a benchmark may show an outdated place in a queue, unless it is next. With the delay, a fast queue costs no more
// than one that moves once per placeDelay.
const placeDelay = 5 * time.Second

// followPlaces registers a controller of its own for the benchmarks that have only moved in their queues. A new place costs one request:
// the cache does not hold the whole spec, but the place does not depend on it.
func (r *Reconciler) followPlaces(manager ctrl.Manager) error {
	r.places = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	return ctrl.NewControllerManagedBy(manager).Named("benchmark-place").
		WatchesRawSource(source.Func(func(context.Context, queue) error { return nil })). // moved fills the queue
		WithOptions(controller.Options{
			NewQueue: func(string, workqueue.TypedRateLimiter[reconcile.Request]) queue { return r.places },
		}).
		Complete(reconcile.Func(r.writePlace))
}

// writePlace writes the place of a benchmark that waits behind others. The patch carries the resourceVersion: if the cache is outdated, the
// place is written after the next delay.
func (r *Reconciler) writePlace(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var benchmark v1alpha1.StorageBenchmark
	if err := r.Client.Get(ctx, request.NamespacedName, &benchmark); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	status, moved := r.movedStatus(&benchmark)
	if !moved || kstatus.Same(benchmark.Status, status) {
		return reconcile.Result{}, nil
	}
	changed := benchmark.DeepCopy()
	changed.Status = status
	err := r.Client.Status().Patch(ctx, changed, client.MergeFromWithOptions(&benchmark, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: placeDelay}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the place of benchmark %s in its queue: %w", request, err)
	}
	return reconcile.Result{}, nil
}

// movedStatus returns the status with the current place in the queues.
func (r *Reconciler) movedStatus(benchmark *v1alpha1.StorageBenchmark) (status v1alpha1.StorageBenchmarkStatus, moved bool) {
	ahead := r.Line.Ahead(string(benchmark.UID), experiment.StatusNodes(benchmark.Status))
	decision, moved := experiment.Moved(benchmark, ahead, r.Limits)
	if !moved {
		return status, false
	}
	status = *benchmark.Status.DeepCopy()
	status.State = stateWord(decision)
	status.Queue.Position, status.Queue.Holder = position(decision), ""
	progressConditions(benchmark.Generation, decision, &status)
	return status, true
}
