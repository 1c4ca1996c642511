// Package lostnode speaks for BenchmarkPools whose node has no agent any more. The agent alone destroys pools, so an object
// whose node is gone would wait for ever: here it says what is left behind and where, and lets go when it is told to.
package lostnode

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/write"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/plan"
)

// Reconciler looks after the BenchmarkPools of nodes without an agent.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server: that a node is gone is not concluded from a cache.
	Live     client.Reader
	Recorder events.EventRecorder
}

// Reconcile leaves a pool to the agent of its node, if there can be one.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var pool v1alpha1.BenchmarkPool
	if err := r.Client.Get(ctx, request.NamespacedName, &pool); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	why, err := r.withoutAgent(ctx, pool.Spec.NodeName)
	if err != nil || why == "" {
		return reconcile.Result{}, err
	}
	deleted := !pool.DeletionTimestamp.IsZero() && controllerutil.ContainsFinalizer(&pool, v1alpha1.FinalizerTeardown)
	if deleted && pool.Annotations[v1alpha1.AnnotationReleasePool] == pool.Spec.NodeName {
		return reconcile.Result{}, r.letGo(ctx, &pool)
	}
	message := why
	if deleted {
		message += ": " + plan.LeftBehind(&pool) + ". Bring the node back, or " + plan.ReleaseCommand(&pool)
	}
	return reconcile.Result{}, r.writeStatus(ctx, &pool, message)
}

// withoutAgent says why no agent runs on a node; nothing if one may.
func (r *Reconciler) withoutAgent(ctx context.Context, name string) (string, error) {
	var node corev1.Node
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &node)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("node %s is not there", name), nil
	case err != nil:
		return "", fmt.Errorf("look for node %s: %w", name, err)
	case !labelled(&node):
		return fmt.Sprintf("node %s has no agent: kubectl label node %s %s=true", name, name, v1alpha1.LabelLabNode), nil
	}
	return "", nil
}

func labelled(node client.Object) bool { return node.GetLabels()[v1alpha1.LabelLabNode] == "true" }

// letGo removes the finalizer from the version that was seen.
func (r *Reconciler) letGo(ctx context.Context, pool *v1alpha1.BenchmarkPool) error {
	if err := write.Finalizer(ctx, r.Client, pool, controllerutil.RemoveFinalizer); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("let go of BenchmarkPool %s: %w", pool.Name, err))
	}
	r.Recorder.Eventf(pool, nil, corev1.EventTypeWarning, v1alpha1.ReasonPoolLeftBehind, "Release", "%s", plan.LeftBehind(pool))
	return nil
}

// writeStatus changes the conditions only: the rest is the last that an agent has seen, and tells what to look for.
func (r *Reconciler) writeStatus(ctx context.Context, pool *v1alpha1.BenchmarkPool, message string) error {
	status := pool.Status.DeepCopy()
	kstatus.Stall(&status.Conditions, pool.Generation, v1alpha1.ReasonPoolNodeGone, message)
	if kstatus.Same(pool.Status, *status) {
		return nil
	}
	changed := pool.DeepCopy()
	changed.Status = *status
	if err := r.Client.Status().Update(ctx, changed); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of BenchmarkPool %s: %w", pool.Name, err))
	}
	write.Announce(r.Recorder, pool, pool.Status.Conditions, status.Conditions)
	return nil
}

// SetupWithManager registers the controller and what it watches.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("lostnode").
		For(&v1alpha1.BenchmarkPool{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.poolsOf), builder.WithPredicates(agentGone())).
		WithOptions(options).
		Complete(r)
}

// agentGone lets through nodes that have lost what an agent needs.
func agentGone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(change event.UpdateEvent) bool { return labelled(change.ObjectOld) && !labelled(change.ObjectNew) },
	}
}

func (r *Reconciler) poolsOf(ctx context.Context, node client.Object) []reconcile.Request {
	var pools v1alpha1.BenchmarkPoolList
	if err := r.Client.List(ctx, &pools); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list BenchmarkPools for a watch")
		return nil
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		if pools.Items[i].Spec.NodeName == node.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
		}
	}
	return requests
}
