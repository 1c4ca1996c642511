package plan

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// checkTarget refuses what cannot be run, before anything is made: to leave it out silently would be a lie.
func checkTarget(slot *Slot) error {
	if slot.Target.ZFS == nil {
		return nil
	}
	if err := checkVolumes(slot); err != nil {
		return err
	}
	return checkReset(slot)
}

// checkVolumes makes sure that every phase works on a volume that there is.
func checkVolumes(slot *Slot) error {
	known := map[v1alpha1.PhaseName]bool{"": true, VolumeData: true}
	for _, volume := range slot.Target.ZFS.Volumes {
		known[volume.Name] = true
	}
	for _, phase := range slot.Phases {
		if !known[phase.Volume] {
			return &SpecError{v1alpha1.ReasonSpecInvalid, fmt.Sprintf("phase %s works on volume %q, which the target of variant %q does not have: add it to target.zfs.volumes, or write volume: data",
				phase.Name, phase.Volume, slot.Variant)}
		}
	}
	return nil
}

func usesProvisioner(target *v1alpha1.ZFSTarget, provisioner string) bool {
	uses := func(dataset *v1alpha1.DatasetTemplate) bool {
		return dataset != nil && dataset.Provisioner == provisioner
	}
	for _, volume := range target.Volumes {
		if uses(volume.Dataset) {
			return true
		}
	}
	return uses(target.Dataset)
}

// ResolveTarget is the target of a run on a node, with everything written out that the spec left open.
func ResolveTarget(target v1alpha1.Target, node, defaultClass, defaultProvisioner string) v1alpha1.Target {
	resolved := *target.DeepCopy()
	if resolved.StorageClass != nil && resolved.StorageClass.Name == "" {
		resolved.StorageClass.Name = defaultClass
	}
	zfs := resolved.ZFS
	if zfs == nil {
		return resolved
	}
	for _, own := range zfs.PerNode {
		if own.NodeName == node {
			zfs.Pool = own.Pool
		}
	}
	zfs.PerNode = nil
	zfs.Dataset = resolvedDataset(zfs.Dataset, defaultProvisioner)
	for i := range zfs.Volumes {
		zfs.Volumes[i].Dataset = resolvedDataset(zfs.Volumes[i].Dataset, defaultProvisioner)
	}
	return resolved
}

func resolvedDataset(dataset *v1alpha1.DatasetTemplate, provisioner string) *v1alpha1.DatasetTemplate {
	dataset = datasetOrDefault(dataset)
	if dataset.Provisioner == "" {
		dataset.Provisioner = provisioner
	}
	return dataset
}
