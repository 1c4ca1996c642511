package operations

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/zfs"
)

var replaceDeviceKind = traits{disks: true, unhealthy: true, once: true, begin: beginReplace, stage: replaceStage}

func beginReplace(state State) (string, *obstacle) {
	action := state.Operation.Spec.Action.ReplaceDevice
	leaf, _, found := state.leaf(string(action.Device))
	if !found {
		return "", refuses(v1alpha1.ReasonDeviceNotInPool, "%s is not a disk of pool %s", action.Device, state.Live.Name)
	}
	if another := isMeant(action.GUID, string(action.Device), leaf.GUID); another != nil {
		return "", another
	}
	if _, _, found := state.leaf(string(action.With)); found {
		return "", refuses(v1alpha1.ReasonDeviceInPool, "%s is already in pool %s: use a free disk", action.With, state.Live.Name)
	}
	if state.Live.Status.Resilvering() {
		return "", waits(v1alpha1.ReasonScanRunning, operationSoon, "waiting: pool %s is rebuilding data onto a disk", state.Live.Name)
	}
	_, refused := state.take([]string{string(action.With)})
	return pools.Identity(leaf), refused
}

// replaceStage returns the progress. Once the new disk is in the tree, the command has run. ZFS detaches the old disk after the rebuild.
func replaceStage(state State) operationStage {
	action := state.Operation.Spec.Action.ReplaceDevice
	leaves := state.Live.Status.Leaves()
	old := slices.IndexFunc(leaves, func(leaf zfs.VdevStatus) bool { return pools.Identity(leaf) == state.handleDetail() })
	with, _, isIn := state.leaf(string(action.With))
	switch {
	case !isIn && old < 0:
		return failedStage(v1alpha1.ReasonDeviceNotInPool, "neither %s nor %s is in pool %s: see 'zpool status' on the node",
			action.Device, action.With, state.Live.Name)
	case !isIn:
		stage := pending("replacing %s with %s in pool %s", action.Device, action.With, state.Live.Name)
		stage.member = pools.MemberName(leaves[old])
		return state.taking([]string{string(action.With)}, stage)
	}
	scan := state.Live.Status.Scan
	mine := scan != nil && scan.Function == "resilver" && state.byUs(scan)
	if old >= 0 || state.Live.Status.Resilvering() {
		message := fmt.Sprintf("rebuilding the data of %s onto %s", action.Device, action.With)
		if !with.State.Good() {
			message += fmt.Sprintf(", which is %s", with.State)
		}
		if mine && scan.State == zfs.Finished {
			message += fmt.Sprintf("; the last pass ended with %d errors, and the old disk is still in pool %s", scan.Errors, state.Live.Name)
		}
		stage := running("%s", message)
		if mine {
			stage.progress = state.progress(*scan)
		}
		return stage
	}
	metrics := []v1alpha1.OperationMetric{state.seconds()}
	if mine {
		metrics = []v1alpha1.OperationMetric{metric("resilveredBytes", scan.RepairedBytes), metric("errorsFound", scan.Errors),
			state.durationOf(*scan)}
	}
	return done(metrics, "%s has replaced %s in pool %s: change the BenchmarkPool's spec too, or it reports drift", action.With,
		action.Device, state.Live.Name)
}
