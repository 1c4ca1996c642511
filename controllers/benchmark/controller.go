// Package benchmark reconciles StorageBenchmarks: it expands them into runs, queues for a node, creates one run after another,
// judges their metrics and writes the results.
package benchmark

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/storagebench/storagebench/internal/experiment"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// Reconciler reconciles StorageBenchmarks.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Recorder emits events for what has been written to the status.
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// LeaseNamespace holds the Leases of the nodes.
	LeaseNamespace string
	// Limits are set by the admin. TeardownGrace is how long a teardown without progress holds the node.
	Limits        experiment.Limits
	TeardownGrace time.Duration
	// RunnerImage of new experiments.
	RunnerImage string
	// PostgresImage replaces it in experiments with the workload postgres, if set: it is the same image with PostgreSQL.
	PostgresImage string
	// WithoutAgent says that no agent is installed: the manager has no permissions for pools, and requests nothing that needs them.
	WithoutAgent bool
	// WithoutClusterReads says that the manager may read neither nodes nor StorageClasses.
	WithoutClusterReads bool
}

// Reconcile observes, plans, acts and summarises.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
	var benchmark v1alpha1.StorageBenchmark
	if err := r.Live.Get(ctx, request.NamespacedName, &benchmark); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	observed, err := r.observe(ctx, &benchmark)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := experiment.Plan(observed.State)
	actErr := r.act(ctx, observed, decision)
	if actErr == nil && gone(decision) {
		return reconcile.Result{}, nil
	}
	if actErr != nil && !apierrors.IsConflict(actErr) {
		decision.Reason, decision.Message = v1alpha1.ReasonActionFailed, actErr.Error()+" (will be retried)"
	}
	if err := r.writeStatus(ctx, &benchmark, summarise(observed, decision)); err != nil {
		return reconcile.Result{}, errors.Join(actErr, err)
	}
	if actErr != nil {
		return reconcile.Result{}, actErr
	}
	if !decision.WakeAt.IsZero() {
		result.RequeueAfter = max(decision.WakeAt.Sub(r.Clock.Now()), 10*time.Millisecond)
	}
	return result, nil
}

// gone says that the object has been released or deleted: there is no status left to write.
func gone(decision experiment.Decision) bool {
	for _, action := range decision.Actions {
		if action.Kind == experiment.RemoveBenchmarkFinalizer || action.Kind == experiment.DeleteBenchmark {
			return true
		}
	}
	return false
}

// writeStatus writes a changed status. The update carries the observed resourceVersion: a status that has changed meanwhile is not
// overwritten, and the conflict causes another reconcile.
func (r *Reconciler) writeStatus(ctx context.Context, benchmark *v1alpha1.StorageBenchmark, status v1alpha1.StorageBenchmarkStatus) error {
	if kstatus.Same(benchmark.Status, status) {
		return nil
	}
	before := benchmark.Status
	changed := benchmark.DeepCopy()
	changed.Status = status
	if err := r.Client.Status().Update(ctx, changed); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of benchmark %s/%s: %w", benchmark.Namespace, benchmark.Name, err))
	}
	r.announce(benchmark, before, status)
	return nil
}
