package objects

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
)

// OperationReleaseCommand returns the command that releases a deleted operation without its agent.
func OperationReleaseCommand(operation *v1alpha1.PoolOperation) string {
	return fmt.Sprintf("release it as it is: kubectl annotate pooloperation %s %s=%s", operation.Name, v1alpha1.AnnotationReleasePool,
		operation.Spec.NodeName)
}

// OperationReleased reports whether a user released a deleted operation.
func OperationReleased(operation *v1alpha1.PoolOperation) bool {
	return !operation.DeletionTimestamp.IsZero() && slices.Contains(operation.Finalizers, v1alpha1.FinalizerTeardown) &&
		operation.Annotations[v1alpha1.AnnotationReleasePool] == operation.Spec.NodeName
}

// OperationLeftBehind describes what an unfinished operation may leave behind, and where.
func OperationLeftBehind(operation *v1alpha1.PoolOperation) string {
	spec := operation.Spec
	if operation.Status.StartedAt == nil {
		return fmt.Sprintf("the %s of pool %s has not started", operate.Name(spec.Action), spec.Pool)
	}
	switch {
	case spec.Action.ModuleParameter != nil:
		return fmt.Sprintf("parameter %s may keep the value %s on node %s until its module is reloaded or an agent runs there",
			spec.Action.ModuleParameter.Name, spec.Action.ModuleParameter.Value, spec.NodeName)
	case operation.Status.Outcome != "":
		return fmt.Sprintf("the %s of pool %s has ended: %s", operate.Name(spec.Action), spec.Pool, operation.Status.Outcome)
	case spec.Action.OfflineDevice != nil:
		return fmt.Sprintf("%s of pool %s may be offline on node %s until 'zpool online' or the next import", spec.Action.OfflineDevice.Device,
			spec.Pool, spec.NodeName)
	case spec.Action.Replicate != nil:
		return fmt.Sprintf("snapshots of %s in pool %s, and a part of %s in pool %s, may be left on node %s",
			spec.Action.Replicate.Dataset, spec.Pool, spec.Action.Replicate.To, spec.Action.Replicate.ToPool, spec.NodeName)
	}
	return fmt.Sprintf("the %s of pool %s may be half done on node %s", operate.Name(spec.Action), spec.Pool, spec.NodeName)
}
