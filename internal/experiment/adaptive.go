package experiment

import (
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// extended reports whether more repetitions are planned than spec.repetitions: some exist already, or the results announce them.
func extended(state State) bool {
	if state.Benchmark.Spec.Adaptive == nil {
		return false
	}
	if stored := findResults(state, state.Experiment); stored != nil && stored.Extended {
		return true
	}
	return slices.ContainsFunc(state.Runs, func(run v1alpha1.BenchmarkRun) bool {
		return run.Spec.Experiment == state.Experiment && run.Spec.Repetition > state.Benchmark.Spec.Repetitions
	})
}

// slotsInUse returns the slots of the repetitions that are currently planned.
func slotsInUse(state State) []design.Slot {
	if extended(state) {
		return state.Slots
	}
	asked := slices.IndexFunc(state.Slots, func(slot design.Slot) bool { return slot.Repetition > state.Benchmark.Spec.Repetitions })
	if state.Benchmark.Spec.Adaptive == nil || asked < 0 {
		return state.Slots
	}
	return state.Slots[:asked] // variants are interleaved, so the additional repetitions come last
}

// extend reports whether more repetitions could decide the undecided gates and fit into the remaining time.
func extend(spec *v1alpha1.StorageBenchmarkSpec, experiment *results.Experiment, now time.Time) bool {
	if spec.Adaptive == nil || experiment.Repetitions >= design.MostRepetitions(spec) || experiment.State != results.StateComplete ||
		experiment.Verdict != string(v1alpha1.VerdictInconclusive) {
		return false
	}
	open := slices.ContainsFunc(experiment.Gates, func(one results.GateResult) bool {
		return one.Reason == gate.ReasonUnclear || one.Reason == gate.ReasonTooFewRuns
	})
	return open && fitsInto(spec, experiment, now)
}

// fitsInto reports whether all repetitions, at the pace so far, finish within the budget and the deadline. The results may be judged long
// after the last run: that time is spent, but it says nothing about the pace.
func fitsInto(spec *v1alpha1.StorageBenchmarkSpec, experiment *results.Experiment, now time.Time) bool {
	if experiment.StartedAt == nil || experiment.FinishedAt == nil || experiment.Repetitions < 1 {
		return false
	}
	took := experiment.FinishedAt.Sub(*experiment.StartedAt)
	more := took / time.Duration(experiment.Repetitions) * time.Duration(design.MostRepetitions(spec)-experiment.Repetitions)
	expected := now.Sub(*experiment.StartedAt) + more
	for _, limit := range []*v1alpha1.Duration{spec.Adaptive.Budget, spec.Deadline} {
		if limit != nil && expected > limit.Duration.Duration {
			return false
		}
	}
	return true
}
