package operation

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
)

// unsettled passes only operations that need work: there are many finished ones, and their documents are large.
func unsettled() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		operation, isOne := object.(*v1alpha1.PoolOperation)
		return isOne && (operation.Status.Outcome == "" || len(operation.Finalizers) > 0 || outlived(operation))
	})
}

// requestChanged passes changes of what a user requests: of the spec, or of an annotation such as that for the release.
func requestChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

// unblocksOthers passes operations that have just ended or were deleted unfinished, so that others may start.
func unblocksOthers() predicate.Predicate {
	ended := func(object client.Object) bool {
		operation, isOne := object.(*v1alpha1.PoolOperation)
		return isOne && operation.Status.Outcome != ""
	}
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(change event.UpdateEvent) bool { return ended(change.ObjectNew) && !ended(change.ObjectOld) },
		DeleteFunc:  func(gone event.DeleteEvent) bool { return !ended(gone.Object) },
	}
}

// poolTurns passes pools that were created or deleted, and changes of their spec or readiness.
func poolTurns() predicate.Predicate {
	reason := func(object client.Object) string {
		pool, isOne := object.(*v1alpha1.BenchmarkPool)
		if !isOne {
			return ""
		}
		ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil {
			return ""
		}
		return string(ready.Status) + ready.Reason
	}
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(change event.UpdateEvent) bool { return reason(change.ObjectNew) != reason(change.ObjectOld) },
	})
}

// unfinished returns the operations without an outcome, except the given one, which may have blocked them.
func (r *Reconciler) unfinished(ctx context.Context, object client.Object) []reconcile.Request {
	return r.find(ctx, func(operation *v1alpha1.PoolOperation) bool { return operation.UID != object.GetUID() })
}

// operationsOf returns the operations on a pool that have no outcome yet.
func (r *Reconciler) operationsOf(ctx context.Context, pool client.Object) []reconcile.Request {
	return r.find(ctx, func(operation *v1alpha1.PoolOperation) bool {
		return operation.Spec.Pool == pool.GetName() || operate.ToPool(&operation.Spec.Action) == pool.GetName()
	})
}

func (r *Reconciler) find(ctx context.Context, wanted func(*v1alpha1.PoolOperation) bool) []reconcile.Request {
	var operations v1alpha1.PoolOperationList
	if err := r.Client.List(ctx, &operations); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list PoolOperations for a watch")
		return nil
	}
	var requests []reconcile.Request
	for i := range operations.Items {
		operation := &operations.Items[i]
		if operation.Spec.NodeName == r.NodeName && operation.Status.Outcome == "" && wanted(operation) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(operation)})
		}
	}
	return requests
}
