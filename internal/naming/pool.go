package naming

import (
	"path"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// PropertyOperation is the UID of the PoolOperation that created a snapshot or dataset. The creating command sets it.
const PropertyOperation = "storagebench.dev:operation"

// User properties of a pool's root dataset. The command that creates the pool sets them, so no pool of ours ever lacks them.
const (
	// PropertyUID is the UID of the BenchmarkPool that created the pool. It alone determines the owner.
	PropertyUID = "storagebench.dev:uid"
	// PropertyName is the name of that BenchmarkPool, for people.
	PropertyName = "storagebench.dev:name"
	// PropertyGeneration is the generation of the spec whose properties were set last. Values that differ from that generation were
	// changed outside of storagebench.
	PropertyGeneration = "storagebench.dev:generation"
	// PropertyDisks is the layout in the spec to which the pool was last changed. Any later change of its disks was made outside of
	// storagebench.
	PropertyDisks = "storagebench.dev:disks"
)

// PoolName is the name of the zpool of a BenchmarkPool.
func PoolName(pool *v1alpha1.BenchmarkPool) string {
	if pool.Spec.PoolName != "" {
		return string(pool.Spec.PoolName)
	}
	return pool.Name
}

// VolumesFolder is where the agent mounts datasets on the node. Their folders are removed with their pool.
const VolumesFolder = "/var/lib/storagebench/volumes"

// MountPoint is the path at which a dataset of a pool is mounted on the node.
func MountPoint(pool string, dataset v1alpha1.DatasetPath) string {
	return path.Join(VolumesFolder, pool, string(dataset))
}

// VolumeDevice is the path of a dataset of type Volume on the node.
func VolumeDevice(pool string, dataset v1alpha1.DatasetPath) string {
	return path.Join("/dev/zvol", pool, string(dataset))
}

// MountPoints returns the mount points of all datasets of a BenchmarkPool, including datasets that should not be mounted any more.
func MountPoints(pool *v1alpha1.BenchmarkPool) []string {
	var points []string
	for _, dataset := range pool.Spec.Datasets {
		if dataset.Type != DatasetVolume {
			points = append(points, MountPoint(PoolName(pool), dataset.Path))
		}
	}
	return points
}

// MountedPoints returns the mount points of the datasets that the agent keeps mounted. Pods write there.
func MountedPoints(pool *v1alpha1.BenchmarkPool) []string {
	var points []string
	for _, dataset := range pool.Spec.Datasets {
		if dataset.Mounted {
			points = append(points, MountPoint(PoolName(pool), dataset.Path))
		}
	}
	return points
}

// VolumeFolder is the folder for pods in a mounted dataset. It exists only while the dataset is mounted; without it, the kubelet makes the
// pod wait.
const VolumeFolder = "data"

// VolumePath is the path of the folder for pods in a mounted dataset. While the dataset is not mounted, there is no such folder, so the
// kubelet makes the pod wait, and nothing is written to the node's own disk.
func VolumePath(pool string, dataset v1alpha1.DatasetPath) string {
	return path.Join(MountPoint(pool, dataset), VolumeFolder)
}

// Setting is a property to set. Without a value, a dataset inherits it.
type Setting struct {
	// Dataset is the dataset to set it on. Empty for the pool itself.
	Dataset string
	Name    string
	Value   string
}

// DatasetName is the full name of a dataset of the spec.
func DatasetName(pool *v1alpha1.BenchmarkPool, dataset v1alpha1.PoolDataset) string {
	return PoolName(pool) + "/" + string(dataset.Path)
}

// PropertyRun is the UID of the run that a dataset of a kept pool was created for or passed on to. The command that creates the dataset
// sets it together with PropertyUID. A dataset of a kept pool that lacks one of them belongs to others.
const PropertyRun = "storagebench.dev:run"

// KeptPool reports whether a BenchmarkPool is kept between runs.
func KeptPool(pool *v1alpha1.BenchmarkPool) bool { return pool.Labels[v1alpha1.LabelReset] != "" }

// RunMarks returns the marks in the status of a kept pool that say for which run its datasets are ready.
func RunMarks(pool *v1alpha1.BenchmarkPool) []Setting {
	if !KeptPool(pool) {
		return nil
	}
	var marks []Setting
	for _, dataset := range pool.Spec.Datasets {
		marks = append(marks, Setting{Dataset: DatasetName(pool, dataset), Name: PropertyRun})
	}
	return marks
}
