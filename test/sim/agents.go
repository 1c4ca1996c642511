package sim

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/zfs"
)

// Agents play the part of the agents of some nodes, as far as the API shows it.
type Agents struct {
	Client client.Client
	Nodes  []string
}

// Step makes pools ready and lets operations start and end. It reports whether anything was written.
func (a Agents) Step(ctx context.Context) (changed bool, err error) {
	pools, err := a.StepPools(ctx)
	if err != nil {
		return pools, err
	}
	operations, err := a.StepOperations(ctx)
	return pools || operations, err
}

// StepPools makes every pool ready, and a kept pool again for each of its runs.
func (a Agents) StepPools(ctx context.Context) (changed bool, err error) {
	var list v1alpha1.BenchmarkPoolList
	if err := a.Client.List(ctx, &list); err != nil {
		return false, err
	}
	for i := range list.Items {
		pool := &list.Items[i]
		// Operations change what the status says of datasets that the spec awaits.
		if !slices.Contains(a.Nodes, pool.Spec.NodeName) || pool.DeletionTimestamp != nil ||
			pool.Status.GUID != "" && (slices.Equal(pool.Status.Properties, MarksOf(pool)) || awaits(pool)) {
			continue
		}
		pool.Status.Properties = MarksOf(pool)
		pool.Status.GUID, pool.Status.SizeBytes, pool.Status.ObservedGeneration = "4711", 1<<30, pool.Generation
		kstatus.SetReady(&pool.Status.Conditions, pool.Generation, v1alpha1.ReasonPoolReady, "as asked")
		changed = true
		if err := overtaken(a.Client.Status().Update(ctx, pool)); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// overtaken ignores errors because an object has changed or is gone: the next step sees that.
func overtaken(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// MarksOf returns the marks that an agent reports once it has reset a kept pool for its run.
func MarksOf(pool *v1alpha1.BenchmarkPool) []v1alpha1.EffectiveProperty {
	var marks []v1alpha1.EffectiveProperty
	for _, mark := range naming.RunMarks(pool) {
		marks = append(marks, v1alpha1.EffectiveProperty{Dataset: mark.Dataset, Name: mark.Name, Value: pool.Labels[v1alpha1.LabelRunUID],
			Source: "local"})
	}
	return marks
}

// awaits reports whether the spec of a pool awaits datasets.
func awaits(pool *v1alpha1.BenchmarkPool) bool {
	return slices.ContainsFunc(pool.Spec.Datasets, func(d v1alpha1.PoolDataset) bool { return d.Awaited })
}

// StepOperations starts requested operations. Operations end on request, or in the next step if they change the datasets of the pool,
// export and import it or map it.
func (a Agents) StepOperations(ctx context.Context) (changed bool, err error) {
	var list v1alpha1.PoolOperationList
	if err := a.Client.List(ctx, &list); err != nil {
		return false, err
	}
	for i := range list.Items {
		operation := &list.Items[i]
		if !slices.Contains(a.Nodes, operation.Spec.NodeName) || operation.Status.Outcome != "" {
			continue
		}
		now := metav1.Now()
		switch {
		case operation.Status.StartedAt == nil:
			operation.Status.StartedAt, operation.Status.Progress = &now, &v1alpha1.OperationProgress{Message: "at work"}
		case operation.Spec.Action.MetaslabMap != nil:
			err = mapFreeSpace(operation, now)
		case operation.Spec.Cancel, operation.Spec.Action.ExportImport != nil, operate.LeavesTraces(&operation.Spec.Action):
			operation.Status.FinishedAt, operation.Status.Outcome = &now, v1alpha1.OutcomeSucceeded
			err = a.shows(ctx, operation)
		default:
			continue
		}
		if err != nil {
			return changed, err
		}
		changed = true
		if err := overtaken(a.Client.Status().Update(ctx, operation)); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// mapFreeSpace ends an operation with a map of one metaslab.
func mapFreeSpace(operation *v1alpha1.PoolOperation, now metav1.Time) (err error) {
	status := &operation.Status
	status.FinishedAt, status.Outcome = &now, v1alpha1.OutcomeSucceeded
	status.Data, status.DataDigest, err = poolseries.NewMetaslabMap(operation.Spec.Pool, "7", "zfs-2.3.9", now.Time,
		[]zfs.Metaslab{{FreeBytes: 4096, FreeSegments: map[int]int64{12: 1}}}).Pack()
	return err
}

// shows plays the agent that has mounted a dataset, which an operation has created and the spec of its pool awaits, or that finds a dataset
// destroyed.
func (a Agents) shows(ctx context.Context, operation *v1alpha1.PoolOperation) error {
	action := &operation.Spec.Action
	name := cmp.Or(operate.ToPool(action), operation.Spec.Pool)
	path, there := operate.To(action), true
	if action.DestroyDataset != nil {
		path, there = action.DestroyDataset.Dataset, false
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pool := &v1alpha1.BenchmarkPool{}
		if err := a.Client.Get(ctx, client.ObjectKey{Name: name}, pool); err != nil {
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
		return client.IgnoreNotFound(a.Client.Status().Update(ctx, pool))
	})
}
