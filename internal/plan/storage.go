package plan

import (
	"fmt"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// VolumeData is the name of the volume that a target's own pool and dataset make, and that phases work on unless they name another.
const VolumeData = "data"

// RunDataset is the path of the dataset that a run gets on each of its pools.
const RunDataset v1alpha1.DatasetPath = "volume"

// DatasetVolume is the type of a dataset that is a block device.
const DatasetVolume = "Volume"

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
		return []RunVolume{{Name: VolumeData}}
	}
	volumes := []RunVolume{{Name: VolumeData, Pool: &target.Pool, Dataset: datasetOrDefault(target.Dataset)}}
	for i := range target.Volumes {
		volume := &target.Volumes[i]
		volumes = append(volumes, RunVolume{Name: string(volume.Name), Pool: &volume.Pool, Dataset: datasetOrDefault(volume.Dataset)})
	}
	return volumes
}

func datasetOrDefault(dataset *v1alpha1.DatasetTemplate) *v1alpha1.DatasetTemplate {
	if dataset == nil {
		return &v1alpha1.DatasetTemplate{Type: "Filesystem"}
	}
	return dataset
}

// RunPoolName is the name of the BenchmarkPool of a volume, of the zpool, and of the PersistentVolume on it. They are not in a
// namespace, so the run's UID makes the name unique, or, of a pool that is kept, the benchmark's.
func RunPoolName(run *v1alpha1.BenchmarkRun, volume string) string {
	if KeepsPools(run.Spec.Target.ZFS) {
		return keptPoolName(run.Labels[v1alpha1.LabelBenchmarkUID], run.Spec.Experiment, run.Spec.Variant, run.Spec.NodeName, volume)
	}
	return ownName(run, volume)
}

// ownName is a name in no namespace that no other run has.
func ownName(run *v1alpha1.BenchmarkRun, volume string) string {
	return clusterName(volume, string(run.UID))
}

// RunOperationName is the name of the PoolOperation of an operate phase.
func RunOperationName(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase) string {
	return ownName(run, VolumeData) + "-" + string(phase.Name)
}

// ClaimName is the name of the claim of a volume of a run.
func ClaimName(run *v1alpha1.BenchmarkRun, volume string) string {
	if volume == VolumeData {
		return VolumeName(run.Name)
	}
	return VolumeName(run.Name) + "-" + volume
}

// RunDatasetName is the name that ZFS knows the dataset of a volume by.
func RunDatasetName(run *v1alpha1.BenchmarkRun, volume string) string {
	return RunPoolName(run, volume) + "/" + string(RunDataset)
}

// VolumeDatasetName is the name that ZFS knows the dataset of a volume by; empty if a driver makes it and has not yet.
func VolumeDatasetName(run *v1alpha1.BenchmarkRun, volume RunVolume, driven map[string]string) string {
	if volume.Dataset != nil && volume.Dataset.Provisioner == ProvisionerOpenEBS {
		return driven[volume.Name]
	}
	return RunDatasetName(run, volume.Name)
}

// PoolsState is what is known of the BenchmarkPools of a run; the zero value is that of a run without.
type PoolsState struct {
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

// preparePools makes the pools and waits for them; nil once they are ready.
func preparePools(state RunState, i int, decision RunDecision) *RunDecision {
	pools, spec := state.Pools, state.Run.Spec.Phases[i]
	decision.Reason = v1alpha1.ReasonPreparingVolume
	switch {
	case !pools.Needed || pools.Exist && pools.Ready && !pools.Deleting:
		return nil
	case pools.Foreign != "":
		decision.Reason, decision.Message = v1alpha1.ReasonNameTaken, fmt.Sprintf("BenchmarkPool %s exists and is not this run's: waiting for it to be gone", pools.Foreign)
		decision.WakeAt = state.Now.Add(foreignRecheck)
	case pools.Deleting:
		decision.Message = "waiting for an earlier pool of the same name to be gone"
		if pools.Kept { // its labels name the run before: nothing tells this one of its end
			decision.WakeAt = state.Now.Add(foreignRecheck)
		}
	case pools.Earlier != nil:
		takeEarlier(state, &decision)
	case pools.KeptFrom != nil && pools.Broken:
		return makeAnew(state, decision)
	case !pools.Exist:
		decision.Actions = []RunAction{{Kind: CreatePools}}
		decision.Message = "making the pools of the run"
	default:
		decision.Message = fmt.Sprintf("phase %s (%d of %d) waits for its pools: %s: %s", spec.Name, i+1, len(state.Phases), pools.Reason, pools.Message)
	}
	if overdue := state.startOverdue(i); !state.Now.Before(overdue) {
		// Another attempt would get the same disks; in the place of a kept pool, a new one.
		ending := invalid(v1alpha1.ReasonPoolNotReady, pools.KeptFrom != nil, "the pools for phase %s were not ready within %s: %s: %s",
			spec.Name, spec.StartDeadline.Duration.Duration, pools.Reason, orNone(pools.Message))
		return &RunDecision{Phase: decision.Phase, Ending: ending, Reason: ending.Reason, Message: ending.Message}
	} else if decision.WakeAt.IsZero() {
		decision.WakeAt = overdue
	}
	return &decision
}

// waitingSince is when nothing but the storage was left to wait for: the end of the phase before, or the start of the run.
func (s RunState) waitingSince(i int) time.Time {
	if name := s.Run.Spec.Phases[i].Name; s.Run.Spec.Group != nil && readyFor(s.Run.Status.ReadyFor, name) {
		if len(notReady(s, name)) > 0 {
			return s.Now // it is the others who are waited for
		}
		return lastReady(s)
	}
	if i > 0 && s.Phases[i-1].Stored != nil {
		return s.Phases[i-1].Stored.StoredAt
	}
	if s.Run.Status.StartedAt != nil {
		return s.Run.Status.StartedAt.Time
	}
	return s.Now
}

// poolsEnding ends a run whose pools went, or went wrong, after its first phase had begun: what is made anew is empty, and what is
// out of order measures something else.
func poolsEnding(state RunState) *Ending {
	pools := state.Pools
	switch {
	case !pools.Needed:
		return nil
	case !pools.Exist || pools.Deleting:
		return invalid(v1alpha1.ReasonPoolLost, true, "a BenchmarkPool of the run was deleted while the run needed it")
	case pools.Broken:
		return invalid(v1alpha1.ReasonPoolNotReady, true, "the pool is not in order any more: %s: %s", pools.Reason, pools.Message)
	}
	return nil
}
