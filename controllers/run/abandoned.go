package run

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// deleteAbandoned deletes a run at rest whose benchmark is gone. Normally, a benchmark deletes its runs before it goes, and garbage
// collection deletes those that still name it as their owner. This is for a run that was orphaned ('kubectl delete --cascade=orphan') while
// the finalizer of its benchmark was removed by hand, for example because no manager was running. Nothing else would free what the run
// keeps, such as the disks of a pool.
func (r *Reconciler) deleteAbandoned(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	uid := run.Labels[v1alpha1.LabelBenchmarkUID]
	if uid == "" || metav1.GetControllerOf(run) != nil {
		return nil
	}
	key := types.NamespacedName{Namespace: run.Namespace, Name: run.Spec.Benchmark}
	for _, reader := range []client.Reader{r.Client, r.Live} { // the cache may not show it yet
		var benchmark v1alpha1.StorageBenchmark
		switch err := reader.Get(ctx, key, &benchmark); {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("look for benchmark %s of run %s: %w", key, run.Name, err)
		case err == nil && string(benchmark.UID) == uid:
			return nil
		}
	}
	err := r.Client.Delete(ctx, run, client.Preconditions{UID: &run.UID, ResourceVersion: &run.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete run %s/%s, whose benchmark is gone: %w", run.Namespace, run.Name, err)
	}
	return nil
}
