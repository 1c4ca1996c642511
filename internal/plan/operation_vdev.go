package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// isDisk says whether a leaf of the pool is the disk of a path: in the same words, or as the same device.
func (s OperationState) isDisk(leaf zfs.VdevStatus, path string) bool {
	number := s.Disks[path].Number
	return slices.ContainsFunc(LeafPaths(leaf), func(other string) bool {
		return other == path || number != "" && s.Disks[other].Number == number
	})
}

// leaf finds a disk in the pool, and the top-level vdev that it is in.
func (s OperationState) leaf(path string) (leaf, top zfs.VdevStatus, found bool) {
	for _, top := range s.Live.Status.Vdevs {
		for _, leaf := range disks(zfs.Status{Vdevs: []zfs.VdevStatus{top}}) {
			if s.isDisk(leaf, path) {
				return leaf, top, true
			}
		}
	}
	return zfs.VdevStatus{}, zfs.VdevStatus{}, false
}

// take decides about disks as for a pool: allowlist, claims of other pools, what is on them.
func (s OperationState) take(paths []string) ([]PoolDisk, *obstacle) {
	pool := PoolState{Pool: s.Pool, Policy: s.Policy, Disks: s.Disks, Rivals: s.Rivals}
	taken, refused := pool.take(paths)
	if refused != nil {
		return nil, refuses(refused.Reason, "%s", refused.Message)
	}
	return taken, nil
}

// AddedLayout is the layout that an addVdev adds.
func AddedLayout(vdev v1alpha1.Vdev) zfs.Layout {
	return specLayout(v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{vdev}})
}

// OperationDevices are the disks that an action names; those it takes come last.
func OperationDevices(action v1alpha1.PoolAction) []string {
	switch {
	case action.AddVdev != nil:
		return texts(action.AddVdev.Devices)
	case action.ReplaceDevice != nil:
		return []string{string(action.ReplaceDevice.Device), string(action.ReplaceDevice.With)}
	case action.RemoveVdev != nil:
		return []string{string(action.RemoveVdev.Device)}
	case action.Trim != nil && action.Trim.Device != "":
		return []string{string(action.Trim.Device)}
	}
	return nil
}

func beginAddVdev(state OperationState) (string, *obstacle) {
	devices := OperationDevices(state.Operation.Spec.Action)
	for _, device := range devices {
		if _, _, found := state.leaf(device); found {
			return "", refuses(v1alpha1.ReasonDeviceInPool, "%s is in pool %s already: name a disk that is free", device, state.Live.Name)
		}
	}
	_, refused := state.take(devices)
	return "", refused
}

// addVdevStage: a vdev is added as a whole or not at all.
func addVdevStage(state OperationState) operationStage {
	devices := OperationDevices(state.Operation.Spec.Action)
	for _, device := range devices {
		if _, _, found := state.leaf(device); !found {
			return state.taking(devices, pending("adds %s to pool %s", strings.Join(devices, ", "), state.Live.Name))
		}
	}
	return done([]v1alpha1.OperationMetric{metric("poolSizeBytes", state.Live.Size)}, "%s is in pool %s: name it in the BenchmarkPool's vdevs too, else it reports drift",
		strings.Join(devices, ", "), state.Live.Name)
}

// taking is a stage whose command takes disks, if they may still be taken.
func (s OperationState) taking(devices []string, stage operationStage) operationStage {
	taken, refused := s.take(devices)
	if refused != nil {
		return failedStage(refused.reason, "%s", refused.message)
	}
	stage.disks = taken
	return stage
}

// identity of a vdev: its guid, or its name before OpenZFS 2.3, which tells none.
func identity(vdev zfs.VdevStatus) string {
	if vdev.GUID != "" {
		return vdev.GUID
	}
	return vdev.Name
}

// memberName is how a command names a vdev.
func memberName(vdev zfs.VdevStatus) string { return wholeDisk(identity(vdev)) }

func beginRemoveVdev(state OperationState) (string, *obstacle) {
	device := string(state.Operation.Spec.Action.RemoveVdev.Device)
	_, top, found := state.leaf(device)
	if !found {
		return "", refuses(v1alpha1.ReasonDeviceNotInPool, "%s is no disk of pool %s", device, state.Live.Name)
	}
	if another := isMeant(state.Operation.Spec.Action.RemoveVdev.GUID, "the vdev of "+device, top.GUID); another != nil {
		return "", another
	}
	return identity(top), state.tooRecent(state.Live.Status.Removal)
}

