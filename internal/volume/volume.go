// Package volume defines how the volumes of a run are provided: what each provisioner creates, needs and refuses.
package volume

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
)

// RunVolume is one volume of a run. For a zfs target, it is a dataset on its own pool or on the pool of another volume.
type RunVolume struct {
	Name string
	// PoolOf is the name of the volume that owns the pool: the volume itself, or the volume on whose pool it lies.
	PoolOf string
	// Pool and Dataset are set for a zfs target, and nil for a storageClass target.
	Pool    *v1alpha1.PoolTemplate
	Dataset *v1alpha1.DatasetTemplate
	// MadeIn is the phase whose operation makes the volume. Empty for a volume of the target.
	MadeIn v1alpha1.PhaseName
}

// RunVolumes returns the volumes of a run, data first, including those that its phases make.
func RunVolumes(run *v1alpha1.BenchmarkRun) []RunVolume { return All(run.Spec.Target, run.Spec.Phases) }

// All returns the volumes of a target, followed by those that phases make. The agent mounts the datasets that operations make, so the
// provisioner of these volumes is Local.
func All(target v1alpha1.Target, phases []v1alpha1.Phase) []RunVolume {
	volumes := TargetVolumes(target)
	if target.ZFS == nil {
		return volumes
	}
	find := func(name v1alpha1.VolumeName) int {
		return slices.IndexFunc(volumes, func(one RunVolume) bool { return one.Name == string(name) })
	}
	for i := range phases {
		if phases[i].Operate == nil {
			continue
		}
		name, _, to := operate.As(&phases[i].Operate.PoolAction)
		if name == "" || find(name) >= 0 {
			continue
		}
		home := volumes[max(find(cmp.Or(to, phases[i].Volume)), 0)]
		volumes = append(volumes, RunVolume{Name: string(name), PoolOf: home.PoolOf, Pool: home.Pool, MadeIn: phases[i].Name,
			Dataset: &v1alpha1.DatasetTemplate{Type: "Filesystem", Provisioner: ProvisionerLocal}})
	}
	return volumes
}

// TargetVolumes returns the volumes of a target, data first.
func TargetVolumes(of v1alpha1.Target) []RunVolume {
	target := of.ZFS
	if target == nil {
		return []RunVolume{{Name: naming.VolumeData, PoolOf: naming.VolumeData}}
	}
	volumes := []RunVolume{{Name: naming.VolumeData, PoolOf: naming.VolumeData, Pool: &target.Pool, Dataset: DatasetOrDefault(target.Dataset)}}
	for i := range target.Volumes {
		volume := &target.Volumes[i]
		volumes = append(volumes, RunVolume{Name: string(volume.Name), PoolOf: cmp.Or(string(volume.PoolOf), string(volume.Name)),
			Pool: poolOf(target, volume), Dataset: DatasetOrDefault(volume.Dataset)})
	}
	return volumes
}

// poolOf returns the layout of the pool that a volume lies on. It is empty for a target that the API server would reject.
func poolOf(target *v1alpha1.ZFSTarget, volume *v1alpha1.AdditionalVolume) *v1alpha1.PoolTemplate {
	at := slices.IndexFunc(target.Volumes, func(other v1alpha1.AdditionalVolume) bool { return other.Name == volume.PoolOf })
	switch {
	case volume.PoolOf == naming.VolumeData:
		return &target.Pool
	case volume.PoolOf != "" && at >= 0:
		volume = &target.Volumes[at]
	}
	if volume.Pool == nil {
		return &v1alpha1.PoolTemplate{}
	}
	return volume.Pool
}

// Pools returns the volumes that own a pool: one for each pool.
func Pools(volumes []RunVolume) (pools []RunVolume) {
	for _, one := range volumes {
		if one.PoolOf == one.Name {
			pools = append(pools, one)
		}
	}
	return pools
}

// On returns the volumes that lie on the pool of the named volume, including that one.
func On(volumes []RunVolume, pool string) (on []RunVolume) {
	for _, one := range volumes {
		if one.PoolOf == pool {
			on = append(on, one)
		}
	}
	return on
}

// DatasetOrDefault is the dataset of a volume, or the default if the target names none.
func DatasetOrDefault(dataset *v1alpha1.DatasetTemplate) *v1alpha1.DatasetTemplate {
	if dataset == nil {
		return &v1alpha1.DatasetTemplate{Type: "Filesystem"}
	}
	return dataset
}

// Pool is the BenchmarkPool of a volume of a run, with the datasets of all volumes on it. It is cluster-scoped, so the run cannot own it:
// the run's finalizer deletes it, and its labels name its run.
func Pool(run *v1alpha1.BenchmarkRun, volume RunVolume, labels map[string]string) *v1alpha1.BenchmarkPool {
	name := naming.RunPoolName(run, volume.Name)
	if target := run.Spec.Target.ZFS; naming.KeepsPools(target) {
		labels = maps.Clone(labels)
		labels[v1alpha1.LabelReset] = string(target.Reset)
		if lineage := run.Labels[v1alpha1.LabelLineage]; lineage != "" {
			labels[v1alpha1.LabelLineage] = lineage
		}
	}
	var datasets []v1alpha1.PoolDataset
	for _, one := range On(RunVolumes(run), volume.Name) {
		datasets = append(datasets, Of(one).Dataset(one))
	}
	return &v1alpha1.BenchmarkPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: v1alpha1.BenchmarkPoolSpec{
			NodeName: run.Spec.NodeName, PoolName: v1alpha1.PoolName(name), PoolTemplate: *volume.Pool.DeepCopy(),
			Datasets: datasets, Drift: "Report", DeletionPolicy: v1alpha1.DeletionDestroy,
			Namespace: run.Namespace,
		},
	}
}

// Mode is the volume mode of a volume of a zfs target.
func Mode(volume RunVolume) corev1.PersistentVolumeMode {
	if volume.Dataset.Type == naming.DatasetVolume && volume.Dataset.FSType == "" {
		return corev1.PersistentVolumeBlock
	}
	return corev1.PersistentVolumeFilesystem
}

// size is the size of a volume: as requested, or the whole pool.
func size(volume RunVolume, poolBytes int64) resource.Quantity {
	if volume.Dataset.Size != nil {
		return volume.Dataset.Size.Quantity
	}
	return *resource.NewQuantity(poolBytes, resource.BinarySI)
}

// claimOn returns the claim of a volume of a zfs target, with the given StorageClass. An empty class means that nothing is provisioned.
func claimOn(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site, class string, bytes resource.Quantity) *corev1.PersistentVolumeClaim {
	mode := Mode(volume)
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.ClaimName(run, volume.Name), Namespace: run.Namespace, Labels: site.Labels,
			OwnerReferences: []metav1.OwnerReference{site.Owner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, VolumeMode: &mode, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: bytes}},
		},
	}
}
