package run

import (
	"context"
	"fmt"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// observeBoot reads the boot ID of the node. Before a result is stored, it is read from the API server.
func (r *Reconciler) observeBoot(ctx context.Context, state *runs.State) error {
	if r.WithoutClusterReads {
		return nil // a reboot is not detected
	}
	reader := client.Reader(r.Client)
	if runs.BootDecides(*state) {
		reader = r.Live
	}
	var node corev1.Node
	if err := reader.Get(ctx, types.NamespacedName{Name: state.Run.Spec.NodeName}, &node); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read node %s: %w", state.Run.Spec.NodeName, err)
	}
	state.BootID = node.Status.NodeInfo.BootID
	return nil
}

// bootChanged passes nodes that were rebooted.
func bootChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(change event.UpdateEvent) bool {
			before, ok := change.ObjectOld.(*corev1.Node)
			after, fine := change.ObjectNew.(*corev1.Node)
			return ok && fine && before.Status.NodeInfo.BootID != after.Status.NodeInfo.BootID
		},
	}
}

// runsOn returns the unsettled runs on a node.
func (r *Reconciler) runsOn(ctx context.Context, node client.Object) []reconcile.Request {
	return r.unsettled(ctx, naming.LeaseName(node.GetName()))
}
