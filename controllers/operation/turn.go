package operation

import (
	"context"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/operations"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

const (
	// workers is the number of operations that a node reconciles concurrently, so that one that waits for a disk does not block the others.
	workers = 8
	// busyRecheck is the time until a busy turn is tried again: no watch reports its end.
	busyRecheck = 5 * time.Second
	// parametersTurn is a common name in the turns of all operations that set a module parameter, because a parameter affects all pools.
	parametersTurn = "module parameters"
)

// inTurn takes the turns of everything that an operation uses, reads the object again and works on it.
func (r *Reconciler) inTurn(ctx context.Context, operation *v1alpha1.PoolOperation) (reconcile.Result, error) {
	names, err := r.turnNames(ctx, operation)
	if err != nil {
		return reconcile.Result{}, err
	}
	under, turn, err := r.Turns.Take(ctx, "PoolOperation "+operation.Name, names...)
	if guard.Busy(err) {
		return reconcile.Result{RequeueAfter: busyRecheck}, r.sayBusy(ctx, operation, err)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	defer turn.End()
	// Read it again: actions that its status already records must not be repeated.
	var now v1alpha1.PoolOperation
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(operation), &now); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// If a pool was changed while the operation waited, it may claim other disks.
	needed, err := r.turnNames(ctx, &now)
	if err != nil {
		return reconcile.Result{}, err
	}
	if now.UID != operation.UID || !guard.Covers(names, needed) {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return r.step(under, &now)
}

// turnNames returns the names that the turn of an operation has to cover: its pools, whether they exist or not, all disks that these pools
// claim, and all disks that the operation names.
func (r *Reconciler) turnNames(ctx context.Context, operation *v1alpha1.PoolOperation) ([]string, error) {
	action := operation.Spec.Action
	named := []string{operation.Spec.Pool}
	if to := operate.ToPool(&action); to != "" {
		named = append(named, to)
	}
	var names []string
	var pools []*v1alpha1.BenchmarkPool
	for _, name := range named {
		pool, err := r.benchmarkPool(ctx, name)
		if err != nil {
			return nil, err
		}
		names = append(names, "BenchmarkPool "+name)
		if pool != nil && pool.Spec.NodeName == r.NodeName {
			pools = append(pools, pool)
		}
	}
	if action.ModuleParameter != nil {
		names = append(names, parametersTurn)
	}
	names = append(names, guard.TurnNames(r.Disks, operations.OperationDevices(action), pools...)...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// sayBusy reports the wait in the status, if the status is still empty.
func (r *Reconciler) sayBusy(ctx context.Context, operation *v1alpha1.PoolOperation, busy error) error {
	if len(operation.Status.Conditions) > 0 {
		return nil
	}
	_, err := r.writeStatus(ctx, operation, summariseFailure(operations.State{Operation: operation}, busy))
	return err
}

// answering checks that all disks of the pool respond, right before a command that blocks all other pools while it waits for them.
func (r *Reconciler) answering(state operations.State) error {
	return retryable(guard.Answering(r.Disks, guard.PoolDisks(state.Pool, r.Policy, &state.Live.Status)))
}

// importOptions returns the options that import the pool from its disks.
func (r *Reconciler) importOptions(state operations.State) zfs.ImportOptions {
	devices := guard.PoolDisks(state.Pool, r.Policy, &state.Live.Status)
	return zfs.ImportOptions{GUID: state.Live.GUID, Pool: state.Live.Name, Devices: devices}
}

// releaser registers a separate controller, because the worker of the operation may itself wait for ZFS.
func (r *Reconciler) releaser(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("operation-release").
		For(&v1alpha1.PoolOperation{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(object client.Object) bool {
			operation, isOne := object.(*v1alpha1.PoolOperation)
			return isOne && objects.OperationReleased(operation)
		}))).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			var operation v1alpha1.PoolOperation
			if err := r.Live.Get(ctx, request.NamespacedName, &operation); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if operation.Spec.NodeName != r.NodeName || !objects.OperationReleased(&operation) {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{}, r.letGo(ctx, &operation)
		}))
}
