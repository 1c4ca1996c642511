package plan

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
)

// OperationDataset is the full name of a dataset of a pool; the pool's root if the path is empty.
func OperationDataset(pool *v1alpha1.BenchmarkPool, path v1alpha1.DatasetPath) string {
	if path == "" {
		return PoolName(pool)
	}
	return PoolName(pool) + "/" + string(path)
}

// ours says whether an object was made by this operation.
func (s OperationState) ours(object OperationObject) bool {
	return object.Exists && object.Mark == string(s.Operation.UID)
}

func (s OperationState) sourceMissing() *obstacle {
	if s.Source.Exists {
		return nil
	}
	return refuses(v1alpha1.ReasonDatasetNotFound, "there is no dataset %s", s.Source.Name)
}

func beginSnapshot(state OperationState) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	if state.Snapshot.Exists {
		return "", refuses(v1alpha1.ReasonSnapshotExists, "there is a snapshot %s already, which this operation did not take: choose another name", state.Snapshot.Name)
	}
	return "", nil
}

func snapshotStage(state OperationState) operationStage {
	snapshot := state.Snapshot
	switch {
	case state.ours(snapshot):
		return done([]v1alpha1.OperationMetric{metric("referencedBytes", snapshot.ReferencedBytes)}, "snapshot %s is taken", snapshot.Name)
	case snapshot.Exists:
		return failedStage(v1alpha1.ReasonSnapshotExists, "somebody else took a snapshot %s meanwhile: choose another name", snapshot.Name)
	}
	return pending("takes snapshot %s", snapshot.Name)
}

func beginClone(state OperationState) (string, *obstacle) {
	if !state.Snapshot.Exists {
		return "", refuses(v1alpha1.ReasonSnapshotNotFound, "there is no snapshot %s", state.Snapshot.Name)
	}
	return "", state.targetTaken()
}

func (s OperationState) targetTaken() *obstacle {
	if !s.Target.Exists {
		return nil
	}
	return refuses(v1alpha1.ReasonDatasetExists, "there is a dataset %s already, which this operation did not make: choose another path", s.Target.Name)
}

func cloneStage(state OperationState) operationStage {
	switch {
	case state.ours(state.Target):
		return done([]v1alpha1.OperationMetric{metric("referencedBytes", state.Target.ReferencedBytes)}, "dataset %s is a clone of %s", state.Target.Name, state.Snapshot.Name)
	case state.Target.Exists:
		return failedStage(v1alpha1.ReasonDatasetExists, "somebody else made dataset %s meanwhile: choose another path", state.Target.Name)
	}
	return pending("clones %s to %s", state.Snapshot.Name, state.Target.Name)
}

// beginDestroy remembers the dataset by its guid: one of the same name that is made later is another.
func beginDestroy(state OperationState) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	if another := isMeant(state.Operation.Spec.Action.DestroyDataset.GUID, "dataset "+state.Source.Name, state.Source.GUID); another != nil {
		return "", another
	}
	if len(state.Users) > 0 {
		return "", waits(v1alpha1.ReasonDatasetInUse, operationSoon, "waiting until nobody uses dataset %s: %s", state.Source.Name, someOf(state.Users))
	}
	return state.Source.GUID, nil
}

// destroyStage follows the freeing of the space, which goes on in the background. ZFS tells it for the pool as a whole.
func destroyStage(state OperationState) operationStage {
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
		stage := done([]v1alpha1.OperationMetric{metric("freedBytes", total), state.seconds()}, "dataset %s is destroyed and its space is free", name)
		stage.progress = progressOf(total, total)
		return stage
	}
	stage := running("dataset %s is destroyed; pool %s still frees %d bytes", name, state.Live.Name, state.Live.FreeingBytes)
	stage.progress = progressOf(total-state.Live.FreeingBytes, total)
	return stage
}

func progressOf(doneBytes, total int64) *v1alpha1.OperationProgress {
	progress := &v1alpha1.OperationProgress{DoneBytes: doneBytes, TotalBytes: total}
	if total > 0 && doneBytes > 0 {
		progress.Percent = int32(min(100*(float64(doneBytes)/float64(total)), 100))
	}
	return progress
}

// beginReplicate remembers the guid of the other pool.
func beginReplicate(state OperationState) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	return state.ToLive.GUID, state.targetTaken()
}

func beginCopy(state OperationState) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	if !state.Target.Exists {
		return "", refuses(v1alpha1.ReasonDatasetNotFound, "there is no dataset %s to copy to: make it first", state.Target.Name)
	}
	for _, object := range []OperationObject{state.Source, state.Target} {
		if object.Type != "filesystem" {
			return "", refuses(v1alpha1.ReasonNotSupported, "dataset %s is a %s: copy takes file systems; use replicate", object.Name, object.Type)
		}
	}
	if !state.Target.Empty {
		return "", refuses(v1alpha1.ReasonTargetNotEmpty, "dataset %s has files already: copy to an empty one", state.Target.Name)
	}
	return state.Target.GUID, nil
}

func beginLayoutScore(state OperationState) (string, *obstacle) { return "", state.sourceMissing() }

func beginMetaslabMap(OperationState) (string, *obstacle) { return "", nil }

func beginObserve(state OperationState) (string, *obstacle) { return state.Agent, nil }

// observeStage never joins two halves: a window that its agent did not see through is no window.
func observeStage(state OperationState) operationStage {
	interrupted := func(why string) operationStage {
		return failedStage(v1alpha1.ReasonObservationInterrupted, "the window has a hole: %s. Observe again", why)
	}
	job := state.Job
	if state.handleDetail() != state.Agent {
		return interrupted("the agent was started again meanwhile")
	}
	if job != nil && !job.Running && job.Err != nil && !job.Stopped {
		return interrupted(job.Err.Error())
	}
	stage := jobStage(state)
	if stop := state.stop(); stage.at == stageDone && job.Stopped && stop != nil && stop.outcome == OutcomeFailed {
		return stopped("%s", stop.message)
	}
	return stage
}
