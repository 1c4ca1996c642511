// Package operation carries out the PoolOperations of one node: each is one action on a pool with one outcome, across restarts of
// the agent.
package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/agent/pools"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/controllers/trim"
	"github.com/storagebench/storagebench/controllers/write"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/zfs"
)

// progressInterval is the shortest time between writes of progress.
const progressInterval = 10 * time.Second

// Reconciler reconciles the PoolOperations of one node.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Recorder emits events for what has been written to the status.
	Recorder events.EventRecorder
	// NodeName is the node that this agent runs on.
	NodeName string
	// Agent identifies this agent process.
	Agent  string
	Policy pools.DevicePolicy
	// Parameters that operations may set.
	Parameters operations.ParameterAllowlist
	ZFS        *zfs.Client
	Disks      guard.Disks
	// Root is the path of the node's file system.
	Root string
	// Turns are taken while a pool is checked and changed. They are shared with the pool controller.
	Turns *guard.Turns
	// Attempts to import a pool are recorded on the node.
	Attempts *guard.Attempts
	Clock    clock.WithTicker

	jobs jobs
	// written has the time.Time of the last written status, by client.ObjectKey.
	written sync.Map
	// begun has the UIDs of the operations that this process began, by client.ObjectKey.
	begun sync.Map
	// parameters is held while a module parameter and its record are changed.
	parameters sync.Mutex
}

// Cached restricts the agent's cache to the operations of its node, without their result documents.
func Cached(node string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector(v1alpha1.FieldNodeName, node), Transform: trim.Operation}
}

// Reconcile observes, plans, acts and summarises.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// The object is always read fresh.
	var operation v1alpha1.PoolOperation
	if err := r.Live.Get(ctx, request.NamespacedName, &operation); err != nil {
		if err = client.IgnoreNotFound(err); err == nil {
			r.jobs.only(request.Name, "")
			r.forget(request.NamespacedName)
			err = r.restoreGone(ctx, request.Name, "")
		}
		return reconcile.Result{}, err
	}
	r.jobs.only(operation.Name, operation.UID)
	if err := r.restoreGone(ctx, operation.Name, operation.UID); err != nil {
		return reconcile.Result{}, err
	}
	if operation.Spec.NodeName != r.NodeName {
		return reconcile.Result{}, nil
	}
	if objects.OperationReleased(&operation) {
		return reconcile.Result{}, r.letGo(ctx, &operation)
	}
	if outlived(&operation) {
		_, err := r.writeStatus(ctx, &operation, seen(&operation))
		r.written.Delete(request.NamespacedName)
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, err // there may be a finalizer to remove
	}
	if known := (operations.State{Operation: &operation, Now: r.Clock.Now()}); known.NeverBegins() {
		return r.step(ctx, &operation)
	}
	return r.inTurn(ctx, &operation)
}

// step works on an operation whose turn is held.
func (r *Reconciler) step(ctx context.Context, operation *v1alpha1.PoolOperation) (reconcile.Result, error) {
	state, err := r.observe(ctx, operation)
	if err != nil {
		_, writeErr := r.writeStatus(ctx, operation, summariseFailure(state, err))
		return reconcile.Result{}, errors.Join(err, writeErr)
	}
	decision := operations.Plan(state)
	if decision.Begin {
		// A cache does not prove that no other operation changes the pool.
		if state.Others, err = guard.Unfinished(ctx, r.Live, r.NodeName); err != nil {
			return reconcile.Result{}, err
		}
		decision = operations.Plan(state)
	}
	actErr := r.act(ctx, &state, decision.Actions)
	if decision.Settled {
		if actErr == nil {
			r.drop(operation)
		}
		return reconcile.Result{}, actErr
	}
	if actErr != nil {
		decision = failed(decision, actErr)
	}
	later, err := r.writeStatus(ctx, state.Operation, summarise(state, decision))
	if err != nil {
		return reconcile.Result{}, errors.Join(actErr, err)
	}
	if decision.Begin {
		r.begun.Store(client.ObjectKeyFromObject(operation), operation.UID)
	}
	if decision.Outcome != "" {
		// The outcome is set: an error would only cause a retry that does nothing.
		r.drop(operation)
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	}
	if later > 0 && (decision.Recheck == 0 || later < decision.Recheck) {
		decision.Recheck = later
	}
	return reconcile.Result{RequeueAfter: decision.Recheck}, actErr
}

