package cli

import (
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// rehearsalName replaces values that only a cluster has, while a run is only validated.
const rehearsalName = "rehearsal"

// runObject is the BenchmarkRun of a slot, as the manager creates it. Outside of a cluster, the planner and the API's rules use it
// to validate a run.
func runObject(benchmark *v1alpha1.StorageBenchmark, experiment string, slot *experiment.Slot, attempt int32, node,
	image string) *v1alpha1.BenchmarkRun {
	name := naming.RunName(benchmark.Name, experiment, slot.Index, attempt)
	run := &v1alpha1.BenchmarkRun{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "BenchmarkRun"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: benchmark.Namespace, UID: types.UID(string(benchmark.UID) + "/" + name)},
		Spec: v1alpha1.BenchmarkRunSpec{
			Benchmark: benchmark.Name, Experiment: experiment,
			Index: slot.Index, Variant: slot.Variant, Repetition: slot.Repetition, Attempt: attempt, Seed: slot.Seed,
			NodeName: node, RunnerImage: image, Target: *slot.Target.DeepCopy(),
			Retain: benchmark.Spec.Retain, PodTemplate: *benchmark.Spec.PodTemplate.DeepCopy(),
		},
	}
	for _, phase := range slot.Phases {
		run.Spec.Phases = append(run.Spec.Phases, *phase.DeepCopy())
	}
	return run
}
