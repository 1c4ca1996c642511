// Package naming has the names of everything that the manager and the agent make and find again: objects, pools, datasets, marks and
// folders.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// MemberName is the name of a run of a group: a letter behind the group's name, which is that of a run alone.
func MemberName(group string, member int32) string {
	return group + "-" + string('a'+member)
}

// GroupName is the name of a run, or that of its group.
func GroupName(run *v1alpha1.BenchmarkRun) string {
	if run.Spec.Group != nil {
		return run.Spec.Group.Name
	}
	return run.Name
}

// Digest is a short hash of a value.
func Digest(value any) string { return hash(value, 4) }

// hash is the beginning of a hash of a value's JSON, whose maps are sorted.
func hash(value any, bytes int) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("hash of %T: %v", value, err)) // only for types that JSON cannot express: a programming error
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:bytes])
}

// clusterName names a volume's pool and what belongs to it. These names are in no namespace, and a tenant chooses part of what is
// hashed: 64 bits make a name that two runs share too rare to be made on purpose. At most 40 characters, with a volume's longest name.
func clusterName(volume string, identity ...string) string {
	return "sb-" + hash(append(identity, volume), 8) + "-" + volume
}

// RunName is the deterministic name of an attempt at a run: at most 42 characters, so that a Job's name still has room
// for the phase.
func RunName(benchmark, experiment string, index, attempt int32) string {
	name := fmt.Sprintf("%s-%s-%03d", shorten(benchmark, 24), experiment, index)
	if attempt > 1 {
		name += fmt.Sprintf("-%d", attempt)
	}
	return name
}

// ResultsName is the name of the ConfigMap with the results of an experiment.
func ResultsName(benchmark, experiment string) string {
	return shorten(benchmark, 50) + "-" + experiment
}

// HistoryName is the name of the ConfigMap with the history of a benchmark. No experiment is called so.
func HistoryName(benchmark string) string {
	return shorten(benchmark, 50) + "-history"
}

// PhaseObjectName names what belongs to one phase of a run: its Job and the ConfigMap with its result.
func PhaseObjectName(run string, phase v1alpha1.PhaseName) string {
	return run + "-" + string(phase)
}

// VolumeName is the name of the claim of a run.
func VolumeName(run string) string {
	return run
}

// LeaseName is the name of the Lease by which benchmarks take a node.
func LeaseName(node string) string {
	const prefix = "storagebench-node-"
	if len(prefix)+len(node) <= 253 {
		return prefix + node
	}
	return prefix + strings.TrimRight(node[:200], ".-") + "-" + Digest(node)
}

// BenchmarkLabel makes a benchmark's name fit into a label.
func BenchmarkLabel(name string) string {
	return shorten(name, 63)
}

// shorten cuts a name, leaving it a valid one.
func shorten(name string, length int) string {
	if len(name) <= length {
		return strings.ReplaceAll(name, ".", "-")
	}
	return strings.TrimRight(strings.ReplaceAll(name[:length], ".", "-"), "-")
}

// KeepsPools says whether the pools of a target are kept from one repetition to the next.
func KeepsPools(target *v1alpha1.ZFSTarget) bool {
	return target != nil && (target.Reset == v1alpha1.ResetDataset || target.Reset == v1alpha1.ResetNone)
}

// KeptPoolName is the name of a pool that repetitions of a variant use one after another on a node. The experiment stands for the whole
// target: a changed spec gets another pool.
func KeptPoolName(benchmarkUID, experiment, variant, node, volume string) string {
	return clusterName(volume, benchmarkUID, experiment, variant, node)
}

// VolumeData is the name of the volume that a target's own pool and dataset make, and that phases work on unless they name another.
const VolumeData = "data"

// RunDataset is the path of the dataset that a run gets on each of its pools.
const RunDataset v1alpha1.DatasetPath = "volume"

// DatasetVolume is the type of a dataset that is a block device.
const DatasetVolume = "Volume"

// RunPoolName is the name of the BenchmarkPool of a volume, of the zpool, and of the PersistentVolume on it. They are not in a
// namespace, so the run's UID makes the name unique, or, of a pool that is kept, the benchmark's.
func RunPoolName(run *v1alpha1.BenchmarkRun, volume string) string {
	if KeepsPools(run.Spec.Target.ZFS) {
		return KeptPoolName(run.Labels[v1alpha1.LabelBenchmarkUID], run.Spec.Experiment, run.Spec.Variant, run.Spec.NodeName, volume)
	}
	return OwnName(run, volume)
}

// OwnName is a name in no namespace that no other run has.
func OwnName(run *v1alpha1.BenchmarkRun, volume string) string {
	return clusterName(volume, string(run.UID))
}

// RunOperationName is the name of the PoolOperation of an operate phase.
func RunOperationName(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase) string {
	return OwnName(run, VolumeData) + "-" + string(phase.Name)
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

// RunParent is the path of the dataset below which a driver makes the dataset of a volume. It carries what a StorageClass of the
// driver cannot say.
const RunParent v1alpha1.DatasetPath = "parent"
