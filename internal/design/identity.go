package design

import (
	"hash/fnv"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// Seed is the seed of the benchmark: the declared one, or one derived from its UID.
func Seed(benchmark *v1alpha1.StorageBenchmark) int64 {
	if benchmark.Spec.Seed != nil {
		return *benchmark.Spec.Seed
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(benchmark.UID))
	return int64(hash.Sum64() >> 33) // 31 bits: short enough to type into a spec
}

// ID is the hash of everything that affects the measurements. Gates, retention and similar fields are not part of it: changing them does
// not invalidate the measurements.
func ID(benchmark *v1alpha1.StorageBenchmark) string {
	return IDAt(benchmark, LastTime(benchmark))
}

// IDAt is the hash of the experiment for a scheduled time, independent of the status.
func IDAt(benchmark *v1alpha1.StorageBenchmark, scheduled time.Time) string {
	spec := benchmark.Spec
	return naming.Digest(struct {
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
		// Scheduled is omitted from the JSON when empty, so that benchmarks without a schedule keep their hash.
		Scheduled        string                 `json:",omitempty"`
		Adaptive         *v1alpha1.Adaptive     `json:",omitempty"`
		Zip              bool                   `json:",omitempty"`
		Exclude, Include []v1alpha1.MatrixEntry `json:",omitempty"`
	}{
		string(benchmark.UID), benchmark.Annotations[v1alpha1.AnnotationRerun], Seed(benchmark),
		spec.Target, spec.Variants, spec.Matrix, spec.Phases, spec.Repetitions, spec.Order, spec.PodTemplate, TimeText(scheduled), spec.Adaptive,
		spec.MatrixMode == v1alpha1.MatrixZip, spec.MatrixExclude, spec.MatrixInclude,
	})
}

// ComparisonHash is the hash of the measured configuration, independent of time and object. Experiments with the same hash are
// comparable.
func ComparisonHash(benchmark *v1alpha1.StorageBenchmark) string {
	bare := &v1alpha1.StorageBenchmark{Spec: *benchmark.Spec.DeepCopy()}
	bare.Spec.Seed = new(Seed(benchmark))
	return IDAt(bare, time.Time{})
}

// Definitions returns, for each variant, a hash of its target, phases and pod template. Measurements with different hashes are not
// comparable.
func Definitions(slots []Slot, pods v1alpha1.PodTemplate) map[string]string {
	definitions := map[string]string{}
	for _, slot := range slots {
		if definitions[slot.Variant] == "" {
			definitions[slot.Variant] = naming.Digest(struct {
				Target v1alpha1.Target
				Phases []v1alpha1.Phase
				Pods   v1alpha1.PodTemplate
			}{slot.Target, slot.Phases, pods})
		}
	}
	return definitions
}

// TimeText formats a scheduled time for annotations and hashes. It returns "" for the zero time.
func TimeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// LastTime returns the scheduled time in the status, or zero if there is none.
func LastTime(benchmark *v1alpha1.StorageBenchmark) time.Time {
	if status := benchmark.Status.Schedule; status != nil && status.LastTime != nil {
		return status.LastTime.UTC()
	}
	return time.Time{}
}
