package operation

import (
	"context"
	"fmt"

	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/operations"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/write"
)

// letGo removes the finalizer of a deleted operation without calling ZFS, which may hang, and reports what may be left behind.
func (r *Reconciler) letGo(ctx context.Context, operation *v1alpha1.PoolOperation) error {
	r.jobs.abandon(operation.UID)
	left := objects.OperationLeftBehind(operation)
	if parameter := operation.Spec.Action.ModuleParameter; parameter != nil {
		// Restoring needs no pool. If it fails, its record stays on the node for the next agent.
		if err := r.restoreParameter(ctx, operations.State{Operation: operation}); err != nil {
			left += ": " + err.Error()
		} else {
			left = fmt.Sprintf("parameter %s has its earlier value", parameter.Name)
		}
	}
	if err := write.Finalizer(ctx, r.Client, operation, controllerutil.RemoveFinalizer); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("release PoolOperation %s: %w", operation.Name, err))
	}
	r.forget(client.ObjectKeyFromObject(operation))
	r.Recorder.Eventf(operation, nil, corev1.EventTypeWarning, v1alpha1.ReasonPoolLeftBehind, "Release", "released by its annotation: %s",
		left)
	return nil
}
