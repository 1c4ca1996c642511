package operations

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/naming"
)

var destroyDatasetKind = traits{job: true, begin: beginDestroy, stage: destroyStage, sized: true}

// beginDestroy records the guid of the dataset: a later dataset of the same name has another.
func beginDestroy(state State) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	if another := isMeant(state.Operation.Spec.Action.DestroyDataset.GUID, "dataset "+state.Source.Name, state.Source.GUID); another != nil {
		return "", another
	}
	if len(state.Users) > 0 {
		return "", waits(v1alpha1.ReasonDatasetInUse, operationSoon, "waiting until dataset %s is unused: %s", state.Source.Name,
			objects.SomeOf(state.Users))
	}
	return state.Source.GUID, nil
}

// AwaitedPoints is where the agent has mounted the dataset to destroy, if the spec of the pool awaits it: this use is its own.
func AwaitedPoints(state State) (points []string) {
	action := state.Operation.Spec.Action.DestroyDataset
	if action == nil || state.Pool == nil {
		return nil
	}
	for _, dataset := range state.Pool.Spec.Datasets {
		if dataset.Awaited && dataset.Path == action.Dataset {
			points = append(points, naming.MountPoint(naming.PoolName(state.Pool), dataset.Path))
		}
	}
	return points
}

// destroyStage follows the freeing of the space, which ZFS does in the background and reports only for the whole pool.
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
			return running("destroys %s", name) // the list is slightly out of date
		case stageBlocked, stageStopped, stageFailed:
		}
		return stage
	}
	total = max(total, state.Live.FreeingBytes)
	if state.Job != nil && state.Job.Running { // the command is about to return, and tells how long it took
		stage := running("destroys %s", name)
		stage.progress = progressOf(total-state.Live.FreeingBytes, total)
		return stage
	}
	if state.Live.FreeingBytes == 0 {
		stage := state.timed(done([]v1alpha1.OperationMetric{metric("freedBytes", total), state.seconds()},
			"dataset %s is destroyed and its space is free", name))
		stage.progress = progressOf(total, total)
		return stage
	}
	stage := running("dataset %s is destroyed; pool %s is still freeing %d bytes", name, state.Live.Name, state.Live.FreeingBytes)
	stage.progress = progressOf(total-state.Live.FreeingBytes, total)
	return stage
}
