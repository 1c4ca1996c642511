// Package plan decides. Its functions are pure: they look at what exists and say what to do next, what to wait for and
// what to conclude. They read no clock, call no API and keep no state.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Seed of the benchmark: the declared one, or one made from its UID.
func Seed(benchmark *v1alpha1.StorageBenchmark) int64 {
	if benchmark.Spec.Seed != nil {
		return *benchmark.Spec.Seed
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(benchmark.UID))
	return int64(hash.Sum64() >> 33) // 31 bits: short enough to be typed into a spec
}

// Experiment is the hash of what is measured. Gates, retention and the like are not part of it: changing them does not
// make the numbers old.
func Experiment(benchmark *v1alpha1.StorageBenchmark) string {
	return ExperimentAt(benchmark, lastTime(benchmark))
}

// ExperimentAt is the hash of the experiment for a time of the schedule, which the status need not know.
func ExperimentAt(benchmark *v1alpha1.StorageBenchmark, scheduled time.Time) string {
	spec := benchmark.Spec
	return digest(struct {
		UID         string
		Rerun       string
		Seed        int64
		Target      v1alpha1.Target
		Variants    []v1alpha1.Variant
		Matrix      v1alpha1.Matrix
		Phases      []v1alpha1.Phase
		Repetitions int32
		Order       v1alpha1.RunOrder
		PodTemplate v1alpha1.PodTemplate
		// Scheduled is left out of the JSON when empty: without a schedule the hash is what it always was.
		Scheduled string             `json:",omitempty"`
		Adaptive  *v1alpha1.Adaptive `json:",omitempty"`
	}{
		string(benchmark.UID), benchmark.Annotations[v1alpha1.AnnotationRerun], Seed(benchmark),
		spec.Target, spec.Variants, spec.Matrix, spec.Phases, spec.Repetitions, spec.Order, spec.PodTemplate, TimeText(scheduled), spec.Adaptive,
	})
}

// Question is the hash of what is asked, whenever and of whichever object: experiments with the same can be laid side by side.
func Question(benchmark *v1alpha1.StorageBenchmark) string {
	bare := &v1alpha1.StorageBenchmark{Spec: *benchmark.Spec.DeepCopy()}
	seed := Seed(benchmark)
	bare.Spec.Seed = &seed
	return ExperimentAt(bare, time.Time{})
}

// digest is a short hash of a value.
func digest(value any) string { return hash(value, 4) }

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
	return prefix + strings.TrimRight(node[:200], ".-") + "-" + digest(node)
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
