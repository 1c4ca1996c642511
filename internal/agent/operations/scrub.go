package operations

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

var scrubKind = traits{unhealthy: true, begin: beginScrub, stage: scrubStage}

func beginScrub(state State) (string, *obstacle) {
	if state.Live.Status.Resilvering() {
		return "", waits(v1alpha1.ReasonScanRunning, operationSoon, "waiting: pool %s is rebuilding data onto a disk", state.Live.Name)
	}
	return "", state.tooRecent(state.Live.Status.Scan)
}

func scrubStage(state State) operationStage {
	scan := state.Live.Status.Scan
	if scan != nil && scan.Function != "scrub" && scan.State == zfs.Running {
		return operationStage{at: stageBlocked, reason: v1alpha1.ReasonScanRunning, recheck: operationSoon,
			message: fmt.Sprintf("waiting: pool %s is rebuilding data onto a disk; the scrub follows", state.Live.Name)}
	}
	if scan == nil || scan.Function != "scrub" || !state.byUs(scan) {
		return pending("scrubbing pool %s", state.Live.Name)
	}
	var stage operationStage
	switch scan.State {
	case zfs.Running:
		stage = running("scrubbing pool %s", state.Live.Name)
		stage.stoppable = true
	case zfs.Paused:
		stage = running("the scrub of pool %s is paused: 'zpool scrub %s' on the node resumes it", state.Live.Name, state.Live.Name)
		stage.stoppable = true
	case zfs.Stopped:
		stage = stopped("the scrub of pool %s was stopped outside of this operation", state.Live.Name)
	default:
		stage = scrubbed(state, *scan)
	}
	stage.progress = state.progress(*scan)
	return stage
}

// scrubbed is a success even if errors were found: finding them is its purpose.
func scrubbed(state State, scan zfs.Progress) operationStage {
	dataErrors := max(state.Live.Status.DataErrors, 0)
	message := fmt.Sprintf("pool %s is scrubbed: no errors", state.Live.Name)
	if scan.Errors > 0 || scan.RepairedBytes > 0 || dataErrors > 0 {
		message = fmt.Sprintf("pool %s is scrubbed: %d errors found that could not be repaired, %d bytes repaired, %d files or blocks lost; "+
			"see 'zpool status -v' on the node",
			state.Live.Name, scan.Errors, scan.RepairedBytes, dataErrors)
	}
	metrics := []v1alpha1.OperationMetric{metric("repairedBytes", scan.RepairedBytes), metric("errorsFound", scan.Errors),
		metric("dataErrors", dataErrors), state.durationOf(scan)}
	if scanned := max(scan.TotalBytes, scan.DoneBytes); scanned > 0 { // OpenZFS before 2.3 does not say
		metrics = append(metrics, metric("scannedBytes", scanned))
	}
	return done(metrics, "%s", message)
}
