package naming

import (
	"path"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// PropertyOperation is the UID of the PoolOperation that made a snapshot or dataset. The command that makes it sets it.
const PropertyOperation = "storagebench.dev:operation"

// User properties on a pool's root dataset. They are set by the command that makes the pool, so no pool of ours is ever
// without them.
const (
	// PropertyUID is the UID of the BenchmarkPool that made the pool. It alone says whose the pool is.
	PropertyUID = "storagebench.dev:uid"
	// PropertyName is that BenchmarkPool's name, for people.
	PropertyName = "storagebench.dev:name"
	// PropertyGeneration is the generation of the spec whose properties were set last. Values that differ from that
	// generation's were changed by somebody else.
	PropertyGeneration = "storagebench.dev:generation"
	// PropertyDisks tells which layout of the spec the pool was last brought to. Disks that were changed since then were
	// changed by somebody else.
	PropertyDisks = "storagebench.dev:disks"
)

// PoolName is the name of the zpool of a BenchmarkPool.
func PoolName(pool *v1alpha1.BenchmarkPool) string {
	if pool.Spec.PoolName != "" {
		return string(pool.Spec.PoolName)
	}
	return pool.Name
}

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

// VolumeFolder is the folder of a mounted dataset that pods get. It is there only while the dataset is mounted: a kubelet that does not
// find it lets the pod wait.
const VolumeFolder = "data"

// VolumePath is the folder of a mounted dataset that pods get. While the dataset is not mounted there is no such folder, so that the
// kubelet lets the pod wait, and nothing is written to the node's own disk.
func VolumePath(pool string, dataset v1alpha1.DatasetPath) string {
	return path.Join(MountPoint(pool, dataset), VolumeFolder)
}

// Setting is a property to be set.
type Setting struct {
	// Dataset that gets it; empty for the pool itself.
	Dataset string
	Name    string
	Value   string
}

// DatasetName is the full name of a dataset of the spec.
func DatasetName(pool *v1alpha1.BenchmarkPool, dataset v1alpha1.PoolDataset) string {
	return PoolName(pool) + "/" + string(dataset.Path)
}

// PropertyRun is the UID of the run that a dataset of a kept pool was made for, or was handed on to. Together with PropertyUID it is set
// by the command that makes the dataset; without both a dataset of a kept pool is somebody else's.
const PropertyRun = "storagebench.dev:run"

// KeptPool says whether a BenchmarkPool is kept from one run to the next.
func KeptPool(pool *v1alpha1.BenchmarkPool) bool { return pool.Labels[v1alpha1.LabelReset] != "" }

// RunMarks are the marks by which a kept pool tells, in its status, for which run its datasets are ready.
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
