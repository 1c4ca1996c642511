package integration

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/zfs"
)

// operations play the agents' part in PoolOperations on the lab's nodes: what is requested starts at once, and ends on request.
func (l *lab) operations(ctx context.Context) error {
	for {
		var list v1alpha1.PoolOperationList
		if err := l.live.List(ctx, &list); err != nil && ctx.Err() == nil {
			return err
		}
		for i := range list.Items {
			operation := &list.Items[i]
			if !slices.Contains(l.nodes, operation.Spec.NodeName) || operation.Status.Outcome != "" {
				continue
			}
			now := metav1.Now()
			switch {
			case operation.Status.StartedAt == nil:
				operation.Status.StartedAt, operation.Status.Progress = &now, &v1alpha1.OperationProgress{Message: "at work"}
			case operation.Spec.Action.MetaslabMap != nil:
				if err := mapFreeSpace(operation, now); err != nil {
					return err
				}
			case operation.Spec.Cancel:
				operation.Status.FinishedAt, operation.Status.Outcome = &now, v1alpha1.OutcomeSucceeded
			default:
				continue
			}
			if err := l.live.Status().Update(ctx, operation); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(polling):
		}
	}
}

// mapFreeSpace ends an operation with a map of one metaslab.
func mapFreeSpace(operation *v1alpha1.PoolOperation, now metav1.Time) (err error) {
	status := &operation.Status
	status.FinishedAt, status.Outcome = &now, v1alpha1.OutcomeSucceeded
	status.Data, status.DataDigest, err = poolseries.NewMetaslabMap(operation.Spec.Pool, "7", "zfs-2.3.9", now.Time,
		[]zfs.Metaslab{{FreeBytes: 4096, FreeSegments: map[int]int64{12: 1}}}).Pack()
	return err
}
