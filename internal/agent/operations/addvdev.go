package operations

import (
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/zfs"
)

var addVdevKind = traits{disks: true, once: true, begin: beginAddVdev, stage: addVdevStage}

// AddedLayout returns the layout that an addVdev action adds.
func AddedLayout(vdev v1alpha1.Vdev) zfs.Layout {
	return objects.SpecLayout(v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{vdev}})
}

func beginAddVdev(state State) (string, *obstacle) {
	devices := OperationDevices(state.Operation.Spec.Action)
	for _, device := range devices {
		if _, _, found := state.leaf(device); found {
			return "", refuses(v1alpha1.ReasonDeviceInPool, "%s is already in pool %s: use a free disk", device, state.Live.Name)
		}
	}
	_, refused := state.take(devices)
	return "", refused
}

// addVdevStage returns the progress. There is no state in between: ZFS adds a vdev completely or not at all.
func addVdevStage(state State) operationStage {
	devices := OperationDevices(state.Operation.Spec.Action)
	for _, device := range devices {
		if _, _, found := state.leaf(device); !found {
			return state.taking(devices, pending("adding %s to pool %s", strings.Join(devices, ", "), state.Live.Name))
		}
	}
	return done([]v1alpha1.OperationMetric{metric("poolSizeBytes", state.Live.Size), state.seconds()},
		"%s is in pool %s: add it to the vdevs of the BenchmarkPool too, or it reports drift",
		strings.Join(devices, ", "), state.Live.Name)
}
