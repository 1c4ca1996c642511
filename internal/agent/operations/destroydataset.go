package operations

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
)

var destroyDatasetKind = traits{job: true, begin: beginDestroy, stage: destroyStage, sized: true}

// beginDestroy remembers the dataset by its guid: one of the same name that is made later is another.
func beginDestroy(state State) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	if another := isMeant(state.Operation.Spec.Action.DestroyDataset.GUID, "dataset "+state.Source.Name, state.Source.GUID); another != nil {
		return "", another
	}
	if len(state.Users) > 0 {
		return "", waits(v1alpha1.ReasonDatasetInUse, operationSoon, "waiting until nobody uses dataset %s: %s", state.Source.Name,
			pools.SomeOf(state.Users))
	}
	return state.Source.GUID, nil
}

// destroyStage follows the freeing of the space, which goes on in the background. ZFS tells it for the pool as a whole.
func destroyStage(state State) operationStage {
	name := state.Source.Name
	total := int64(0)
	if known := state.Operation.Status.Progress; known != nil {
		total = known.TotalBytes
	}
	if state.Source.Exists && state.Source.GUID == state.handleDetail() {
		stage := jobStage(state)
		switch stage.at {
		case stagePending:
			stage.message, stage.progress = "destroys "+name, &v1alpha1.OperationProgress{TotalBytes: total}
		case stageRunning:
			stage.message, stage.stoppable, stage.progress = "destroys "+name, false, &v1alpha1.OperationProgress{TotalBytes: total}
		case stageDone:
			return running("destroys %s", name) // what was listed is a moment old
		case stageBlocked, stageStopped, stageFailed:
		}
		return stage
	}
	total = max(total, state.Live.FreeingBytes)
	if state.Live.FreeingBytes == 0 {
		stage := done([]v1alpha1.OperationMetric{metric("freedBytes", total), state.seconds()}, "dataset %s is destroyed and its space is free",
			name)
		stage.progress = progressOf(total, total)
		return stage
	}
	stage := running("dataset %s is destroyed; pool %s still frees %d bytes", name, state.Live.Name, state.Live.FreeingBytes)
	stage.progress = progressOf(total-state.Live.FreeingBytes, total)
	return stage
}
