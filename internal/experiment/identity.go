package experiment

import (
	"hash/fnv"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
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

// ID is the hash of what is measured. Gates, retention and the like are not part of it: changing them does not
// make the numbers old.
func ID(benchmark *v1alpha1.StorageBenchmark) string {
	return IDAt(benchmark, lastTime(benchmark))
}

// IDAt is the hash of the experiment for a time of the schedule, which the status need not know.
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
	return IDAt(bare, time.Time{})
}
