package operations

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/zfs"
)

var trimKind = traits{begin: beginTrim, stage: trimStage}

// trims returns the trims of the disk that the action names, or of all disks if it names none.
func (s State) trims() []zfs.Progress {
	device := string(s.Operation.Spec.Action.Trim.Device)
	var found []zfs.Progress
	for _, leaf := range s.Live.Status.Leaves() {
		if leaf.Trim != nil && (device == "" || s.isDisk(leaf, device)) {
			found = append(found, *leaf.Trim)
		}
	}
	return found
}

// trimmed returns the name of the disk to trim, as commands expect it, or "" for all disks.
func (s State) trimmed() string {
	device := string(s.Operation.Spec.Action.Trim.Device)
	if leaf, _, found := s.leaf(device); device != "" && found {
		return pools.MemberName(leaf)
	}
	return device
}

func beginTrim(state State) (string, *obstacle) {
	if device := string(state.Operation.Spec.Action.Trim.Device); device != "" {
		if _, _, found := state.leaf(device); !found {
			return "", refuses(v1alpha1.ReasonDeviceNotInPool, "%s is not a disk of pool %s", device, state.Live.Name)
		}
	}
	for _, trim := range state.trims() {
		if recent := state.tooRecent(&trim); recent != nil {
			return "", recent
		}
	}
	return "", nil
}

func trimStage(state State) operationStage {
	var sum zfs.Progress
	var active, paused, halted, disks int
	for _, trim := range state.trims() {
		if !state.byUs(&trim) {
			continue
		}
		disks++
		sum.DoneBytes, sum.TotalBytes, sum.Errors = sum.DoneBytes+trim.DoneBytes, sum.TotalBytes+trim.TotalBytes, sum.Errors+trim.Errors
		if trim.End.After(sum.End) {
			sum.End = trim.End
		}
		switch trim.State {
		case zfs.Running:
			active++
		case zfs.Paused:
			paused++
		case zfs.Stopped:
			halted++
		case zfs.Finished:
		}
	}
	percents := sum.TotalBytes <= int64(100*disks) // OpenZFS reports neither bytes nor errors before 2.3
	var stage operationStage
	switch {
	case disks == 0:
		stage = pending("trimming pool %s", state.Live.Name)
		stage.member = state.trimmed()
		return stage
	case active+paused > 0:
		stage = running("trimming pool %s: %d of %d disks active, %d paused", state.Live.Name, active, disks, paused)
		stage.stoppable, stage.member = true, state.trimmed()
	case halted > 0:
		stage = stopped("the trim of %s of pool %s was stopped outside of this operation", spelling.Count(halted, "disk"), state.Live.Name)
	default:
		sum.State = zfs.Finished
		metrics := []v1alpha1.OperationMetric{metric("trimmedDisks", int64(disks)), state.durationOf(sum)}
		with := ""
		if !percents {
			metrics = append(metrics, metric("errorsFound", sum.Errors), metric("trimmedBytes", sum.DoneBytes))
			with = ", with " + spelling.Count(int(sum.Errors), "error")
		}
		stage = done(metrics, "trimmed %s of pool %s%s", spelling.Count(disks, "disk"), state.Live.Name, with)
	}
	stage.progress = state.progress(sum)
	if percents {
		stage.progress.DoneBytes, stage.progress.TotalBytes = 0, 0
	}
	return stage
}
