package runs

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// rebooted ends a run whose node was rebooted after one of its phases had started. A reboot loses caches and module parameters, and the
// kubelet restarts the containers of a pod, on data that their first start has changed.
func rebooted(state State) *Ending {
	if state.BootID == "" {
		return nil
	}
	for i, phase := range slices.Backward(state.Phases) {
		if began := phase.Executor.BootID; began != "" && began != state.BootID {
			return invalid(v1alpha1.ReasonNodeRebooted, true, "node %s was rebooted after phase %s had started (boot %s then, %s now): "+
				"its measurements are not comparable any more", state.Run.Spec.NodeName, state.Run.Spec.Phases[i].Name, began, state.BootID)
		}
	}
	return nil
}

// BootDecides reports whether a result is about to be stored. If so, the boot ID is read from the API server.
func BootDecides(state State) bool {
	return slices.ContainsFunc(state.Phases, func(phase PhaseState) bool { return phase.Stored == nil && phase.Pod.Ended != nil })
}
