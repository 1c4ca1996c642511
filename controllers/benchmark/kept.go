package benchmark

import (
	"context"
	"fmt"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/runs"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// keptOf returns the list options that select the BenchmarkPools that a benchmark keeps between runs.
func keptOf(benchmark *v1alpha1.StorageBenchmark) []client.ListOption {
	return []client.ListOption{client.MatchingLabels{v1alpha1.LabelBenchmarkUID: string(benchmark.UID)}, client.HasLabels{v1alpha1.LabelReset}}
}

// observeKept lists the pools that the benchmark keeps.
func (r *Reconciler) observeKept(ctx context.Context, observed *observation) error {
	if r.WithoutAgent {
		return nil
	}
	var pools v1alpha1.BenchmarkPoolList
	if err := r.Client.List(ctx, &pools, keptOf(observed.Benchmark)...); err != nil {
		return fmt.Errorf("list the BenchmarkPools of benchmark %s/%s: %w", observed.Benchmark.Namespace, observed.Benchmark.Name, err)
	}
	for i := range pools.Items {
		observed.Pools = append(observed.Pools, experiment.KeptPoolOf(&pools.Items[i]))
	}
	experiment.SortKept(observed.Pools)
	return nil
}

// deletePool deletes a kept pool that no run will reuse, after a live check that it belongs to the benchmark, that its last run is
// the one in the plan, and that this run is finished or gone. Its agent destroys it.
func (r *Reconciler) deletePool(ctx context.Context, benchmark *v1alpha1.StorageBenchmark, name, runUID string) error {
	var pool v1alpha1.BenchmarkPool
	if err := r.Live.Get(ctx, types.NamespacedName{Name: name}, &pool); err != nil {
		return client.IgnoreNotFound(err)
	}
	ours := pool.Labels[v1alpha1.LabelBenchmarkUID] == string(benchmark.UID) && pool.Labels[v1alpha1.LabelReset] != "" &&
		pool.Labels[v1alpha1.LabelRunUID] == runUID
	if !ours || !pool.DeletionTimestamp.IsZero() {
		return nil // the cache will show it, and the planner will decide again
	}
	var user v1alpha1.BenchmarkRun
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: benchmark.Namespace, Name: pool.Labels[v1alpha1.LabelRun]}, &user)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("confirm that no run is using BenchmarkPool %s: %w", name, err)
	}
	if err == nil && string(user.UID) == runUID && !runs.Settled(&user) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, &pool, client.Preconditions{UID: &pool.UID, ResourceVersion: &pool.ResourceVersion}))
}

// keepsPools reports, from a live read, whether the benchmark still has kept pools on a node: then their disks are not free. A pool that is
// stuck, or whose run is not torn down, blocks its disks, but not the node.
func (r *Reconciler) keepsPools(ctx context.Context, observed *observation, node string, runs []v1alpha1.BenchmarkRun) (bool, error) {
	if r.WithoutAgent {
		return false, nil
	}
	var pools v1alpha1.BenchmarkPoolList
	if err := r.Live.List(ctx, &pools, keptOf(observed.Benchmark)...); err != nil {
		return false, fmt.Errorf("confirm that the disks are free: %w", err)
	}
	state := observed.State
	state.Runs, state.Pools = runs, nil
	for i := range pools.Items {
		state.Pools = append(state.Pools, experiment.KeptPoolOf(&pools.Items[i]))
	}
	return experiment.KeepsNode(state, node), nil
}

// keeperOf returns the benchmark that keeps a pool.
func (r *Reconciler) keeperOf(object client.Object) []types.NamespacedName {
	labels := object.GetLabels()
	if labels[v1alpha1.LabelReset] == "" {
		return nil
	}
	return r.Line.Key(labels[v1alpha1.LabelBenchmarkUID])
}
