// Package benchmark reconciles StorageBenchmarks: it expands them into runs, queues for a node, creates one run after another,
// judges their metrics and writes the results.
package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/experiment"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/fresh"
	"github.com/storagebench/storagebench/controllers/line"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// Reconciler reconciles StorageBenchmarks.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Documents reads the results of phases from the API server. It has no client-side throttle: with one, reading the thousands of results
	// at the end of an experiment would take minutes. Results that the manager has just stored come from memory.
	Documents client.Reader
	// Recorder emits events for what has been written to the status.
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// LeaseNamespace holds the Leases of the nodes.
	LeaseNamespace string
	// Line holds the queues of the nodes. The watches keep it up to date.
	Line *line.Index
	// Runs remembers the runs that this controller creates.
	Runs *fresh.Memory[*v1alpha1.BenchmarkRun]
	// memory saves live reads of the benchmarks that hold nodes.
	memory fresh.Memory[*v1alpha1.StorageBenchmark]
	// places are the benchmarks that have only moved in their queues.
	places queue
	// rehearsed remembers the runs that the API server would accept.
	rehearsed rehearsals
	// Limits are set by the admin. TeardownGrace is how long a teardown without progress holds the node.
	Limits        experiment.Limits
	TeardownGrace time.Duration
	// Images are the images for new experiments.
	Images experiment.Images
	// WithoutAgent is true if no agent is installed: the manager has no permissions for pools, and requests nothing that needs them.
	WithoutAgent bool
	// WithoutClusterReads is true if the manager may read neither nodes nor StorageClasses.
	WithoutClusterReads bool
}

// Reconcile observes, plans, acts and summarises.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
	ctx, end := patiently(ctx)
	defer end()
	read, err := r.memory.Get(ctx, r.Client, r.Live, request.NamespacedName, &v1alpha1.StorageBenchmark{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			r.rehearsed.forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	benchmark := *read.DeepCopy()
	r.keep(read)
	observed, err := r.observe(ctx, &benchmark)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision, actErr := r.decide(ctx, observed)
	if actErr != nil && decision.Position == experiment.PositionRehearsing {
		return reconcile.Result{}, actErr
	}
	if actErr == nil && gone(decision) {
		return reconcile.Result{}, nil
	}
	if actErr != nil && !apierrors.IsConflict(actErr) {
		decision.Reason, decision.Message = v1alpha1.ReasonActionFailed, actErr.Error()+" (will be retried)"
	}
	if err := r.writeStatus(ctx, &benchmark, summarise(observed, decision), actErr == nil && begins(decision)); err != nil {
		return reconcile.Result{}, errors.Join(actErr, err)
	}
	if actErr != nil {
		return reconcile.Result{}, actErr
	}
	if !decision.WakeAt.IsZero() {
		result.RequeueAfter = max(decision.WakeAt.Sub(r.Clock.Now()), 10*time.Millisecond)
	}
	if observed.again && (result.RequeueAfter == 0 || result.RequeueAfter > time.Second) {
		result.RequeueAfter = time.Second
	}
	return result, nil
}

// decide plans and acts, and repeats both as long as the actions change the planner's State. This way, a reconcile need not wait until the
// cache shows what it has just written.
func (r *Reconciler) decide(ctx context.Context, observed *observation) (decision experiment.Decision, err error) {
	more, err := rounds(func() (bool, error) {
		decision = experiment.Plan(observed.State)
		if experiment.Joins(observed.State, decision) {
			entry := EntryOf(observed.Benchmark, r.Limits)
			entry.Nodes = decision.NodeNames
			observed.Turn = r.Line.Turn(entry)
		}
		observed.changed = false
		err := r.act(ctx, observed, decision)
		return observed.changed, err
	})
	observed.again = observed.again || more
	return decision, err
}

// mostRounds limits the rounds of one reconcile. Three are usual: a Lease and a run, or results, history and release. A reconcile that
// never ends would occupy a worker that others need.
const mostRounds = 8

// rounds repeats a step as long as it changes something, up to mostRounds. more is true if the last allowed round still changed something.
func rounds(step func() (changed bool, err error)) (more bool, err error) {
	for range mostRounds {
		if more, err = step(); err != nil || !more {
			return false, err
		}
	}
	return more, nil
}

// keep remembers a benchmark that holds a node or is next for one. The cache holds only a part of its spec, and keeping the specs of all
// benchmarks would fill the memory.
func (r *Reconciler) keep(benchmark *v1alpha1.StorageBenchmark) {
	if key := client.ObjectKeyFromObject(benchmark); r.Line.Urgency(key) > line.Usual {
		r.memory.Keep(benchmark)
	} else {
		r.memory.Forget(key)
	}
}

// begins reports whether a run was just created, or has no status yet.
func begins(decision experiment.Decision) bool {
	if decision.Position != experiment.PositionRunning {
		return false
	}
	if decision.Current != nil {
		reason, _ := readyReason(decision.Current)
		return reason == ""
	}
	return slices.ContainsFunc(decision.Actions, func(action experiment.Action) bool { return action.Kind == experiment.CreateRun })
}

// gone reports whether the object has been released or deleted: then there is no status left to write.
func gone(decision experiment.Decision) bool {
	return slices.ContainsFunc(decision.Actions, func(action experiment.Action) bool {
		return action.Kind == experiment.RemoveBenchmarkFinalizer || action.Kind == experiment.DeleteBenchmark
	})
}

// writeStatus writes a changed status. The update carries the observed resourceVersion: a status that has changed meanwhile is not
// overwritten, and the conflict causes another reconcile. When a run begins and the experiment is already recorded, nothing is written: the
// first status of that run soon causes a write, and until then the Lease and the run contain all that the planner needs.
func (r *Reconciler) writeStatus(ctx context.Context, benchmark *v1alpha1.StorageBenchmark, status v1alpha1.StorageBenchmarkStatus,
	begins bool) error {
	if kstatus.Same(benchmark.Status, status) || begins && benchmark.Status.Experiment == status.Experiment {
		return nil
	}
	before := benchmark.Status
	changed := benchmark.DeepCopy()
	changed.Status = status
	if err := r.Client.Status().Update(ctx, changed); err != nil {
		why := rejected(err)
		if changed.Status = least(benchmark, status, why); why != "" && !kstatus.Same(before, changed.Status) {
			err = errors.Join(err, r.Client.Status().Update(ctx, changed))
		}
		return client.IgnoreNotFound(fmt.Errorf("write the status of benchmark %s/%s: %w", benchmark.Namespace, benchmark.Name, err))
	}
	if r.keep(changed); !kstatus.Same(remembered(before), remembered(status)) {
		r.memory.Keep(changed) // until the reconcile that this write causes
	}
	r.announce(benchmark, before, status)
	return nil
}

// rejected returns why the API server or etcd does not accept a status, and what to do about it, or "" if another attempt may succeed. It
// does not quote the error, because the order of the causes in it may change from one attempt to the next, and each change would cause a
// write.
func rejected(err error) string {
	switch {
	case apierrors.IsInvalid(err):
		return "the API server refuses the status as invalid: delete the ConfigMaps that name this benchmark as their owner and were not " +
			"created by storagebench; the log of the manager has the error"
	case apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "too large"):
		return "the status does not fit into the object: remove labels or annotations"
	}
	return ""
}
