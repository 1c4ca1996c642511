package integration

import (
	"cmp"
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/zfs"
)

// operations play the agents' part in PoolOperations on the lab's nodes: what is requested starts at once, and ends on request, or at once if
// it changes the datasets of the pool or exports and imports it.
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
			case operation.Spec.Cancel, operation.Spec.Action.ExportImport != nil, operate.LeavesTraces(&operation.Spec.Action):
				operation.Status.FinishedAt, operation.Status.Outcome = &now, v1alpha1.OutcomeSucceeded
				if err := l.shows(ctx, operation); err != nil && ctx.Err() == nil {
					return err
				}
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

// shows plays the agent that has mounted a dataset which an operation has created and the spec of its pool awaits, or that finds it destroyed.
func (l *lab) shows(ctx context.Context, operation *v1alpha1.PoolOperation) error {
	action := &operation.Spec.Action
	name := cmp.Or(operate.ToPool(action), operation.Spec.Pool)
	path, there := operate.To(action), true
	if action.DestroyDataset != nil {
		path, there = action.DestroyDataset.Dataset, false
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pool := &v1alpha1.BenchmarkPool{}
		if err := l.live.Get(ctx, client.ObjectKey{Name: name}, pool); err != nil {
			return client.IgnoreNotFound(err)
		}
		awaited := slices.ContainsFunc(pool.Spec.Datasets, func(d v1alpha1.PoolDataset) bool { return d.Awaited && d.Path == path })
		if !awaited {
			return nil
		}
		mark := v1alpha1.EffectiveProperty{Dataset: naming.PoolName(pool) + "/" + string(path), Name: naming.PropertyOperation}
		pool.Status.Properties = slices.DeleteFunc(pool.Status.Properties, func(is v1alpha1.EffectiveProperty) bool {
			return is.Dataset == mark.Dataset
		})
		if mark.Value = string(operation.UID); there {
			pool.Status.Properties = append(pool.Status.Properties, mark)
		}
		return client.IgnoreNotFound(l.live.Status().Update(ctx, pool))
	})
}

// awaits says whether the spec of a pool awaits datasets: operations then change what its status says of them.
func awaits(pool *v1alpha1.BenchmarkPool) bool {
	return slices.ContainsFunc(pool.Spec.Datasets, func(d v1alpha1.PoolDataset) bool { return d.Awaited })
}
