package benchmark

import (
	"context"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/experiment"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// neighbours are the other benchmarks of the namespace that use part of its share of nodes and queues, or wait for it. A holder
// that no longer exists counts as long as its Lease exists.
func neighbours(benchmark *v1alpha1.StorageBenchmark, leases []coordinationv1.Lease,
	others []v1alpha1.StorageBenchmark) []experiment.Neighbour {
	held := map[string]int{}
	for i := range leases {
		if lease := leaseState(&leases[i]); strings.HasPrefix(lease.HolderName, benchmark.Namespace+"/") {
			held[lease.Holder]++
		}
	}
	delete(held, string(benchmark.UID))
	var all []experiment.Neighbour
	for i := range others {
		other := &others[i]
		if other.Namespace != benchmark.Namespace || other.UID == benchmark.UID {
			continue
		}
		nodes := held[string(other.UID)]
		delete(held, string(other.UID))
		neighbour := experiment.Neighbour{UID: string(other.UID), Name: other.Name, Created: other.CreationTimestamp.Time, Holds: nodes > 0,
			Nodes: max(nodes, len(experiment.StatusNodes(other.Status)))}
		if waits(other) {
			neighbour.Since = &other.Status.Queue.Since.Time
		}
		if neighbour.Holds || neighbour.Since != nil || limited(other) {
			all = append(all, neighbour)
		}
	}
	for holder, nodes := range held {
		all = append(all, experiment.Neighbour{UID: holder, Holds: true, Nodes: nodes})
	}
	slices.SortFunc(all, func(a, b experiment.Neighbour) int { return strings.Compare(a.UID, b.UID) })
	return all
}

// limited says whether a benchmark waits for a share of its namespace.
func limited(benchmark *v1alpha1.StorageBenchmark) bool {
	ready := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonNamespaceLimit && benchmark.DeletionTimestamp.IsZero() && !benchmark.Spec.Suspend
}

// limitedIn finds the benchmarks of a namespace that wait for a share.
func (r *Reconciler) limitedIn(ctx context.Context, namespace string) []reconcile.Request {
	return r.selectBenchmarks(ctx, func(other *v1alpha1.StorageBenchmark) bool { return other.Namespace == namespace && limited(other) })
}

// waitingForShare finds the benchmarks that wait for the share that a benchmark used, or for its admission before theirs.
func (r *Reconciler) waitingForShare(ctx context.Context, object client.Object) []reconcile.Request {
	return r.limitedIn(ctx, object.GetNamespace())
}

// shareOfLease finds the benchmarks that wait for the share of a Lease's holder.
func (r *Reconciler) shareOfLease(ctx context.Context, object client.Object) []reconcile.Request {
	holder, err := splitName(object.GetAnnotations()[v1alpha1.AnnotationHolder])
	if err != nil {
		return nil
	}
	return r.limitedIn(ctx, holder.Namespace)
}
