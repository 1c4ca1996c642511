package operation

import (
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// endJobs ends the running jobs when the agent is stopped. Such an end does not count as an attempt: only work that kills the agent counts.
// endJobs also records the progress of each job, which shows that the job was interrupted.
func (r *Reconciler) endJobs(ctx context.Context) {
	const patience = 10 * time.Second
	interrupted := r.jobs.stopAll()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for name, progress := range interrupted {
		if err := r.uncount(ctx, name, progress); err != nil {
			ctrl.Log.Error(err, "cannot remove the attempt of an agent that was stopped normally")
		}
	}
}

func (r *Reconciler) uncount(ctx context.Context, name string, progress *v1alpha1.OperationProgress) error {
	var operation v1alpha1.PoolOperation
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &operation); err != nil {
		return client.IgnoreNotFound(err)
	}
	at := slices.Index(operation.Status.Attempts, r.Agent)
	if at < 0 || operation.Status.Outcome != "" {
		return nil
	}
	operation.Status.Attempts = slices.Delete(operation.Status.Attempts, at, at+1)
	if progress != nil && progress.DoneBytes > 0 {
		operation.Status.Progress = progress
		operation.Status.Progress.Message = ""
	}
	if err := r.Client.Status().Update(ctx, &operation); err != nil {
		return fmt.Errorf("remove the attempt from PoolOperation %s: %w", name, err)
	}
	return nil
}
