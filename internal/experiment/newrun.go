package experiment

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/workload"
)

// Images are the runner images of new experiments.
type Images struct {
	Runner string
	// Postgres replaces Runner in experiments with the workload postgres, if set. It is the same image plus PostgreSQL.
	Postgres string
}

// NewRun returns the run for a slot, or one run of its group, with all values resolved.
func NewRun(state State, action Action, nodes []string, defaultClass string) *v1alpha1.BenchmarkRun {
	benchmark, slot, node := state.Benchmark, action.Slot, nodes[action.Member]
	name := naming.RunName(benchmark.Name, state.Experiment, slot.Index, action.Attempt)
	group := GroupOf(name, action.Member, nodes)
	if group != nil {
		name = naming.MemberName(name, action.Member)
	}
	var phases []v1alpha1.Phase
	for _, phase := range slot.Phases {
		phases = append(phases, *phase.DeepCopy())
	}
	run := &v1alpha1.BenchmarkRun{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "BenchmarkRun"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: benchmark.Namespace,
			Labels: map[string]string{
				v1alpha1.LabelBenchmark:    naming.BenchmarkLabel(benchmark.Name),
				v1alpha1.LabelBenchmarkUID: string(benchmark.UID),
				v1alpha1.LabelExperiment:   state.Experiment,
			},
			Annotations:     ScheduledAnnotation(state.ScheduledTime),
			Finalizers:      []string{v1alpha1.FinalizerTeardown},
			OwnerReferences: []metav1.OwnerReference{OwnerReference(benchmark)},
		},
		Spec: v1alpha1.BenchmarkRunSpec{
			Benchmark: benchmark.Name, Experiment: state.Experiment,
			Index: slot.Index, Variant: slot.Variant, Repetition: slot.Repetition, Attempt: action.Attempt, Seed: slot.Seed,
			NodeName: node, Group: group, RunnerImage: runnerImage(state), Phases: phases,
			Target: design.ResolveTarget(slot.Target, node, defaultClass, DefaultProvisioner(state)),
			Retain: state.Limits.retain(benchmark.Spec.Retain, slot), PodTemplate: *benchmark.Spec.PodTemplate.DeepCopy(),
		},
	}
	if lineage := lineageFor(state, slot); lineage != "" {
		run.Labels[v1alpha1.LabelLineage] = lineage
	}
	return run
}

// ImageInUse is the runner image of the first run of the experiment. It is empty before that run exists.
func ImageInUse(state State) string {
	for _, run := range state.Runs {
		if run.Spec.Experiment == state.Experiment {
			return run.Spec.RunnerImage
		}
	}
	return ""
}

// runnerImage is the image of the next run: the image of the first run, because an upgrade of the operator during an experiment must not
// change the runner. All slots are checked for the workload postgres, so that the runs of one experiment differ only in their variant.
func runnerImage(state State) string {
	if used := ImageInUse(state); used != "" {
		return used
	}
	if state.Images.Postgres != "" && slices.ContainsFunc(state.Slots, func(slot design.Slot) bool {
		return slices.ContainsFunc(slot.Phases, func(phase v1alpha1.Phase) bool {
			traits, _ := workload.PhaseTraits(&phase)
			return traits.Postgres
		})
	}) {
		return state.Images.Postgres
	}
	return state.Images.Runner
}

// ScheduledAnnotation returns the annotation that marks objects of a scheduled time.
func ScheduledAnnotation(at time.Time) map[string]string {
	if at.IsZero() {
		return nil
	}
	return map[string]string{v1alpha1.AnnotationScheduledTime: design.TimeText(at)}
}

// OwnerReference makes a benchmark the controller of an object.
func OwnerReference(benchmark *v1alpha1.StorageBenchmark) metav1.OwnerReference {
	return *metav1.NewControllerRef(benchmark, v1alpha1.GroupVersion.WithKind("StorageBenchmark"))
}

// stepRehearse validates runs of the variants with the API server, so that an invalid value is found before the first run and not in the
// middle of the experiment. For a Stalled benchmark, it does so in every reconciliation.
func stepRehearse(state State, decision *Decision) bool {
	status := state.Benchmark.Status
	if state.Rehearsed || state.SpecError != nil || !state.Benchmark.DeletionTimestamp.IsZero() ||
		status.Experiment == state.Experiment && !stalled(state.Benchmark) {
		return false
	}
	rehearsals := Rehearsals(state)
	if len(rehearsals) == 0 {
		return false
	}
	decision.say(PositionRehearsing, v1alpha1.ReasonProgressing, "checking %d runs before the first one", len(rehearsals))
	for _, run := range rehearsals {
		decision.do(Action{Kind: Rehearse, Rehearsal: run})
	}
	return true
}

// Rehearsals returns runs that are only validated, with placeholders for the values that are not chosen yet.
func Rehearsals(state State) (rehearsals []*v1alpha1.BenchmarkRun) {
	const placeholder = "rehearsal"
	for _, slot := range rehearsed(state.Slots) {
		nodes := []string{placeholder}
		for len(nodes) < slot.NodeCount() {
			nodes = append(nodes, fmt.Sprintf("%s-%d", placeholder, len(nodes)))
		}
		run := NewRun(state, Action{Slot: &slot, Attempt: 1}, nodes, placeholder)
		run.Name += "-" + placeholder
		rehearsals = append(rehearsals, run)
	}
	return rehearsals
}

// mostRehearsals is the largest number of variants for which each variant is rehearsed.
const mostRehearsals = 64

// rehearsed returns the variants to rehearse: all of them, or in a large matrix enough to have each value at least once, because the API
// server checks most values independently of each other.
func rehearsed(slots []design.Slot) (variants []design.Slot) {
	all := design.OneOfEach(slots)
	if len(all) <= mostRehearsals {
		return all
	}
	type value struct{ base, path, value string }
	seen := map[value]bool{}
	for _, slot := range all {
		unseen := !seen[value{slot.Base, "", ""}]
		seen[value{slot.Base, "", ""}] = true
		for path, text := range slot.Matrix {
			one := value{slot.Base, path, text}
			unseen, seen[one] = unseen || !seen[one], true
		}
		if unseen {
			variants = append(variants, slot)
		}
	}
	return variants
}

// RefusedRun returns the error for a spec whose run the API server has rejected.
func RefusedRun(run *v1alpha1.BenchmarkRun, refusal error) *design.SpecError {
	return &design.SpecError{Reason: v1alpha1.ReasonSpecInvalid, Message: fmt.Sprintf("variant %q cannot be run: %v", run.Spec.Variant,
		refusal)}
}
