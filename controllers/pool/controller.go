// Package pool reconciles the BenchmarkPools of one node: it creates, grows and destroys their zpools without touching anything that does
// not belong to them.
package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/pools"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/controllers/write"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/zfs"
)

// Reconciler reconciles the BenchmarkPools of one node.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Recorder emits events for what has been written to the status.
	Recorder events.EventRecorder
	// NodeName is the node that this agent runs on.
	NodeName string
	Policy   pools.DevicePolicy
	// Multihost is set on new pools.
	Multihost bool
	ZFS       *zfs.Client
	Disks     guard.Disks
	// Turns are taken while a pool is checked and changed. They are shared with operations on it.
	Turns *guard.Turns
	// Attempts to create or import a pool are recorded on the node.
	Attempts *guard.Attempts
	// Releases of pools are recorded on the node.
	Releases *guard.Releases
}

// Scheme contains all kinds that the agent uses.
func Scheme() (*runtime.Scheme, error) {
	known := runtime.NewScheme()
	return known, v1alpha1.AddToScheme(known)
}

// Cache restricts the agent's cache to the pools of its node.
func Cache(node string) cache.Options {
	return cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.BenchmarkPool{}: {Field: fields.OneTermEqualSelector(v1alpha1.FieldNodeName, node)},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
}

// Reconcile observes, plans, acts and summarises.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// The object is always read fresh.
	var pool v1alpha1.BenchmarkPool
	if err := r.Live.Get(ctx, request.NamespacedName, &pool); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if pool.Spec.NodeName != r.NodeName {
		return reconcile.Result{}, nil
	}
	if r.mayRelease(&pool) {
		return r.release(ctx, &pool)
	}
	return r.inTurn(ctx, &pool)
}

// step works on a pool whose turn is held.
func (r *Reconciler) step(ctx context.Context, pool *v1alpha1.BenchmarkPool, names []string) (reconcile.Result, error) {
	observed, err := r.observe(ctx, pool)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, r.writeStatus(ctx, pool, summariseFailure(pool, err)))
	}
	if !r.covered(pool, names) { // while it waited, it was changed, or a disk has appeared
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	decision := pools.Plan(observed.State)
	actErr := r.act(ctx, &observed, decision.Actions)
	if actErr == nil && released(decision) {
		return reconcile.Result{}, nil
	}
	if actErr != nil {
		decision = failed(decision, actErr)
	}
	if errors.Is(actErr, guard.ErrSilent) {
		decision = silent(pool, decision)
		actErr = nil
	}
	if live := observed.Live; live != nil && live.OwnedBy(string(pool.UID)) && !live.Look() {
		actErr = errors.Join(actErr, r.Attempts.Imported(pool.UID))
	}
	if err := r.writeStatus(ctx, observed.Pool, summarise(observed, decision)); err != nil {
		return reconcile.Result{}, errors.Join(actErr, err)
	}
	r.tellLost(observed.Pool, decision)
	return reconcile.Result{RequeueAfter: decision.Recheck}, actErr
}

// released reports whether the finalizer, and with it the object, was removed.
func released(decision pools.Decision) bool {
	return slices.ContainsFunc(decision.Actions, func(action pools.Action) bool { return action.Kind == pools.RemovePoolFinalizer })
}

// failed returns the decision after a failed action. If ZFS or the agent refuses an action, it will refuse it again until a user changes
// something. Other errors may be temporary.
func failed(decision pools.Decision, err error) pools.Decision {
	decision.Phase, decision.Reason = pools.PoolProgressing, v1alpha1.ReasonActionFailed
	for _, refusal := range []error{guard.ErrNotOurs, zfs.Invalid, zfs.Unsupported, zfs.DeviceInUse, zfs.DeviceTooSmall, zfs.OtherHost,
		zfs.Exists} {
		if errors.Is(err, refusal) {
			decision.Phase = pools.PoolStalled
		}
	}
	decision.Message = err.Error() + " (will be retried)"
	return decision
}

// silent returns the decision for a disk of the pool that has not responded, so that nothing was done.
func silent(pool *v1alpha1.BenchmarkPool, decision pools.Decision) pools.Decision {
	decision.Phase, decision.Reason, decision.Recheck = pools.PoolStalled, v1alpha1.ReasonPoolUnhealthy, silentRecheck
	if !pool.DeletionTimestamp.IsZero() {
		decision.Message += ". Bring it back, or " + objects.ReleaseCommand(pool)
	}
	return decision
}

// writeStatus writes a changed status. The update carries the observed resourceVersion: a status that has changed meanwhile is not
// overwritten, and the conflict causes another reconcile.
func (r *Reconciler) writeStatus(ctx context.Context, pool *v1alpha1.BenchmarkPool, status v1alpha1.BenchmarkPoolStatus) error {
	if kstatus.Same(pool.Status, status) {
		return nil
	}
	changed := pool.DeepCopy()
	changed.Status = status
	if err := r.Client.Status().Update(ctx, changed); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of BenchmarkPool %s: %w", pool.Name, err))
	}
	write.Announce(r.Recorder, pool, pool.Status.Conditions, status.Conditions)
	return nil
}

// SetupWithManager registers the controller and its watches. Several pools are reconciled concurrently. Pools that claim the same name or
// disk, and operations on them, take turns.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	if err := r.releaser(manager); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		Named("pool").
		For(&v1alpha1.BenchmarkPool{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&v1alpha1.BenchmarkPool{}, handler.EnqueueRequestsFromMapFunc(r.refusedRivals),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.PoolOperation{}, handler.EnqueueRequestsFromMapFunc(poolOf), builder.WithPredicates(changesPool())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// refusedRivals returns the pools that were refused, and may now get the name or the disks that another object releases.
func (r *Reconciler) refusedRivals(ctx context.Context, object client.Object) []reconcile.Request {
	var pools v1alpha1.BenchmarkPoolList
	if err := r.Client.List(ctx, &pools); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list BenchmarkPools for a watch")
		return nil
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		ready := meta.FindStatusCondition(pools.Items[i].Status.Conditions, v1alpha1.ConditionReady)
		if pools.Items[i].UID != object.GetUID() && ready != nil && slices.Contains(
			[]string{v1alpha1.ReasonPoolConflict, v1alpha1.ReasonPoolNameTaken, v1alpha1.ReasonPoolDeviceRefused}, ready.Reason) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
		}
	}
	return requests
}