func removeVdevStage(state OperationState) operationStage {
	device := string(state.Operation.Spec.Action.RemoveVdev.Device)
	vdevs, removal := state.Live.Status.Vdevs, state.Live.Status.Removal
	at := slices.IndexFunc(vdevs, func(vdev zfs.VdevStatus) bool { return identity(vdev) == state.handleDetail() })
	mine := state.byUs(removal)
	switch {
	case mine && removal.State == zfs.Running:
		stage := running("takes the vdev of %s out of pool %s", device, state.Live.Name)
		stage.stoppable, stage.progress = true, state.progress(*removal)
		return stage
	case at < 0:
		metrics := []v1alpha1.OperationMetric{state.seconds()}
		var progress *v1alpha1.OperationProgress
		if mine {
			metrics = []v1alpha1.OperationMetric{metric("copiedBytes", removal.DoneBytes), durationOf(*removal, state.seconds())}
			progress = state.progress(*removal)
		}
		stage := done(metrics, "the vdev of %s is out of pool %s: take it out of the BenchmarkPool's spec too, else it reports drift", device, state.Live.Name)
		stage.progress = progress
		return stage
	case mine && removal.State == zfs.Stopped:
		return stopped("somebody stopped the removal of the vdev of %s from pool %s", device, state.Live.Name)
	}
	stage := pending("takes the vdev of %s out of pool %s", device, state.Live.Name)
	stage.member = memberName(vdevs[at])
	return stage
}

func beginReplace(state OperationState) (string, *obstacle) {
	action := state.Operation.Spec.Action.ReplaceDevice
	leaf, _, found := state.leaf(string(action.Device))
	if !found {
		return "", refuses(v1alpha1.ReasonDeviceNotInPool, "%s is no disk of pool %s", action.Device, state.Live.Name)
	}
	if another := isMeant(action.GUID, string(action.Device), leaf.GUID); another != nil {
		return "", another
	}
	if _, _, found := state.leaf(string(action.With)); found {
		return "", refuses(v1alpha1.ReasonDeviceInPool, "%s is in pool %s already: name a disk that is free", action.With, state.Live.Name)
	}
	if state.Live.Status.Resilvering() {
		return "", waits(v1alpha1.ReasonScanRunning, operationSoon, "waiting: pool %s rebuilds data onto a disk", state.Live.Name)
	}
	_, refused := state.take([]string{string(action.With)})
	return identity(leaf), refused
}

// replaceStage: once the new disk is in the tree, the command has run, and ZFS takes the old one out when all is copied.
func replaceStage(state OperationState) operationStage {
	action := state.Operation.Spec.Action.ReplaceDevice
	leaves := state.Live.Status.Leaves()
	old := slices.IndexFunc(leaves, func(leaf zfs.VdevStatus) bool { return identity(leaf) == state.handleDetail() })
	with, _, isIn := state.leaf(string(action.With))
	switch {
	case !isIn && old < 0:
		return failedStage(v1alpha1.ReasonDeviceNotInPool, "neither %s nor %s is in pool %s any more: see 'zpool status' on the node", action.Device, action.With, state.Live.Name)
	case !isIn:
		stage := pending("puts %s in the place of %s in pool %s", action.With, action.Device, state.Live.Name)
		stage.member = memberName(leaves[old])
		return state.taking([]string{string(action.With)}, stage)
	}
	scan := state.Live.Status.Scan
	mine := scan != nil && scan.Function == "resilver" && state.byUs(scan)
	if old >= 0 || state.Live.Status.Resilvering() {
		message := fmt.Sprintf("rebuilds the data of %s onto %s", action.Device, action.With)
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
		metrics = []v1alpha1.OperationMetric{metric("resilveredBytes", scan.RepairedBytes), metric("errorsFound", scan.Errors), durationOf(*scan, state.seconds())}
	}
	return done(metrics, "%s is in the place of %s in pool %s: name it in the BenchmarkPool's spec too, else it reports drift", action.With, action.Device, state.Live.Name)
}
