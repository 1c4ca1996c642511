package plan

import (
	"fmt"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// clockSlack is how far the kernel's clock, which is coarse, may be behind ours.
const clockSlack = time.Second

// since says whether a moment, in whole seconds, belongs to this operation.
func (s OperationState) since(moment time.Time) bool {
	return !moment.IsZero() && !moment.Before(s.Operation.Status.StartedAt.Add(-clockSlack))
}

// byUs says whether something long was begun by this operation. Before OpenZFS 2.3, only the end of what has ended is told.
func (s OperationState) byUs(progress *zfs.Progress) bool {
	if progress == nil {
		return false
	}
	if !progress.Start.IsZero() {
		return s.since(progress.Start)
	}
	return progress.State == zfs.Running || s.since(progress.End)
}

// tooRecent keeps what has just ended from being taken for our own.
func (s OperationState) tooRecent(progress *zfs.Progress) *obstacle {
	if progress == nil {
		return nil
	}
	if progress.State == zfs.Running || progress.State == zfs.Paused {
		return waits(v1alpha1.ReasonScanRunning, operationSoon, "waiting for the %s that pool %s is doing already", progress.Function, s.Live.Name)
	}
	limit := s.Now.Truncate(time.Second).Add(-2 * clockSlack)
	for _, moment := range []time.Time{progress.Start, progress.End} {
		if !moment.IsZero() && !moment.Before(limit) {
			return waits(v1alpha1.ReasonScanRunning, 2*clockSlack, "waiting a moment: pool %s has just ended a %s", s.Live.Name, progress.Function)
		}
	}
	return nil
}

func (s OperationState) progress(of zfs.Progress) *v1alpha1.OperationProgress {
	return &v1alpha1.OperationProgress{Percent: int32(of.Percent()), DoneBytes: of.DoneBytes, TotalBytes: of.TotalBytes} //nolint:gosec // at most 100
}

func durationOf(of zfs.Progress, otherwise v1alpha1.OperationMetric) v1alpha1.OperationMetric {
	if of.Start.IsZero() || of.End.IsZero() {
		return otherwise
	}
	return metric(metricDuration, max(int64(of.End.Sub(of.Start)/time.Second), 0))
}

func beginScrub(state OperationState) (string, *obstacle) {
	if state.Live.Status.Resilvering() {
		return "", waits(v1alpha1.ReasonScanRunning, operationSoon, "waiting: pool %s rebuilds data onto a disk", state.Live.Name)
	}
	return "", state.tooRecent(state.Live.Status.Scan)
}

func scrubStage(state OperationState) operationStage {
	scan := state.Live.Status.Scan
	if scan != nil && scan.Function != "scrub" && scan.State == zfs.Running {
		return operationStage{at: stageBlocked, reason: v1alpha1.ReasonScanRunning, recheck: operationSoon,
			message: fmt.Sprintf("waiting: pool %s rebuilds data onto a disk, and scrubs afterwards", state.Live.Name)}
	}
	if scan == nil || scan.Function != "scrub" || !state.byUs(scan) {
		return pending("scrubs pool %s", state.Live.Name)
	}
	var stage operationStage
	switch scan.State {
	case zfs.Running:
		stage = running("scrubs pool %s", state.Live.Name)
		stage.stoppable = true
	case zfs.Paused:
		stage = running("the scrub of pool %s is paused: 'zpool scrub %s' on the node resumes it", state.Live.Name, state.Live.Name)
		stage.stoppable = true
	case zfs.Stopped:
		stage = stopped("somebody stopped the scrub of pool %s", state.Live.Name)
	default:
		stage = scrubbed(state, *scan)
	}
	stage.progress = state.progress(*scan)
	return stage
}

// scrubbed is a success also if errors were found: to find them was the task.
func scrubbed(state OperationState, scan zfs.Progress) operationStage {
	dataErrors := max(state.Live.Status.DataErrors, 0)
	message := fmt.Sprintf("pool %s is scrubbed: no errors", state.Live.Name)
	if scan.Errors > 0 || scan.RepairedBytes > 0 || dataErrors > 0 {
		message = fmt.Sprintf("pool %s is scrubbed: %d errors found that could not be repaired, %d bytes repaired, %d files or blocks lost; see 'zpool status -v' on the node",
			state.Live.Name, scan.Errors, scan.RepairedBytes, dataErrors)
	}
	return done([]v1alpha1.OperationMetric{metric("scannedBytes", max(scan.TotalBytes, scan.DoneBytes)), metric("repairedBytes", scan.RepairedBytes),
		metric("errorsFound", scan.Errors), metric("dataErrors", dataErrors), durationOf(scan, state.seconds())}, "%s", message)
}

// trims are those of the disks that are meant.
func (s OperationState) trims() []zfs.Progress {
	device := string(s.Operation.Spec.Action.Trim.Device)
	var found []zfs.Progress
	for _, leaf := range s.Live.Status.Leaves() {
		if leaf.Trim != nil && (device == "" || s.isDisk(leaf, device)) {
			found = append(found, *leaf.Trim)
		}
	}
	return found
}

// trimmed is how a command names the one disk that is meant; empty for all.
func (s OperationState) trimmed() string {
	device := string(s.Operation.Spec.Action.Trim.Device)
	if leaf, _, found := s.leaf(device); device != "" && found {
		return memberName(leaf)
	}
	return device
}

func beginTrim(state OperationState) (string, *obstacle) {
	if device := string(state.Operation.Spec.Action.Trim.Device); device != "" {
		if _, _, found := state.leaf(device); !found {
			return "", refuses(v1alpha1.ReasonDeviceNotInPool, "%s is no disk of pool %s", device, state.Live.Name)
		}
	}
	for _, trim := range state.trims() {
		if recent := state.tooRecent(&trim); recent != nil {
			return "", recent
		}
	}
	return "", nil
}

func trimStage(state OperationState) operationStage {
	var sum zfs.Progress
	var active, paused, halted, disks int
	for _, trim := range state.trims() {
		if !state.byUs(&trim) {
			continue
		}
		disks++
		sum.DoneBytes, sum.TotalBytes, sum.Errors = sum.DoneBytes+trim.DoneBytes, sum.TotalBytes+trim.TotalBytes, sum.Errors+trim.Errors
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
	var stage operationStage
	switch {
	case disks == 0:
		stage = pending("trims pool %s", state.Live.Name)
		stage.member = state.trimmed()
		return stage
	case active+paused > 0:
		stage = running("trims pool %s: %d of %d disks at work, %d paused", state.Live.Name, active, disks, paused)
		stage.stoppable, stage.member = true, state.trimmed()
	case halted > 0:
		stage = stopped("somebody stopped the trim of %d disks of pool %s", halted, state.Live.Name)
	default:
		sum.State = zfs.Finished
		metrics := []v1alpha1.OperationMetric{metric("trimmedDisks", int64(disks)), metric("errorsFound", sum.Errors), state.seconds()}
		// Before OpenZFS 2.3 only percents are told.
		if sum.TotalBytes > int64(100*disks) {
			metrics = append(metrics, metric("trimmedBytes", sum.DoneBytes))
		}
		stage = done(metrics, "%d disks of pool %s are trimmed, with %d errors", disks, state.Live.Name, sum.Errors)
	}
	stage.progress = state.progress(sum)
	return stage
}
