package experiment

import (
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
)

// Identify sets the hash of the experiment, and replaces references to StorageTargets by their contents. An experiment that has begun keeps
// its hash: changes to StorageTargets take effect in the next experiment. If they have changed since it ended, Identify returns the name of
// a run whose target the caller reads and passes to UseTarget: the runs in the state have no complete targets.
func Identify(state *State, found map[string]v1alpha1.Target) (run string) {
	benchmark := state.Benchmark
	names := design.TargetNames(&benchmark.Spec)
	if len(names) == 0 {
		state.Experiment, state.Lineage = design.IDAt(benchmark, state.ScheduledTime), lineageOf(benchmark, "")
		return ""
	}
	state.TargetDigest = digestOf(names, found)
	state.Experiment, state.Lineage = idWith(benchmark, state.ScheduledTime, state.TargetDigest), lineageOf(benchmark, state.TargetDigest)
	kept := *state
	kept.Experiment, kept.TargetDigest = benchmark.Status.Experiment, benchmark.Status.TargetDigest
	if kept.TargetDigest != "" && kept.TargetDigest != state.TargetDigest && begun(kept) &&
		idWith(benchmark, state.ScheduledTime, kept.TargetDigest) == kept.Experiment {
		kept.Lineage = lineageOf(benchmark, kept.TargetDigest)
		*state = kept
		return keepTargets(state, names, found)
	}
	if missing := design.ReplaceTargets(&benchmark.Spec, found); len(missing) > 0 {
		state.TargetError = design.Refuse(v1alpha1.ReasonTargetNotFound, "there is no StorageTarget %s in namespace %s: create it, or write "+
			"another name in target.ref.name ('kubectl get storagetargets')", strings.Join(missing, ", "), benchmark.Namespace)
	}
	return ""
}

// keepTargets handles an experiment that began with StorageTargets that have changed since. Once it has finished, only the names and
// numbers of its runs are needed, so the target of any run will do: it returns the first one. An unfinished experiment gets a TargetError.
func keepTargets(state *State, names []string, found map[string]v1alpha1.Target) (run string) {
	benchmark := state.Benchmark
	at := slices.IndexFunc(state.Runs, func(run v1alpha1.BenchmarkRun) bool { return run.Spec.Experiment == state.Experiment })
	if benchmark.Status.FinishedAt != nil && at >= 0 {
		return state.Runs[at].Name
	}
	reason, what := v1alpha1.ReasonTargetChanged, "was changed after this experiment began"
	for _, name := range names {
		if _, exists := found[name]; !exists {
			reason, what = v1alpha1.ReasonTargetNotFound, "was deleted after this experiment began"
		}
	}
	state.TargetError = design.Refuse(reason, "StorageTarget %s %s: recreate it as it was, or change the annotation %s to start another "+
		"experiment", strings.Join(names, " or "), what, v1alpha1.AnnotationRerun)
	return ""
}

// UseTarget replaces all references to StorageTargets by one target.
func UseTarget(state *State, target v1alpha1.Target) {
	used := map[string]v1alpha1.Target{}
	for _, name := range design.TargetNames(&state.Benchmark.Spec) {
		used[name] = target
	}
	design.ReplaceTargets(&state.Benchmark.Spec, used)
}

// digestOf is a digest of the StorageTargets with the given names.
func digestOf(names []string, found map[string]v1alpha1.Target) string {
	type named struct {
		Name   string
		Target *v1alpha1.Target
	}
	var all []named
	for _, name := range names {
		one := named{Name: name}
		if target, exists := found[name]; exists {
			one.Target = &target
		}
		all = append(all, one)
	}
	return naming.Digest(all)
}

// idWith is the hash of an experiment whose StorageTargets have the given digest.
func idWith(benchmark *v1alpha1.StorageBenchmark, scheduled time.Time, targetDigest string) string {
	return naming.Digest([]string{design.IDAt(benchmark, scheduled), targetDigest})
}
