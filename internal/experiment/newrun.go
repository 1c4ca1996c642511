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
	// Postgres replaces it in experiments with the workload postgres, if set: it is the same image with PostgreSQL.
	Postgres string
}

// NewRun is the run for a slot, or one of its group, with all values resolved.
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

// ImageInUse is the runner image of the first run of the experiment. Empty before that run exists.
func ImageInUse(state State) string {
	for _, run := range state.Runs {
		if run.Spec.Experiment == state.Experiment {
			return run.Spec.RunnerImage
		}
	}
	return ""
}

// runnerImage is the image of the next run: that of the first run, because an upgrade of the operator during an experiment must not
// change the runner. All slots are checked, so that the runs of one experiment differ only in their variant.
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

// ScheduledAnnotation marks what belongs to a scheduled time.
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

// stepRehearse asks the API server about runs of all variants, so that an invalid value is found before the first run and not in the
// middle of the experiment. A Stalled benchmark is asked about again in every turn.
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

// Rehearsals are runs that are only checked, with placeholders for what is not chosen yet.
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

// mostRehearsals is up to how many variants all are rehearsed.
const mostRehearsals = 64

// rehearsed are the variants to rehearse: all, or in a large matrix each value at least once, because the API server checks most values by
// themselves.
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

// RefusedRun is the error of a spec whose run the API server has refused.
func RefusedRun(run *v1alpha1.BenchmarkRun, refusal error) *design.SpecError {
	return &design.SpecError{Reason: v1alpha1.ReasonSpecInvalid, Message: fmt.Sprintf("variant %q cannot be run: %v", run.Spec.Variant,
		refusal)}
}
