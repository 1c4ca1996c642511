package volume

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
)

// VolumeState is what is known of the run's claims, and of the PersistentVolumes that were made for them.
type VolumeState struct {
	// Foreign says that a name belongs to a claim that is not this run's. It is never touched.
	Foreign bool
	// Exists says that all are there, Some that at least one is.
	Exists   bool
	Some     bool
	Deleting bool
	Bound    bool
	Lost     bool
	// Problem is what the cluster says against binding it.
	Problem string
	// Driven says that a driver makes them on the run's pools: they are bound and looked at before a pod is made.
	Driven bool
	// Unwatched names what a driver still has of a volume whose claim is gone.
	Unwatched string
}

// Left says that something of the volumes is still there.
func (v VolumeState) Left() bool { return v.Exists || v.Some }

// EarlierPool is a kept pool that still is the run's before.
type EarlierPool struct {
	Name string
	// RunName and RunUID are that run, HandsOn says that it leaves the pool to this one.
	RunName, RunUID string
	HandsOn         bool
}

// RunVolume is one volume of a run: for a zfs target a dataset on a pool of its own.
type RunVolume struct {
	Name string
	// Pool and Dataset of a zfs target, nil for a storageClass target.
	Pool    *v1alpha1.PoolTemplate
	Dataset *v1alpha1.DatasetTemplate
}

// RunVolumes are the volumes of a run, the one called data first.
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

// DatasetOrDefault is the dataset of a volume whose target names none.
func DatasetOrDefault(dataset *v1alpha1.DatasetTemplate) *v1alpha1.DatasetTemplate {
	if dataset == nil {
		return &v1alpha1.DatasetTemplate{Type: "Filesystem"}
	}
	return dataset
}

// VolumeDatasetName is the name that ZFS knows the dataset of a volume by; empty if a driver makes it and has not yet.
func VolumeDatasetName(run *v1alpha1.BenchmarkRun, volume RunVolume, driven map[string]string) string {
	if volume.Dataset != nil && volume.Dataset.Provisioner == ProvisionerOpenEBS {
		return driven[volume.Name]
	}
	return naming.RunDatasetName(run, volume.Name)
}

// Pools is what is known of the BenchmarkPools of a run; the zero value is that of a run without.
type Pools struct {
	// Needed says that the target is on pools.
	Needed bool
	// Foreign names one that is not this run's. It is never touched.
	Foreign string
	// Exist says that all are there, Some that at least one is.
	Exist, Some bool
	Deleting    bool
	// Ready says that all are as asked.
	Ready bool
	// Broken says that one will not become ready by itself.
	Broken bool
	// Kept says that the pools outlive the run. Earlier is the first that another run has used and this one is to go on with; KeptFrom are
	// the runs that had them before this one, by volume.
	Kept     bool
	Earlier  *EarlierPool
	KeptFrom map[string]results.RunIdentity
	// Volumes as they are once all pools are ready.
	Volumes []v1alpha1.RunVolumeStatus
	// Datasets that a driver made on them, as ZFS names them, by volume.
	Datasets map[string]string
	// Unread are those whose properties are not reported yet; Unasked says that the agent has not been told to report them all.
	Unread  []string
	Unasked bool
	// Differing says in words where those that are reported are not as asked.
	Differing []string
	// Reason and Message of the first that is not ready, or that does not go.
	Reason, Message string
}
