package runs

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Emptying exports and imports the pool of a phase before the phase begins: an export drops everything that ZFS holds of a pool in memory.
// A workload pod cannot do that.
const Emptying Companion = "empty"

// Empties reports whether the caches of a phase's pool must be emptied for it: it declares a cold cache, and the phase before it has not
// emptied them.
func Empties(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase) bool {
	if run.Spec.Target.ZFS == nil || phase.Measure == nil || phase.Measure.Cache != v1alpha1.CacheCold {
		return false
	}
	at := slices.IndexFunc(run.Spec.Phases, func(other v1alpha1.Phase) bool { return other.Name == phase.Name })
	if at <= 0 {
		return true
	}
	before := run.Spec.Phases[at-1]
	return before.Operate == nil || before.Operate.ExportImport == nil || PhaseVolume(run, before).PoolOf != PhaseVolume(run, phase).PoolOf
}

// emptyFirst delays a phase until the caches of its pool are empty. It returns nil once they are.
func emptyFirst(state State, i int, decision Decision) *Decision {
	spec := state.Run.Spec.Phases[i]
	if !Empties(state.Run, spec) {
		return nil
	}
	operation := state.Phases[i].Companions[Emptying]
	overdue := state.beginOverdue(i, operation)
	end := func(ending *Ending) *Decision { ended := decision.endsWith(ending); return &ended }
	switch {
	case operation == nil:
		decision.Actions = []Action{{Kind: StartCompanion, Phase: i, Companion: Emptying}}
	case operation.Status.Outcome == v1alpha1.OutcomeSucceeded:
		return nil
	case HasEnded(operation):
		return end(failed(operation, "phase %s: its caches could not be emptied", spec.Name))
	case !state.Now.Before(overdue):
		return end(invalid(v1alpha1.ReasonPodNotStarted, false, "the caches of phase %s were not emptied within %s: %s", spec.Name,
			spec.StartDeadline.Duration.Duration, operationWords(operation)))
	}
	decision.Reason, decision.Message = underWay(state, i)
	decision.WakeAt = overdue
	return &decision
}
