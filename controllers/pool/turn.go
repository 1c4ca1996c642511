package pool

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/controllers/write"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/zfs"
)

const (
	// workers is the number of pools that a node reconciles concurrently, so that one that waits for a disk does not block the others.
	workers = 8
	// busyRecheck is the time until a busy turn is tried again: no watch reports its end.
	busyRecheck = 5 * time.Second
	// silentRecheck is the time until a silent disk is checked again.
	silentRecheck = time.Minute
)

// inTurn takes the turn of a pool, reads the object again and works on it.
func (r *Reconciler) inTurn(ctx context.Context, pool *v1alpha1.BenchmarkPool) (reconcile.Result, error) {
	names := guard.TurnNames(r.Disks, nil, pool)
	under, turn, err := r.Turns.Take(ctx, "BenchmarkPool "+pool.Name, names...)
	if guard.Busy(err) {
		return reconcile.Result{RequeueAfter: busyRecheck}, r.sayBusy(ctx, pool, err)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	defer turn.End()
	// Read it again: actions that its status already records must not be repeated, and the turn has to cover its current claims.
	var now v1alpha1.BenchmarkPool
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(pool), &now); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return r.step(under, &now, names)
}

// sayBusy reports the wait in the status, if the status is still empty. Otherwise the observed state of the pool remains valid while it
// waits.
func (r *Reconciler) sayBusy(ctx context.Context, pool *v1alpha1.BenchmarkPool, busy error) error {
	if meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady) != nil {
		return nil
	}
	return r.writeStatus(ctx, pool, summariseFailure(pool, busy))
}

// covered reports whether the turn covers everything that the object claims, according to the node.
func (r *Reconciler) covered(pool *v1alpha1.BenchmarkPool, names []string) bool {
	return guard.Covers(names, guard.TurnNames(r.Disks, nil, pool))
}

// changesPool passes operations that have just finished and may have added disks or datasets to a pool, removed disks, or brought a disk
// back. The pool must be reconciled at once: its object has to claim new disks, because the agent searches for a pool that is not imported
// only on the disks of its object. The agent also mounts awaited datasets and clears the labels of removed disks.
func changesPool() predicate.Predicate {
	ended := func(object client.Object) bool {
		operation, isOne := object.(*v1alpha1.PoolOperation)
		return isOne && operation.Status.Outcome != "" && (operate.ChangesDisks(&operation.Spec.Action) ||
			operation.Spec.Action.OfflineDevice != nil || operate.To(&operation.Spec.Action) != "")
	}
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		UpdateFunc:  func(change event.UpdateEvent) bool { return ended(change.ObjectNew) && !ended(change.ObjectOld) },
	}
}

// poolOf returns the pool that an operation changes.
func poolOf(_ context.Context, object client.Object) []reconcile.Request {
	operation, isOne := object.(*v1alpha1.PoolOperation)
	if !isOne {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: cmp.Or(operate.ToPool(&operation.Spec.Action), operation.Spec.Pool)}}}
}

// answering checks that all disks of a pool respond, right before a command that waits for them.
func (r *Reconciler) answering(pool *v1alpha1.BenchmarkPool, live *pools.LivePool) error {
	return guard.Answering(r.Disks, r.disksOf(pool, live))
}

func (r *Reconciler) disksOf(pool *v1alpha1.BenchmarkPool, live *pools.LivePool) []string {
	if live == nil {
		return guard.PoolDisks(pool, r.Policy, nil)
	}
	return guard.PoolDisks(pool, r.Policy, &live.Status)
}

// importOptions returns the options that import the pool from its disks, or an error if one of the disks does not respond.
func (r *Reconciler) importOptions(state *observed, guid string) (zfs.ImportOptions, error) {
	devices := guard.StablePaths(append(r.disksOf(state.Pool, state.Live), state.lookedOn...))
	return zfs.ImportOptions{GUID: guid, Pool: naming.PoolName(state.Pool), Devices: devices}, guard.Answering(r.Disks, devices)
}

// release removes the finalizer of an object whose pool stays behind, because of its policy or because a user released it. It takes no
// turn, checks no disk and runs no command: it exists for cases in which one of these hangs. The mount point folders of the pool stay too.
func (r *Reconciler) release(ctx context.Context, pool *v1alpha1.BenchmarkPool) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(pool, v1alpha1.FinalizerTeardown) {
		return reconcile.Result{}, nil
	}
	state := pools.State{Pool: pool}
	unfinished, err := guard.Unfinished(ctx, r.Live, r.NodeName)
	if err != nil {
		return reconcile.Result{}, err
	}
	for i := range unfinished {
		state.Offlined = append(state.Offlined, offlined(&unfinished[i], pool)...)
	}
	decision := pools.Leave(state)
	if !released(decision) {
		status := summariseUnseen(pool, decision.Reason, decision.Message)
		return reconcile.Result{RequeueAfter: decision.Recheck}, r.writeStatus(ctx, pool, status)
	}
	return reconcile.Result{}, r.leave(ctx, pool, decision.Message)
}

// leave removes the finalizer of an object whose pool stays behind. Before that, it records on the node that the pool stays: after a
// restore of the cluster, the object may be back without the annotation or the policy by which it goes now. If the node cannot record it,
// the object goes nevertheless, because its release is the way out when a node is broken.
func (r *Reconciler) leave(ctx context.Context, pool *v1alpha1.BenchmarkPool, stays string) error {
	told := spelling.Shorten(stays, 700)
	if err := r.Releases.Record(pool.UID); err != nil {
		told += spelling.Shorten(fmt.Sprintf("; %s: %v", objects.Disown(pool), err), 250)
	}
	if err := write.Finalizer(ctx, r.Client, pool, controllerutil.RemoveFinalizer); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.forgetAttempts(ctx, pool)
	r.Recorder.Eventf(pool, nil, corev1.EventTypeWarning, v1alpha1.ReasonPoolLeftBehind, "Release", "%s", told)
	return nil
}

// offlined returns the identity of the disk of a pool that an operation may have taken offline. The result is empty if there is none.
func offlined(operation *v1alpha1.PoolOperation, pool *v1alpha1.BenchmarkPool) []string {
	if disk := operations.TakenOffline(operation); disk != "" && operation.Status.PoolUID == string(pool.UID) {
		return []string{disk}
	}
	return nil
}

// mayRelease reports whether an object on this node is to be released.
func (r *Reconciler) mayRelease(pool *v1alpha1.BenchmarkPool) bool {
	return pool.Spec.NodeName == r.NodeName && !pool.DeletionTimestamp.IsZero() && objects.LetsGo(pool)
}

// releaser registers a separate controller, because the worker of the pool may itself wait for ZFS.
func (r *Reconciler) releaser(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("pool-release").
		For(&v1alpha1.BenchmarkPool{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(object client.Object) bool {
			pool, isOne := object.(*v1alpha1.BenchmarkPool)
			return isOne && r.mayRelease(pool)
		}))).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			var pool v1alpha1.BenchmarkPool
			if err := r.Live.Get(ctx, request.NamespacedName, &pool); err != nil || !r.mayRelease(&pool) {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return r.release(ctx, &pool)
		}))
}
