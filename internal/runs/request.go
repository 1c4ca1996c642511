package runs

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/workload"
)

// Request returns the work of the runner in a phase, and the facts that it verifies before it writes: the mode of the volume, its size and,
// for a dataset, its name. A dataset without a size may use its whole pool, so no size is verified.
//
// Each of several workloads that run together has a request of its own, and so has a write-ahead log on another volume.
func Request(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, pools Pools) (workload.Request, error) {
	parts := workload.PartsOf(&phase)
	wal, apart := workload.WALOf(&phase)
	request, err := requestOn(run, phase, pools, len(parts) > 0 || apart)
	if apart {
		one, problem := requestOn(run, wal.Phase, pools, true)
		request.WAL, err = &one, errors.Join(err, problem)
	}
	for i := range parts {
		one, problem := requestOn(run, parts[i].Phase, pools, true)
		request.Parts = append(request.Parts, workload.PartRequest{Name: parts[i].Name, Archives: parts[i].Archives, Request: one})
		err = errors.Join(err, problem)
	}
	return request, err
}

// requestOn is a request to work on the volume of a phase, which may be one of several in its pod.
func requestOn(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, pools Pools, several bool) (workload.Request, error) {
	mode := VolumeMode(run, phase)
	path := workload.PathOf(mode == corev1.PersistentVolumeBlock, PhaseVolume(run, phase).Name, several)
	request := workload.Request{
		Version: workload.RequestVersion,
		Run:     results.RunIdentity{Namespace: run.Namespace, Name: run.Name, UID: string(run.UID)},
		Phase:   phase, Seed: run.Spec.Seed,
		VolumeMode: string(mode), Path: path,
		Promised: workload.PromisedVolume, DataFiles: workload.DataFilesFor(run.Spec.Phases),
	}
	if class := run.Spec.Target.StorageClass; class != nil {
		request.VolumeSizeBytes = class.Size.Value()
		return request, nil
	}
	wanted := PhaseVolume(run, phase)
	if wanted.Dataset.Size != nil {
		request.VolumeSizeBytes = wanted.Dataset.Size.Value()
	}
	if wanted.Dataset.Type != naming.DatasetVolume {
		if request.Source = pools.Datasets[wanted.Name]; request.Source == "" {
			return request, fmt.Errorf("the dataset of volume %s is not known, so that the runner could not verify it", wanted.Name)
		}
	}
	request.Disks, request.DisksChange = pools.Disks[wanted.Name], disksChangeBy(run, phase.Name)
	if before, kept := pools.KeptFrom[wanted.Name]; kept && run.Spec.Target.ZFS.Reset == v1alpha1.ResetNone {
		request.KeepsDataOf = &before
	}
	return request, nil
}

// PodVolume is a volume in the pod of a phase.
type PodVolume struct {
	// Name of the volume of the run.
	Name string
	// Block is true if the volume appears as a device.
	Block bool
	// Path is where the volume appears.
	Path string
}

// PodVolumes returns the volumes that the phase works on, its own first.
func PodVolumes(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase) []PodVolume {
	parts := workload.Named(&phase)
	var volumes []PodVolume
	for _, part := range append([]workload.Part{{Phase: phase}}, parts...) {
		one := PodVolume{Name: PhaseVolume(run, part.Phase).Name, Block: VolumeMode(run, part.Phase) == corev1.PersistentVolumeBlock}
		one.Path = workload.PathOf(one.Block, one.Name, len(parts) > 0)
		if !slices.Contains(volumes, one) {
			volumes = append(volumes, one)
		}
	}
	return volumes
}

// VolumeMode is the mode of the volume of a phase.
func VolumeMode(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase) corev1.PersistentVolumeMode {
	if class := run.Spec.Target.StorageClass; class != nil {
		return class.VolumeMode
	}
	return volume.Mode(PhaseVolume(run, phase))
}
