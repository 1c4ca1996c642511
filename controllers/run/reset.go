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

// observeEarlier checks whether the previous run passes its pool on to this one.
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

// readBefore reads the previous run of a pool. It returns nil unless that run belongs to the same benchmark and passes its pools on.
func readBefore(ctx context.Context, reader client.Reader, run *v1alpha1.BenchmarkRun, name, uid string) (*v1alpha1.BenchmarkRun, error) {
	var before v1alpha1.BenchmarkRun
	err := reader.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: name}, &before)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read run %s/%s, which used the pool before: %w", run.Namespace, name, err)
	}
	ofBenchmark := ownerUID(&before) != "" && ownerUID(&before) == ownerUID(run)
	if string(before.UID) != uid || !ofBenchmark || !runs.HandsOn(&before) {
		return nil, nil
	}
	return &before, nil
}

// takePools assigns kept pools to this run. The agent then resets them. Each pool is taken only if it still has the version that was read,
// and only from a run that currently passes it on.
func (r *Reconciler) takePools(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	for _, wanted := range volume.Pools(volume.RunVolumes(run)) {
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
		if before == nil || !pool.DeletionTimestamp.IsZero() || !runs.KeptFor(&pool, run) {
			return fmt.Errorf("BenchmarkPool %s belonged to run %s, which does not pass it on: waiting for its deletion", pool.Name, name)
		}
		from := client.MergeFromWithOptions(&pool, client.MergeFromWithOptimisticLock{})
		if err := r.Client.Patch(ctx, runs.Taken(&pool, run), from); err != nil {
			return fmt.Errorf("take over BenchmarkPool %s from run %s: %w", pool.Name, name, err)
		}
	}
	return nil
}
