package operations

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
)

var observeKind = traits{concurrent: true, unhealthy: true, offline: true, begin: beginObserve, stage: observeStage}

func beginObserve(state State) (string, *obstacle) { return state.Agent, nil }

// observeStage never combines two parts of a window: if a single agent process did not observe the whole window, the observation is
// invalid.
func observeStage(state State) operationStage {
	const incomplete = "the observation is incomplete: %s. Create another one"
	job := state.Job
	if state.handleDetail() != state.Agent {
		return failedStage(v1alpha1.ReasonAgentRestarted, incomplete, "the agent was restarted meanwhile")
	}
	if job != nil && !job.Running && job.Err != nil && !job.Stopped {
		return failedStage(v1alpha1.ReasonObservationInterrupted, incomplete, job.Err.Error())
	}
	stage := jobStage(state)
	if stop := state.stop(); stage.at == stageDone && job.Stopped && stop != nil && stop.outcome == v1alpha1.OutcomeFailed {
		return stopped("%s", stop.message)
	}
	return stage
}
