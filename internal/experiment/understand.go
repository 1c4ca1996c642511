package experiment

import (
	"cmp"
	"errors"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/foresee"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/verdict"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// Understand expands the spec of a benchmark into its slots, compiles its gates and checks the limits of the admin. It stores mistakes in
// the spec as state.SpecError.
func Understand(state *State) (*gate.Set, error) {
	gates, err := understand(state)
	if state.SpecError = design.Combined(err); state.SpecError != nil {
		err = nil
	}
	return gates, err
}

func understand(state *State) (*gate.Set, error) {
	if state.TargetError != nil {
		return nil, state.TargetError
	}
	spec := &state.Benchmark.Spec
	slots, err := design.SlotsAt(state.Benchmark, state.ScheduledTime)
	if err == nil {
		state.Slots = slots
	}
	err = errors.Join(err, CheckSchedule(spec.Schedule))
	var gates *gate.Set
	if len(slots) > 0 {
		var wrong error
		if gates, wrong = gate.Compile(spec.Gates, spec.Phases, design.VariantNames(slots)); wrong != nil {
			err = errors.Join(err, &design.SpecError{Reason: v1alpha1.ReasonGateInvalid, Message: wrong.Error()})
		}
	}
	if err == nil {
		state.Undecidable = verdict.Undecidable(spec, gates)
	}
	if begun(*state) {
		return gates, err
	}
	foresight := foresee.Spec(spec, slots, gates)
	state.Warnings = foresight.Warnings
	if err = errors.Join(err, foresight.Err()); err != nil {
		return gates, err
	}
	return gates, cmp.Or(state.Limits.Check(spec, slots), state.Limits.CheckPriority(state.Benchmark))
}

// begun reports whether a run of the experiment was created. If so, limits that the admin sets later do not invalidate it.
func begun(state State) bool {
	status := state.Benchmark.Status
	return status.Experiment == state.Experiment && status.StartedAt != nil ||
		slices.ContainsFunc(state.Runs, func(run v1alpha1.BenchmarkRun) bool { return run.Spec.Experiment == state.Experiment })
}

// stalled reports whether an earlier reconciliation stopped because of the spec, or because the cluster lacks something.
func stalled(benchmark *v1alpha1.StorageBenchmark) bool {
	return kstatus.Stuck(benchmark.Status.Conditions) != nil
}
