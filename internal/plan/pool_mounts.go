package plan

import (
	"path"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// VolumesFolder is where the agent mounts datasets on the node. Their folders go with their pool.
const VolumesFolder = "/var/lib/storagebench/volumes"

// MountPoint is where a dataset of a pool is mounted on the node.
func MountPoint(pool string, dataset v1alpha1.DatasetPath) string {
	return path.Join(VolumesFolder, pool, string(dataset))
}

// VolumeDevice is the path of a dataset of type Volume on the node.
func VolumeDevice(pool string, dataset v1alpha1.DatasetPath) string {
	return path.Join("/dev/zvol", pool, string(dataset))
}

// MountPoints are those of all datasets of a BenchmarkPool, also of those that are to be mounted no more.
func MountPoints(pool *v1alpha1.BenchmarkPool) []string {
	var points []string
	for _, dataset := range pool.Spec.Datasets {
		if dataset.Type != DatasetVolume {
			points = append(points, MountPoint(PoolName(pool), dataset.Path))
		}
	}
	return points
}

// mountDataset mounts what is to be mounted; nil if it is. A mount point that somebody else set stays, unless the spec asks for ours.
func mountDataset(state PoolState, dataset v1alpha1.PoolDataset, is zfs.Dataset) *PoolDecision {
	if dataset.Type == DatasetVolume {
		return nil
	}
	ours := MountPoint(PoolName(state.Pool), dataset.Path)
	var decision PoolDecision
	move := func(to string) PoolAction {
		return PoolAction{Kind: SetPoolProperties, GUID: state.Live.GUID, Settings: []Setting{{Dataset: is.Name, Name: "mountpoint", Value: to}}}
	}
	switch {
	case dataset.Mounted && is.MountPoint != ours:
		decision = poolAct("setting the mount point of dataset "+is.Name, move(ours))
	case dataset.Mounted && !is.Mounted:
		decision = poolAct("mounting dataset "+is.Name, PoolAction{Kind: MountDataset, GUID: state.Live.GUID, Dataset: zfs.DatasetSpec{Name: is.Name}})
	case !dataset.Mounted && is.MountPoint == ours:
		decision = poolAct("unmounting dataset "+is.Name, move("none"))
	default:
		return nil
	}
	return &decision
}
