package run

import (
	"context"
	"fmt"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/volume"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// observeEarlier finds out whether the run before leaves its pool to this one.
func (r *Reconciler) observeEarlier(ctx context.Context, state *runs.State) error {
	earlier := state.Pools.Earlier
	if earlier == nil {
		return nil
	}
	before, err := readBefore(ctx, r.Client, state.Run, earlier.RunName, earlier.RunUID)
	if err != nil {
		return err
	}
	earlier.HandsOn = before != nil
	return nil
}

// readBefore reads the run that had a pool; nil unless it is of the same benchmark and hands its pools on.
func readBefore(ctx context.Context, reader client.Reader, run *v1alpha1.BenchmarkRun, name, uid string) (*v1alpha1.BenchmarkRun, error) {
	var before v1alpha1.BenchmarkRun
	err := reader.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: name}, &before)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read run %s/%s, which had the pool before: %w", run.Namespace, name, err)
	}
	ofBenchmark := ownerUID(&before) != "" && ownerUID(&before) == ownerUID(run)
	if string(before.UID) != uid || !ofBenchmark || !runs.HandsOn(&before) {
		return nil, nil
	}
	return &before, nil
}

// takePools makes kept pools this run's: the agent then resets what is on them. Each is taken only as it was read at this moment, from a
// run that hands it on at this moment.
func (r *Reconciler) takePools(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	for _, wanted := range volume.RunVolumes(run) {
		var pool v1alpha1.BenchmarkPool
		err := r.Live.Get(ctx, types.NamespacedName{Name: naming.RunPoolName(run, wanted.Name)}, &pool)
		if apierrors.IsNotFound(err) || err == nil && ofRun(&pool, run) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the BenchmarkPool of volume %s: %w", wanted.Name, err)
		}
		name, uid := pool.Labels[v1alpha1.LabelRun], pool.Labels[v1alpha1.LabelRunUID]
		before, err := readBefore(ctx, r.Live, run, name, uid)
		if err != nil {
			return err
		}
		if before == nil || !pool.DeletionTimestamp.IsZero() || !volume.KeptFor(&pool, run) {
			return fmt.Errorf("BenchmarkPool %s was run %s's, which does not hand it on to this one: waiting for it to be gone", pool.Name, name)
		}
		taken := pool.DeepCopy()
		taken.Labels[v1alpha1.LabelRun], taken.Labels[v1alpha1.LabelRunUID] = run.Name, string(run.UID)
		if taken.Annotations == nil {
			taken.Annotations = map[string]string{}
		}
		taken.Annotations[v1alpha1.AnnotationKeptFrom], taken.Annotations[v1alpha1.AnnotationKeptFromUID] = name, uid
		if err := r.Client.Patch(ctx, taken, client.MergeFromWithOptions(&pool, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("take over BenchmarkPool %s from run %s: %w", pool.Name, name, err)
		}
	}
	return nil
}
