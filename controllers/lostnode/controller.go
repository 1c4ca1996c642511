// Package lostnode handles BenchmarkPools and PoolOperations whose node has no agent any more. Only the agent removes their finalizers, so
// an object whose node is gone would wait forever: this package reports what is left behind and where, and releases the object on request.
package lostnode

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// Reconciler handles the objects of nodes without an agent.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server: a cache is no proof that a node is lost.
	Live     client.Reader
	Recorder events.EventRecorder
}

// reconciler handles one kind.
type reconciler struct {
	*Reconciler
	kind kind
}

// Reconcile leaves an object to the agent of its node, if there can be one.
func (r reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := r.kind.empty()
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// Nearly always the cached node shows that there is an agent. Otherwise the API server has to confirm that there is none.
	var why string
	seen, _ := r.kind.orphan(object)
	for _, nodes := range []client.Reader{r.Client, r.Live} {
		var err error
		if why, err = withoutAgent(ctx, nodes, seen.Node); err != nil || why == "" {
			return reconcile.Result{}, err
		}
	}
	// The cache does not hold the complete object, but the write needs it.
	if err := r.Live.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	orphan, conditions := r.kind.orphan(object)
	switch letGo, report := orphan.Decide(why); {
	case letGo:
		return reconcile.Result{}, r.letGo(ctx, object, orphan)
	case report != "":
		return reconcile.Result{}, r.writeStatus(ctx, object, conditions, report)
	}
	return reconcile.Result{}, nil
}

// withoutAgent reads a node and returns why no agent runs on it, or "" if one may run.
func withoutAgent(ctx context.Context, nodes client.Reader, name string) (string, error) {
	var node corev1.Node
	err := nodes.Get(ctx, client.ObjectKey{Name: name}, &node)
	switch {
	case apierrors.IsNotFound(err):
		return objects.WithoutAgent(name, nil), nil
	case err != nil:
		return "", fmt.Errorf("look for node %s: %w", name, err)
	}
	return objects.WithoutAgent(name, &node), nil
}

// letGo removes the finalizer from the observed version.
func (r reconciler) letGo(ctx context.Context, object client.Object, orphan objects.Orphan) error {
	if err := write.Finalizer(ctx, r.Client, object, controllerutil.RemoveFinalizer); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("release %s %s: %w", r.kind.name, object.GetName(), err))
	}
	r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, v1alpha1.ReasonPoolLeftBehind, "Release", "%s", orphan.Left)
	return nil
}

// writeStatus changes only the conditions: the rest is the last observation of an agent, and shows what to look for.
func (r reconciler) writeStatus(ctx context.Context, object client.Object, conditions *[]metav1.Condition, message string) error {
	before := slices.Clone(*conditions)
	kstatus.SetStalled(conditions, object.GetGeneration(), v1alpha1.ReasonPoolNodeGone, message)
	if kstatus.Same(before, *conditions) {
		return nil
	}
	after := slices.Clone(*conditions)
	if err := r.Client.Status().Update(ctx, object); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of %s %s: %w", r.kind.name, object.GetName(), err))
	}
	write.Announce(r.Recorder, object, before, after)
	return nil
}

// SetupWithManager registers a controller for each kind, and their watches.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager, options controller.Options) error {
	for _, kind := range kinds {
		one := reconciler{Reconciler: r, kind: kind}
		err := ctrl.NewControllerManagedBy(manager).
			Named("lostnode-"+strings.ToLower(kind.name)).
			For(kind.empty()).
			Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(one.ofNode), builder.WithPredicates(agentGone())).
			WithOptions(options).
			Complete(one)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	return nil
}

// agentGone passes the deletion of nodes, and updates by which a node loses the label that an agent needs.
func agentGone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(change event.UpdateEvent) bool {
			return objects.HasAgent(change.ObjectOld) && !objects.HasAgent(change.ObjectNew)
		},
	}
}

// ofNode returns the objects of a node.
func (r reconciler) ofNode(ctx context.Context, node client.Object) []reconcile.Request {
	list := r.kind.list()
	if err := r.Client.List(ctx, list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list objects of kind "+r.kind.name+" for a watch")
		return nil
	}
	var requests []reconcile.Request
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if object, is := item.(client.Object); is {
			if orphan, _ := r.kind.orphan(object); orphan.Node == node.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			}
		}
		return nil
	})
	return requests
}
