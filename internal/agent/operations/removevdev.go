package operations

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/zfs"
)

var removeVdevKind = traits{disks: true, once: true, begin: beginRemoveVdev, stage: removeVdevStage}

func beginRemoveVdev(state State) (string, *obstacle) {
	device := string(state.Operation.Spec.Action.RemoveVdev.Device)
	_, top, found := state.leaf(device)
	if !found {
		return "", refuses(v1alpha1.ReasonDeviceNotInPool, "%s is not a disk of pool %s", device, state.Live.Name)
	}
	if another := isMeant(state.Operation.Spec.Action.RemoveVdev.GUID, "the vdev of "+device, top.GUID); another != nil {
		return "", another
	}
	return pools.Identity(top), state.tooRecent(state.Live.Status.Removal)
}

func removeVdevStage(state State) operationStage {
	device := string(state.Operation.Spec.Action.RemoveVdev.Device)
	vdevs, removal := state.Live.Status.Vdevs, state.Live.Status.Removal
	at := slices.IndexFunc(vdevs, func(vdev zfs.VdevStatus) bool { return pools.Identity(vdev) == state.handleDetail() })
	mine := state.byUs(removal)
	switch {
	case mine && removal.State == zfs.Running:
		stage := running("removing the vdev of %s from pool %s", device, state.Live.Name)
		stage.stoppable, stage.progress = true, state.progress(*removal)
		return stage
	case at < 0:
		metrics := []v1alpha1.OperationMetric{state.seconds()}
		var progress *v1alpha1.OperationProgress
		if mine {
			metrics = []v1alpha1.OperationMetric{state.durationOf(*removal)}
			if removal.DoneBytes > 0 {
				metrics = append(metrics, metric("copiedBytes", removal.DoneBytes))
			}
			progress = state.progress(*removal)
		}
		stage := done(metrics, "the vdev of %s was removed from pool %s: change the BenchmarkPool's spec too, or it reports drift", device,
			state.Live.Name)
		stage.progress = progress
		return stage
	case mine && removal.State == zfs.Stopped:
		return stopped("the removal of the vdev of %s from pool %s was stopped outside of this operation", device, state.Live.Name)
	}
	stage := pending("removing the vdev of %s from pool %s", device, state.Live.Name)
	stage.member = pools.MemberName(vdevs[at])
	return stage
}
