package volume

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
)

// VolumeState is the observed state of the run's claims, and of the PersistentVolumes that were created for them.
type VolumeState struct {
	// Foreign says that a claim of another owner has one of the names. It is never touched.
	Foreign bool
	// Exists says that all exist, Some that at least one does.
	Exists   bool
	Some     bool
	Deleting bool
	Bound    bool
	Lost     bool
	// Problem is the cluster's reason for not binding it.
	Problem string
	// Driven says that a driver creates them on the run's pools: they are bound and checked before a pod is created.
	Driven bool
	// Unwatched names leftovers of a driver for a volume whose claim is gone.
	Unwatched string
}

// Left says that something of the volumes still exists.
func (v VolumeState) Left() bool { return v.Exists || v.Some }

// EarlierPool is a kept pool that still belongs to the previous run.
type EarlierPool struct {
	Name string
	// RunName and RunUID identify that run. HandsOn says that it passes the pool on to this one.
	RunName, RunUID string
	HandsOn         bool
}

// RunVolume is one volume of a run. For a zfs target it is a dataset on its own pool.
type RunVolume struct {
	Name string
	// Pool and Dataset of a zfs target. Nil for a storageClass target.
	Pool    *v1alpha1.PoolTemplate
	Dataset *v1alpha1.DatasetTemplate
}

// RunVolumes are the volumes of a run, data first.
func RunVolumes(run *v1alpha1.BenchmarkRun) []RunVolume {
	target := run.Spec.Target.ZFS
	if target == nil {
		return []RunVolume{{Name: naming.VolumeData}}
	}
	volumes := []RunVolume{{Name: naming.VolumeData, Pool: &target.Pool, Dataset: DatasetOrDefault(target.Dataset)}}
	for i := range target.Volumes {
		volume := &target.Volumes[i]
		volumes = append(volumes, RunVolume{Name: string(volume.Name), Pool: &volume.Pool, Dataset: DatasetOrDefault(volume.Dataset)})
	}
	return volumes
}

// DatasetOrDefault is the dataset of a volume, or the default if the target names none.
func DatasetOrDefault(dataset *v1alpha1.DatasetTemplate) *v1alpha1.DatasetTemplate {
	if dataset == nil {
		return &v1alpha1.DatasetTemplate{Type: "Filesystem"}
	}
	return dataset
}

// VolumeDatasetName is the ZFS name of the dataset of a volume. Empty until its driver has created it.
func VolumeDatasetName(run *v1alpha1.BenchmarkRun, volume RunVolume, driven map[string]string) string {
	if volume.Dataset != nil && volume.Dataset.Provisioner == ProvisionerOpenEBS {
		return driven[volume.Name]
	}
	return naming.RunDatasetName(run, volume.Name)
}

// Pools is the observed state of the BenchmarkPools of a run. The zero value is for a run without pools.
type Pools struct {
	// Needed says that the target uses pools.
	Needed bool
	// Foreign names one that belongs to another owner. It is never touched.
	Foreign string
	// Exist says that all exist, Some that at least one does.
	Exist, Some bool
	Deleting    bool
	// Ready says that all match their specs.
	Ready bool
	// Broken says that one will not become ready by itself.
	Broken bool
	// Kept says that the pools outlive the run. Earlier is the first that another run has used and this one is to reuse. KeptFrom
	// are the previous runs of the pools, by volume.
	Kept     bool
	Earlier  *EarlierPool
	KeptFrom map[string]results.RunIdentity
	// Volumes as they are once all pools are ready.
	Volumes []v1alpha1.RunVolumeStatus
	// Datasets that a driver created on them, by their ZFS names, by volume.
	Datasets map[string]string
	// Unread are those whose properties are not reported yet. Unasked says that the agent has not been asked to report them all.
	Unread  []string
	Unasked bool
	// Differing describes how the reported ones differ from the request.
	Differing []string
	// Reason and Message of the first that is not ready, or not deleted.
	Reason, Message string
}
