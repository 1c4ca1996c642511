package operations

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
)

var cloneKind = traits{begin: beginClone, stage: cloneStage}

func beginClone(state State) (string, *obstacle) {
	if missing := state.snapshotMissing(); missing != nil {
		return "", missing
	}
	return "", state.targetTaken()
}

func cloneStage(state State) operationStage {
	switch {
	case state.ours(state.Target):
		return state.timed(done([]v1alpha1.OperationMetric{metric("referencedBytes", state.Target.ReferencedBytes)},
			"dataset %s is a clone of %s", state.Target.Name, state.Snapshot.Name))
	case state.Target.Exists:
		return failedStage(v1alpha1.ReasonDatasetExists, "dataset %s was created by others meanwhile: choose another path", state.Target.Name)
	}
	return pending("cloning %s to %s", state.Snapshot.Name, state.Target.Name)
}
