package benchmark

import (
	"context"
	"slices"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// SetupWithManager registers the controller and its watches, limited to what the manager has permissions for.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager, options controller.Options) error {
	registered := ctrl.NewControllerManagedBy(manager).
		Named("benchmark").
		For(&v1alpha1.StorageBenchmark{}).
		Watches(&v1alpha1.BenchmarkRun{}, handler.EnqueueRequestsFromMapFunc(benchmarkOf)).
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		Watches(&v1alpha1.StorageBenchmark{}, handler.EnqueueRequestsFromMapFunc(r.waitingBehind), builder.WithPredicates(lineMoved())).
		Watches(&v1alpha1.StorageBenchmark{}, handler.EnqueueRequestsFromMapFunc(r.waitingForShare), builder.WithPredicates(lineMoved())).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(r.shareOfLease)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.judgedBy), builder.OnlyMetadata).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(r.waitingForLease))
	if !r.WithoutAgent {
		registered = registered.
			Watches(&v1alpha1.BenchmarkPool{}, handler.EnqueueRequestsFromMapFunc(r.keeperOf)).
			Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor(v1alpha1.ReasonDriverNotInstalled)))
	}
	if !r.WithoutClusterReads {
		registered = registered.
			Watches(&storagev1.StorageClass{},
				handler.EnqueueRequestsFromMapFunc(r.waitingFor(v1alpha1.ReasonStorageClassNotFound, v1alpha1.ReasonNoDefaultClass))).
			Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor(v1alpha1.ReasonNoNode)), builder.WithPredicates(nodeChanged()))
	}
	return registered.WithOptions(options).Complete(r)
}

// benchmarkOf finds the benchmark of a run, even of one without an owner.
func benchmarkOf(_ context.Context, object client.Object) []reconcile.Request {
	run, ok := object.(*v1alpha1.BenchmarkRun)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Benchmark}}}
}

// select lists the benchmarks that match keep.
func (r *Reconciler) selectBenchmarks(ctx context.Context, keep func(*v1alpha1.StorageBenchmark) bool) []reconcile.Request {
	var benchmarks v1alpha1.StorageBenchmarkList
	if err := r.Client.List(ctx, &benchmarks); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list benchmarks for a watch")
		return nil
	}
	var requests []reconcile.Request
	for i := range benchmarks.Items {
		if keep(&benchmarks.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&benchmarks.Items[i])})
		}
	}
	return requests
}

// waitingBehind finds the benchmarks in the same queue.
func (r *Reconciler) waitingBehind(ctx context.Context, object client.Object) []reconcile.Request {
	moved, ok := object.(*v1alpha1.StorageBenchmark)
	if !ok || moved.Status.NodeName == "" {
		return nil
	}
	left := experiment.StatusNodes(moved.Status)
	return r.selectBenchmarks(ctx, func(other *v1alpha1.StorageBenchmark) bool {
		return other.UID != moved.UID && waits(other) && shares(experiment.StatusNodes(other.Status), left)
	})
}

// lineMoved passes events that change the positions of other benchmarks.
func lineMoved() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(change event.UpdateEvent) bool {
			before, ok := change.ObjectOld.(*v1alpha1.StorageBenchmark)
			after, fine := change.ObjectNew.(*v1alpha1.StorageBenchmark)
			return ok && fine && (waits(before) != waits(after) || limited(before) != limited(after) ||
				before.Status.NodeName != after.Status.NodeName)
		},
	}
}

// waitingForLease finds the holder of a Lease and the benchmarks that wait for its node.
func (r *Reconciler) waitingForLease(ctx context.Context, object client.Object) []reconcile.Request {
	node := object.GetAnnotations()[v1alpha1.AnnotationNode]
	return r.selectBenchmarks(ctx, func(benchmark *v1alpha1.StorageBenchmark) bool {
		return node != "" && slices.Contains(experiment.StatusNodes(benchmark.Status), node) && naming.LeaseName(node) == object.GetName() &&
			!meta.IsStatusConditionTrue(benchmark.Status.Conditions, v1alpha1.ConditionComplete)
	})
}

// waitingFor finds the benchmarks that wait for one of the given reasons.
func (r *Reconciler) waitingFor(reasons ...string) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		return r.selectBenchmarks(ctx, func(benchmark *v1alpha1.StorageBenchmark) bool {
			ready := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionReady)
			return ready != nil && slices.Contains(reasons, ready.Reason)
		})
	}
}

// nodeChanged passes events that affect fitting, not every heartbeat.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(change event.UpdateEvent) bool {
		before, ok := change.ObjectOld.(*corev1.Node)
		after, fine := change.ObjectNew.(*corev1.Node)
		return ok && fine && (ready(before) != ready(after) || before.Spec.Unschedulable != after.Spec.Unschedulable ||
			!equality.Semantic.DeepEqual(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints))
	}}
}