// drop drops the job of an operation, and all that this process knows about it.
func (r *Reconciler) drop(operation *v1alpha1.PoolOperation) {
	r.jobs.drop(operation.UID)
	r.forget(client.ObjectKeyFromObject(operation))
}

// forget drops what this process knows about an operation.
func (r *Reconciler) forget(operation client.ObjectKey) {
	r.begun.Delete(operation)
	r.written.Delete(operation)
}

// runError is an error of the action itself. Other errors may be temporary.
type runError struct{ error }

// Unwrap returns the wrapped error.
func (e runError) Unwrap() error { return e.error }

// failed returns the decision after a failed action. A refusal of the action by ZFS or the agent is final and becomes the outcome. Other
// errors may be temporary.
func failed(decision operations.Decision, err error) operations.Decision {
	after := operations.Decision{Reason: v1alpha1.ReasonActionFailed, Message: err.Error() + " (will be retried)",
		Progress: decision.Progress}
	if _, run := errors.AsType[runError](err); run && operations.Permanent(err) {
		after.Outcome, after.Message = v1alpha1.OutcomeFailed, err.Error()
	}
	return after
}

// writeStatus writes a changed status. A status that differs only in progress is written at most once per progressInterval. If it is too
// early, writeStatus returns the time until the next write. The update carries the observed resourceVersion: a status that has changed
// meanwhile is not overwritten, and the conflict causes another reconcile.
func (r *Reconciler) writeStatus(ctx context.Context, operation *v1alpha1.PoolOperation,
	status v1alpha1.PoolOperationStatus) (time.Duration, error) {
	if kstatus.Same(operation.Status, status) {
		return 0, nil
	}
	key, now := client.ObjectKeyFromObject(operation), r.Clock.Now()
	written, _ := r.written.Load(key)
	last, _ := written.(time.Time)
	if wait := last.Add(progressInterval).Sub(now); wait > 0 && onlyProgress(operation.Status, status) {
		return wait, nil
	}
	changed := operation.DeepCopy()
	changed.Status = status
	if err := r.Client.Status().Update(ctx, changed); err != nil {
		return 0, client.IgnoreNotFound(fmt.Errorf("write the status of PoolOperation %s: %w", operation.Name, err))
	}
	r.written.Store(key, now)
	write.Announce(r.Recorder, operation, operation.Status.Conditions, status.Conditions)
	return 0, nil
}

// onlyProgress reports whether two statuses differ only in progress and its message.
func onlyProgress(before, after v1alpha1.PoolOperationStatus) bool {
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady),
		meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	begins := before.Progress == nil && after.Progress != nil // phases wait for it
	return !begins && was != nil && is != nil && was.Reason == is.Reason && before.Outcome == after.Outcome && before.Handle == after.Handle &&
		slices.Equal(before.Attempts, after.Attempts) &&
		before.PoolUID == after.PoolUID && before.ToPoolUID == after.ToPoolUID && before.ObservedGeneration == after.ObservedGeneration
}

// SetupWithManager registers the controller and its watches. Operations on one pool are reconciled one after another, so that two
// never start at the same time. Long-running work happens in the background.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Agent == "" {
		return errors.New("this agent process has no identity")
	}
	r.jobs.changed = make(chan event.GenericEvent)
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := r.restoreOrphans(ctx); err != nil {
			ctrl.Log.Error(err, "restore module parameters of deleted operations")
		}
		<-ctx.Done()
		r.endJobs(context.WithoutCancel(ctx))
		return nil
	})); err != nil {
		return err
	}
	if err := r.releaser(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("operation").
		For(&v1alpha1.PoolOperation{}, builder.WithPredicates(requestChanged(), unsettled())).
		Watches(&v1alpha1.PoolOperation{}, handler.EnqueueRequestsFromMapFunc(r.unfinished), builder.WithPredicates(unblocksOthers())).
		Watches(&v1alpha1.BenchmarkPool{}, handler.EnqueueRequestsFromMapFunc(r.operationsOf), builder.WithPredicates(poolTurns())).
		WatchesRawSource(source.Channel(r.jobs.changed, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}
