package runs

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// rebooted ends a run whose node was rebooted since one of its phases began. Caches and module parameters are not what they were, and
// a kubelet that has lost its containers starts a pod a second time, on data that the first time has changed.
func rebooted(state State) *Ending {
	if state.BootID == "" {
		return nil
	}
	for i, phase := range slices.Backward(state.Phases) {
		if began := phase.Job.BootID; began != "" && began != state.BootID {
			return invalid(v1alpha1.ReasonNodeRebooted, true, "node %s was rebooted after phase %s had begun (boot %s then, %s now): "+
				"what it measures now is not what it began with", state.Run.Spec.NodeName, state.Run.Spec.Phases[i].Name, began, state.BootID)
		}
	}
	return nil
}

// BootDecides says that a result is about to be stored: then the boot is asked of the API server.
func BootDecides(state State) bool {
	for _, phase := range state.Phases {
		if phase.Stored == nil && phase.Pod.Ended != nil {
			return true
		}
	}
	return false
}
