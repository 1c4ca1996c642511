package benchmark

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/experiment"
)

// rehearse has the API server validate a run with a dry run, once for each experiment and variant: a Stalled benchmark asks for rehearsals
// in every reconcile, and every change of its annotations causes a reconcile. After the first refusal, no other runs are tried.
func (r *Reconciler) rehearse(ctx context.Context, observed *observation, run *v1alpha1.BenchmarkRun) error {
	observed.Rehearsed, observed.changed = true, true
	if refusal := r.rehearsed.refusal(observed.Benchmark, run); refusal != nil {
		observed.SpecError = refusal
	}
	if observed.SpecError == nil && !r.rehearsed.passed(observed.Benchmark, run) {
		return r.dryRun(ctx, observed, run)
	}
	return nil
}

func (r *Reconciler) dryRun(ctx context.Context, observed *observation, run *v1alpha1.BenchmarkRun) error {
	switch err := r.Client.Create(ctx, run, client.DryRunAll); {
	case refuses(err):
		observed.SpecError = experiment.RefusedRun(run, err)
	case client.IgnoreAlreadyExists(err) != nil:
		return fmt.Errorf("dry run of variant %q: %w", run.Spec.Variant, err)
	default:
		r.rehearsed.pass(observed.Benchmark, run)
	}
	return nil
}

// refuses reports whether the API server rejected a run as invalid, so that another attempt would not help.
func refuses(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }

// rehearsals remembers, for the current experiment of each benchmark, which variants the API server has accepted.
type rehearsals struct {
	mutex sync.Mutex
	of    map[types.NamespacedName]rehearsal
}

type rehearsal struct {
	benchmark  types.UID
	generation int64
	experiment string
	variants   sets.Set[string]
	// refusal is why the API server refused to create a run that was not rehearsed, or that differed from the rehearsed one.
	refusal *design.SpecError
}

func (r *rehearsals) passed(benchmark *v1alpha1.StorageBenchmark, run *v1alpha1.BenchmarkRun) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.of[client.ObjectKeyFromObject(benchmark)]
	return known.of(benchmark, run) && known.variants.Has(run.Spec.Variant)
}

// refusal returns why the API server refused to create a run of the experiment, or nil if it refused none.
func (r *rehearsals) refusal(benchmark *v1alpha1.StorageBenchmark, run *v1alpha1.BenchmarkRun) *design.SpecError {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if known := r.of[client.ObjectKeyFromObject(benchmark)]; known.of(benchmark, run) {
		return known.refusal
	}
	return nil
}

func (r *rehearsals) pass(benchmark *v1alpha1.StorageBenchmark, run *v1alpha1.BenchmarkRun) {
	r.note(benchmark, run, func(known *rehearsal) { known.variants.Insert(run.Spec.Variant) })
}

func (r *rehearsals) refuse(benchmark *v1alpha1.StorageBenchmark, run *v1alpha1.BenchmarkRun, why *design.SpecError) {
	r.note(benchmark, run, func(known *rehearsal) { known.refusal = why })
}

func (r *rehearsals) note(benchmark *v1alpha1.StorageBenchmark, run *v1alpha1.BenchmarkRun, what func(known *rehearsal)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	key := client.ObjectKeyFromObject(benchmark)
	known := r.of[key]
	if !known.of(benchmark, run) {
		known = rehearsal{benchmark.UID, benchmark.Generation, run.Spec.Experiment, sets.New[string](), nil}
	}
	what(&known)
	if r.of == nil {
		r.of = map[types.NamespacedName]rehearsal{}
	}
	r.of[key] = known
}

// forget removes a benchmark that is gone.
func (r *rehearsals) forget(key types.NamespacedName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.of, key)
}

func (r rehearsal) of(benchmark *v1alpha1.StorageBenchmark, run *v1alpha1.BenchmarkRun) bool {
	return r.benchmark == benchmark.UID && r.generation == benchmark.Generation && r.experiment == run.Spec.Experiment
}
