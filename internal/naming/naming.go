// Package naming defines the names of everything that the manager and the agent create and look up: objects, pools, datasets, marks and
// folders.
package naming

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// MemberName is the name of a run of a group: the name of a single run, followed by a letter.
func MemberName(group string, member int32) string {
	return group + "-" + string('a'+member)
}

// GroupName is the name of the group of a run, or the name of a single run.
func GroupName(run *v1alpha1.BenchmarkRun) string {
	if run.Spec.Group != nil {
		return run.Spec.Group.Name
	}
	return run.Name
}

// Digest is a short hash of a value.
func Digest(value any) string { return hash(value, 4) }

// hash returns the first bytes of a hash of a value's JSON, in which map keys are sorted.
func hash(value any, bytes int) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("hash of %T: %v", value, err)) // only for types that JSON cannot encode, which is a programming error
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:bytes])
}

// clusterName names a volume's pool and its objects. These names are cluster-scoped, and a tenant controls part of the hashed value: 64
// bits make a deliberate collision too expensive. They have at most 40 characters, with the longest volume name.
func clusterName(volume string, identity ...string) string {
	return "sb-" + hash(append(identity, volume), 8) + "-" + volume
}

// RunName is the deterministic name of an attempt at a run. With the letter that MemberName adds, it has at most 42 characters, so that a
// Job's name has room for the phase.
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

// HistoryName is the name of the ConfigMap with the history of a benchmark. No experiment has that name.
func HistoryName(benchmark string) string {
	return shorten(benchmark, 50) + "-history"
}

// PhaseObjectName is the name of the objects of one phase of a run: its Job and the ConfigMap with its result.
func PhaseObjectName(run string, phase v1alpha1.PhaseName) string {
	return run + "-" + string(phase)
}

// PhaseEndName is the name of the ConfigMap that tells the pod of a phase when to end. No phase has a dot in its name.
func PhaseEndName(run string, phase v1alpha1.PhaseName) string {
	return PhaseObjectName(run, phase) + ".end"
}

// LeaseName is the name of the Lease of a node.
func LeaseName(node string) string {
	const prefix = "storagebench-node-"
	if len(prefix)+len(node) <= 253 {
		return prefix + node
	}
	return prefix + strings.TrimRight(node[:200], ".-") + "-" + Digest(node)
}

// BenchmarkLabel shortens a benchmark's name to fit into a label.
func BenchmarkLabel(name string) string {
	return shorten(name, 63)
}

// shorten truncates a name, so that the result is a valid name.
func shorten(name string, length int) string {
	if len(name) <= length {
		return strings.ReplaceAll(name, ".", "-")
	}
	return strings.TrimRight(strings.ReplaceAll(name[:length], ".", "-"), "-")
}

// KeepsPools reports whether the pools of a target are kept between repetitions.
func KeepsPools(target *v1alpha1.ZFSTarget) bool {
	return target != nil && (target.Reset == v1alpha1.ResetDataset || target.Reset == v1alpha1.ResetNone)
}

// KeptPoolName is the name of a pool that the repetitions of a variant reuse on a node. It depends on the experiment, or on the lineage of
// experiments that pass the pool on, so that a changed spec gets another pool.
func KeptPoolName(benchmarkUID, within, variant, node, volume string) string {
	return clusterName(volume, benchmarkUID, within, variant, node)
}

// KeptWithin is the scope within which the pools of a run are kept: its experiment, or the lineage of its experiment.
func KeptWithin(run *v1alpha1.BenchmarkRun) string {
	return cmp.Or(run.Labels[v1alpha1.LabelLineage], run.Spec.Experiment)
}

// VolumeData is the name of the volume that a target's own pool and dataset define. It is the default volume of phases.
const VolumeData = "data"

// RunDataset is the path of the dataset of a volume on its pool: it has the name of the volume.
func RunDataset(volume string) v1alpha1.DatasetPath { return v1alpha1.DatasetPath(volume) }

// DatasetVolume is the type of a dataset that is a block device.
const DatasetVolume = "Volume"

// RunPoolName is the name of the BenchmarkPool of a volume, of its zpool, and of its PersistentVolume or StorageClass. They are
// cluster-scoped, so the UID of the run makes the name unique, or for a kept pool the UID of the benchmark.
func RunPoolName(run *v1alpha1.BenchmarkRun, volume string) string {
	if KeepsPools(run.Spec.Target.ZFS) {
		return KeptPoolName(run.Labels[v1alpha1.LabelBenchmarkUID], KeptWithin(run), run.Spec.Variant, run.Spec.NodeName, volume)
	}
	return OwnName(run, volume)
}

// OwnName is a cluster-scoped name that no other run has.
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
		return run.Name
	}
	return run.Name + "-" + volume
}

// RunParent is the path of the dataset below which a driver creates the dataset of a volume. It carries the properties that a
// StorageClass of the driver cannot set.
const RunParent v1alpha1.DatasetPath = "parent"
