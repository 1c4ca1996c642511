package operations

import (
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// sizeOf returns a function for the size of the work: the space that destroying a dataset or snapshot frees. What is only reserved, as for
// a volume that is not full, holds nothing to free.
func sizeOf(object func(State) Object) func(State) int64 {
	return func(state State) int64 { return max(object(state).UsedBytes-object(state).ReservedBytes, 0) }
}

// destroys returns the stage function of a destruction. ZFS frees the space in the background, and reports the progress only for the whole
// pool.
func destroys(what string, object func(State) Object) func(State) operationStage {
	return func(state State) operationStage {
		name := object(state).Name
		total := int64(0)
		if known := state.Operation.Status.Progress; known != nil {
			total = known.TotalBytes
		}
		if object(state).Exists && object(state).GUID == state.handleDetail() {
			return stillThere(state, name, total)
		}
		total = max(total, state.Live.FreeingBytes)
		stage := running("%s %s is destroyed; pool %s is still freeing %d bytes", what, name, state.Live.Name, state.Live.FreeingBytes)
		switch {
		case state.Job != nil && state.Job.Running: // the command is about to return and will report how long it took
			stage = running("destroying %s", name)
		case state.Live.FreeingBytes == 0:
			stage = state.timed(done([]v1alpha1.OperationMetric{metric("freedBytes", total), state.seconds()},
				"%s %s is destroyed and its space is free", what, name))
		}
		stage.progress, stage.recheck = progressOf(total-state.Live.FreeingBytes, total), state.freeingPace(total)
		return stage
	}
}

// freeingPace returns when to check again while a pool frees space: more often towards the end, because no watch reports it.
func (s State) freeingPace(total int64) time.Duration {
	freed := total - s.Live.FreeingBytes
	if s.Job == nil || s.Job.Running || freed <= 0 {
		return s.pace()
	}
	left := s.Now.Sub(s.Job.EndedAt).Seconds() * float64(s.Live.FreeingBytes) / float64(freed)
	return time.Duration(min(s.pace().Seconds(), max(left/4, 1)) * float64(time.Second))
}

// stillThere returns the stage while the object still exists.
func stillThere(state State, name string, total int64) operationStage {
	stage := jobStage(state)
	switch stage.at {
	case stagePending:
		stage.message, stage.progress = "destroying "+name, &v1alpha1.OperationProgress{TotalBytes: total}
	case stageRunning:
		stage.message, stage.stoppable, stage.progress = "destroying "+name, false, &v1alpha1.OperationProgress{TotalBytes: total}
	case stageDone:
		return running("destroying %s", name) // the list is slightly out of date
	case stageBlocked, stageStopped, stageFailed:
	}
	return stage
}
