package foresee

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
)

// Overwritten is a device whose contents a run replaces.
type Overwritten struct {
	Device v1alpha1.DevicePath
	// Node that the path refers to. Empty for each node of the target.
	Node string
	// Volume whose pool has the device, and the use of the device in that pool.
	Volume, As string
}

// Overwrites lists the devices of all pools of a run, and those that its operations add, each with its use. Empty for a StorageClass.
func Overwrites(slot *design.Slot) (all []Overwritten) {
	zfs := slot.Target.ZFS
	if zfs == nil {
		return nil
	}
	add := func(node, volume string, pool *v1alpha1.PoolTemplate) {
		plan := planPool(volume, "", pool)
		for _, device := range plan.devices() {
			all = append(all, Overwritten{device, node, volume, plan.uses(device)})
		}
	}
	add("", naming.VolumeData, &zfs.Pool)
	for _, of := range zfs.PerNode {
		add(of.NodeName, naming.VolumeData, &of.Pool)
	}
	owners := map[string]string{}
	for i := range zfs.Volumes {
		if zfs.Volumes[i].Pool != nil {
			add("", string(zfs.Volumes[i].Name), zfs.Volumes[i].Pool)
		}
	}
	for _, one := range volume.TargetVolumes(slot.Target) {
		owners[one.Name] = one.PoolOf
	}
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		for _, action := range operate.Of(phase) {
			for _, device := range brought(action) {
				if !slices.ContainsFunc(all, func(known Overwritten) bool { return known.Device == device }) {
					all = append(all, Overwritten{device, "", owners[string(design.VolumeOf(phase))], "added in phase " + string(phase.Name)})
				}
			}
		}
	}
	return all
}

// brought returns the devices that an action adds to a pool.
func brought(action *v1alpha1.PoolAction) []v1alpha1.DevicePath {
	switch {
	case action.AddVdev != nil:
		return action.AddVdev.Vdev().Devices
	case action.ReplaceDevice != nil:
		return []v1alpha1.DevicePath{v1alpha1.DevicePath(action.ReplaceDevice.With)}
	}
	return nil // other actions name no new device
}
