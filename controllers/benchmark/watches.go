package benchmark

import (
	"context"
	"errors"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/line"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
)

// SetupWithManager registers the controller and its watches, limited to what the manager has permissions for.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager, options controller.Options) error {
	registered := ctrl.NewControllerManagedBy(manager).
		Named("benchmark").
		For(&v1alpha1.StorageBenchmark{}, builder.WithPredicates(ownChange())).
		Watches(&v1alpha1.StorageBenchmark{}, r.followBenchmarks()).
		Watches(&coordinationv1.Lease{}, r.followLeases()).
		Watches(&v1alpha1.BenchmarkRun{}, r.urgent(benchmarkOf), builder.WithPredicates(runChange())).
		Watches(&v1alpha1.StorageTarget{}, r.urgent(r.waitingFor(v1alpha1.ReasonTargetNotFound, v1alpha1.ReasonTargetChanged))).
		Watches(&corev1.ConfigMap{}, r.urgent(ownerOf), builder.OnlyMetadata).
		Watches(&corev1.ConfigMap{}, r.urgent(r.judgedBy), builder.OnlyMetadata)
	if !r.WithoutAgent {
		registered = registered.
			Watches(&v1alpha1.BenchmarkPool{}, r.urgent(r.keeperOf)).
			Watches(&storagev1.CSIDriver{}, r.urgent(r.waitingFor(v1alpha1.ReasonDriverNotInstalled)))
	}
	if !r.WithoutClusterReads {
		registered = registered.
			Watches(&storagev1.StorageClass{}, r.urgent(r.waitingFor(v1alpha1.ReasonStorageClassNotFound, v1alpha1.ReasonNoDefaultClass))).
			Watches(&corev1.Node{}, r.urgent(r.waitingFor(v1alpha1.ReasonNoNode)), builder.WithPredicates(nodeChanged())).
			Watches(&corev1.Node{}, r.followNodes())
	}
	return errors.Join(registered.WithOptions(options).Complete(r), r.followPlaces(manager))
}

// The priorities in the work queue: first the benchmarks that hold a node, then those that may take one, then all others. Without
// priorities, a freed node would wait until the status of every benchmark in its queue is written.
const (
	priorityHolder = 20
	priorityNext   = 10
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// moved enqueues the benchmarks that a change of the queues affects. Those that have only moved to another place get it written later, only
// once for several changes.
func (r *Reconciler) moved(queue queue, keys []types.NamespacedName) {
	for _, key := range keys {
		if r.Line.Urgency(key) == line.Behind {
			r.places.AddAfter(reconcile.Request{NamespacedName: key}, placeDelay)
			continue
		}
		r.enqueue(queue, []types.NamespacedName{key})
	}
}

// enqueue adds requests with the priority that the queues for nodes give them.
func (r *Reconciler) enqueue(queue queue, keys []types.NamespacedName) {
	for _, key := range keys {
		request := reconcile.Request{NamespacedName: key}
		if prioritised, is := queue.(priorityqueue.PriorityQueue[reconcile.Request]); is {
			prioritised.AddWithOpts(priorityqueue.AddOpts{Priority: new(r.priorityOf(key))}, request)
			continue
		}
		queue.Add(request)
	}
}

func (r *Reconciler) priorityOf(key types.NamespacedName) int {
	switch r.Line.Urgency(key) {
	case line.Holder:
		return priorityHolder
	case line.NextOne:
		return priorityNext
	case line.Usual, line.Behind:
	}
	return 0
}

// urgent enqueues the benchmarks that a function finds, with their priorities. Objects that the caches list at the start of the manager
// trigger nothing: every benchmark is reconciled then anyway.
func (r *Reconciler) urgent(find func(client.Object) []types.NamespacedName) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) {
			if !e.IsInInitialList {
				r.enqueue(queue, find(e.Object))
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) {
			r.enqueue(queue, append(find(e.ObjectOld), find(e.ObjectNew)...))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) { r.enqueue(queue, find(e.Object)) },
	}
}

