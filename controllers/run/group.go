package run

import (
	"context"
	"fmt"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// observePeers reads the other runs of the group: from the cache and, before the planner draws a conclusion from them, from the API server.
// The cached run may be an earlier one of the same name.
func (r *Reconciler) observePeers(ctx context.Context, state *runs.State) error {
	group := state.Run.Spec.Group
	if group == nil {
		return nil
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		state.Peers = nil
		for i, node := range group.Nodes {
			if int32(i) == group.Index {
				continue
			}
			name := naming.MemberName(group.Name, int32(i))
			var peer v1alpha1.BenchmarkRun
			err := reader.Get(ctx, types.NamespacedName{Namespace: state.Run.Namespace, Name: name}, &peer)
			switch {
			case apierrors.IsNotFound(err) || err == nil && ownerUID(&peer) != state.Owner:
				state.Peers = append(state.Peers, runs.Peer(name, node, nil))
			case err != nil:
				return fmt.Errorf("read run %s/%s of the group: %w", state.Run.Namespace, name, err)
			default:
				state.Peers = append(state.Peers, runs.Peer(name, node, &peer))
			}
		}
		if !runs.PeersDecide(*state) {
			return nil
		}
	}
	return nil
}

// peersOf returns the other runs of a run's group.
func peersOf(_ context.Context, object client.Object) []reconcile.Request {
	run, ok := object.(*v1alpha1.BenchmarkRun)
	if !ok || run.Spec.Group == nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range run.Spec.Group.Nodes {
		if int32(i) != run.Spec.Group.Index {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{
				Namespace: run.Namespace, Name: naming.MemberName(run.Spec.Group.Name, int32(i))}})
		}
	}
	return requests
}
