package runs

import (
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// RunParameters returns the names of the module parameters that a run sets, sorted.
func RunParameters(run *v1alpha1.BenchmarkRun) []string {
	if run.Spec.Target.ZFS == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(run.Spec.Target.ZFS.ModuleParameters))
}

// ParameterOperationName is the name of the PoolOperation that sets a module parameter for a run.
func ParameterOperationName(run *v1alpha1.BenchmarkRun, parameter string) string {
	return naming.OwnName(run, naming.VolumeData) + ".set." + strings.ReplaceAll(parameter, "_", "-")
}

// setParameters sets the module parameters of the target and waits for them. It returns nil once they are set, or if there are none.
func setParameters(state State, i int, decision Decision) *Decision {
	spec := state.Run.Spec.Phases[i]
	end := func(ending *Ending) *Decision { ended := decision.endsWith(ending); return &ended }
	for _, name := range RunParameters(state.Run) {
		operation := state.Parameters[name]
		overdue := state.beginOverdue(i, operation)
		switch {
		case operation == nil:
			decision.Actions = []Action{{Kind: SetParameters}}
			decision.Message = "setting the module parameters of the target"
		case HasEnded(operation):
			// Another attempt would have the same result, unless the parameter was set before.
			return end(invalid(v1alpha1.ReasonParameterNotSet, operation.Status.StartedAt != nil, "module parameter %s is not set: %s", name,
				operationWords(operation)))
		case !HasBegun(operation) && !state.Now.Before(overdue):
			return end(invalid(v1alpha1.ReasonParameterNotSet, false, "module parameter %s was not set within %s: %s", name,
				spec.StartDeadline.Duration.Duration, operationWords(operation)))
		case !HasBegun(operation):
			decision.Message = "waiting until module parameter " + name + " is set: " + operationWords(operation)
		default:
			continue
		}
		decision.Reason, decision.WakeAt = v1alpha1.ReasonPreparingVolume, overdue
		return &decision
	}
	return nil
}

// parametersEnding ends a run whose module parameters are no longer in effect.
func parametersEnding(state State) *Ending {
	for _, name := range RunParameters(state.Run) {
		operation := state.Parameters[name]
		switch {
		case operation == nil || !operation.DeletionTimestamp.IsZero():
			return invalid(v1alpha1.ReasonParameterNotSet, true,
				"PoolOperation %s, which kept module parameter %s, was deleted while the run needed it", ParameterOperationName(state.Run, name), name)
		case HasEnded(operation):
			return invalid(v1alpha1.ReasonParameterNotSet, true, "module parameter %s was not kept until the end of the run: %s", name,
				operationWords(operation))
		}
	}
	return nil
}