// followBenchmarks keeps the queues up to date, and wakes the benchmarks whose turn may have come.
func (r *Reconciler) followBenchmarks() handler.EventHandler {
	put := func(object client.Object, queue queue) {
		if benchmark, is := object.(*v1alpha1.StorageBenchmark); is {
			r.moved(queue, r.Line.Put(EntryOf(benchmark, r.Limits)))
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) { put(e.Object, queue) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // recreated while the watch was interrupted
				r.moved(queue, r.Line.Remove(string(e.ObjectOld.GetUID())))
			}
			put(e.ObjectNew, queue)
			if r.mayExceed(e.ObjectOld, e.ObjectNew) {
				queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, placeDelay)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) {
			r.moved(queue, r.Line.Remove(string(e.Object.GetUID())))
		},
	}
}

// mayExceed reports whether a benchmark has joined a queue and may have to leave it again: if several join at the same time, together they
// can exceed the limits of their namespace.
func (r *Reconciler) mayExceed(before, after client.Object) bool {
	old, is := before.(*v1alpha1.StorageBenchmark)
	joined, also := after.(*v1alpha1.StorageBenchmark)
	return is && also && r.Limits.PerNamespace() && experiment.Waits(joined) && !experiment.Waits(old)
}

// followLeases keeps the holders of the nodes up to date, and wakes the benchmarks that a change affects.
func (r *Reconciler) followLeases() handler.EventHandler {
	put := func(object client.Object, queue queue) {
		if lease, is := object.(*coordinationv1.Lease); is && ofNode(lease) {
			r.moved(queue, r.Line.PutLease(*LeaseState(lease)))
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) { put(e.Object, queue) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) { put(e.ObjectNew, queue) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) {
			if ofNode(e.Object) {
				r.moved(queue, r.Line.RemoveLease(e.Object.GetAnnotations()[v1alpha1.AnnotationNode]))
			}
		},
	}
}

// nodeDelay is how long a node may be unusable before benchmarks that wait for it choose another one and lose their place: most nodes
// return within minutes.
const nodeDelay = 5 * time.Minute

// followNodes wakes the benchmarks that wait for a node that may have become unusable for them: another one may be free.
func (r *Reconciler) followNodes() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) {
			before, is := e.ObjectOld.(*corev1.Node)
			if after, also := e.ObjectNew.(*corev1.Node); is && also && lessUsable(before, after) {
				for _, key := range r.Line.For(after.Name) {
					queue.AddAfter(reconcile.Request{NamespacedName: key}, nodeDelay)
				}
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) {
			r.enqueue(queue, r.Line.For(e.Object.GetName()))
		},
	}
}

// ofNode reports whether a Lease is the one of the node that it names.
func ofNode(lease client.Object) bool {
	node := lease.GetAnnotations()[v1alpha1.AnnotationNode]
	return node != "" && naming.LeaseName(node) == lease.GetName()
}

// benchmarkOf returns the benchmark of a run, even if the run has no owner.
func benchmarkOf(object client.Object) []types.NamespacedName {
	run, ok := object.(*v1alpha1.BenchmarkRun)
	if !ok {
		return nil
	}
	return []types.NamespacedName{{Namespace: run.Namespace, Name: run.Spec.Benchmark}}
}

// waitingFor returns a function that finds the benchmarks that wait for one of the given reasons: all of them or, for an object with a
// namespace, those in that namespace.
func (r *Reconciler) waitingFor(reasons ...string) func(client.Object) []types.NamespacedName {
	return func(object client.Object) []types.NamespacedName {
		return slices.DeleteFunc(r.Line.Because(reasons...), func(key types.NamespacedName) bool {
			return object.GetNamespace() != "" && object.GetNamespace() != key.Namespace
		})
	}
}
