package operations

import (
	"fmt"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

var moduleParameterKind = traits{concurrent: true, offline: true, begin: beginParameter, stage: parameterStage}

// ParameterState is the state of a module parameter on the node.
type ParameterState struct {
	// Grants of the admin.
	Grants ParameterAllowlist
	// Found on the node.
	Found bool
	// Record says what this operation has changed. Nil if there is none.
	Record *ParameterRecord
}

// ParameterRecord is kept on the node, so that the earlier value survives the agent.
type ParameterRecord struct {
	// Applied says that the value was set. Restored says that the earlier value is back.
	Applied, Restored bool
	// SameBoot says that the node has not been rebooted since.
	SameBoot bool
	// Earlier is the value before the operation. Value is the value that it has set, as the kernel shows it.
	Earlier, Value string
	// Changed is the value that another program has set since. Empty if none has.
	Changed string
}

func beginParameter(state State) (string, *obstacle) {
	node, action := state.Operation.Spec.NodeName, state.Operation.Spec.Action.ModuleParameter
	if refusal := state.Parameter.Grants.Refusal(node, action.Name, string(action.Value)); refusal != "" {
		return "", refuses(v1alpha1.ReasonParameterNotAllowed, "%s", refusal)
	}
	if !state.Parameter.Found {
		return "", refuses(v1alpha1.ReasonParameterNotFound, "the ZFS of node %s has no module parameter %s", node, action.Name)
	}
	return "", nil
}

// parameterStage returns the progress. A record that is not restored counts as a leftover, and until it is restored, no outcome is written.
func parameterStage(state State) operationStage {
	action, record := state.Operation.Spec.Action.ModuleParameter, state.Parameter.Record
	if record == nil || record.SameBoot && !record.Applied && !record.Restored {
		return pending("setting %s to %s", action.Name, action.Value)
	}
	over := time.Duration(0)
	if action.Duration != nil {
		over = action.Duration.Duration.Duration
	}
	stop := state.stop()
	inTime := over > 0 && over <= state.deadline() && state.elapsed() >= over
	switch {
	case !record.SameBoot && !record.Restored:
		return failedStage(v1alpha1.ReasonParameterInterrupted, "the node was rebooted, which reset %s to the node's own value", action.Name)
	case record.Changed != "":
		return failedStage(v1alpha1.ReasonParameterInterrupted, "another program has changed %s from %s to %s, which stays", action.Name,
			record.Value, record.Changed)
	case inTime || stop != nil && stop.reason == v1alpha1.ReasonCancelled:
		return done([]v1alpha1.OperationMetric{state.seconds()}, "%s was %s and is %s again", action.Name, action.Value, record.Earlier)
	case stop != nil:
		return stopped("%s", stop.message)
	case record.Restored:
		return failedStage(v1alpha1.ReasonParameterInterrupted, "%s was restored to %s before the operation ended", action.Name, record.Earlier)
	}
	stage := running("%s is %s, instead of %s", action.Name, action.Value, record.Earlier)
	stage.progress = &v1alpha1.OperationProgress{Message: "the parameter is set"}
	if over > 0 {
		stage.message += fmt.Sprintf(", for %s", over)
		stage.recheck = min(operationSoon, over-state.elapsed()) // the kernel does not report changes
	}
	return stage
}
