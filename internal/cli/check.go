package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/gate"
)

// validated is a StorageBenchmark that was found to be valid, with what follows from it.
type validated struct {
	benchmark *v1alpha1.StorageBenchmark
	hash      string
	// slots are its runs; none if this version cannot run it.
	slots []experiment.Slot
	gates *gate.Set
	// notes say what a user should know of it, such as why it cannot be run here; it is valid all the same.
	notes []string
}

// checkBenchmark makes of a manifest an experiment, or says all that is wrong with it.
func (s schemas) checkBenchmark(ctx context.Context, one *manifest) (*validated, []problem) {
	admitted, problems := s.admit(ctx, one)
	if len(problems) > 0 {
		return nil, problems
	}
	benchmark := &v1alpha1.StorageBenchmark{}
	if err := decode(admitted, benchmark); err != nil {
		return nil, []problem{{"", err.Error()}}
	}
	checked := &validated{benchmark: benchmark, hash: experiment.ID(benchmark)}
	spec := &benchmark.Spec
	slots, err := experiment.Expand(spec, experiment.Seed(benchmark))
	var wrong *experiment.SpecError
	switch {
	case errors.As(err, &wrong) && wrong.Reason == v1alpha1.ReasonNotSupported:
		checked.notes = append(checked.notes, wrong.Message)
	case err != nil:
		return nil, []problem{{expansionField(spec), err.Error()}}
	}
	if err := experiment.CheckSchedule(spec.Schedule); err != nil {
		return nil, []problem{{"spec.schedule", err.Error()}}
	}
	checked.slots = slots
	return checked, append(checked.compileGates(), s.rehearse(ctx, checked)...)
}

// admit checks an object against the CRD of its kind.
func (s schemas) admit(ctx context.Context, one *manifest) (*unstructured.Unstructured, []problem) {
	if version := one.object.GetAPIVersion(); version != v1alpha1.GroupVersion.String() {
		return nil, []problem{{"apiVersion", fmt.Sprintf("%q is not served: write %s", version, v1alpha1.GroupVersion)}}
	}
	kind, known := s[one.object.GetKind()]
	if !known {
		return nil, []problem{{"kind", fmt.Sprintf("there is no kind %q in %s: write %s", one.object.GetKind(), v1alpha1.GroupVersion,
			kindBenchmark)}}
	}
	return kind.admit(ctx, one.object)
}

// expansionField is the part of the spec that an error of the expansion is most likely about.
func expansionField(spec *v1alpha1.StorageBenchmarkSpec) string {
	switch {
	case len(spec.Matrix) > 0:
		return "spec.matrix"
	case len(spec.Variants) > 0:
		return "spec.variants"
	}
	return "spec.phases"
}

// compileGates compiles each gate by itself, so that a mistake can be shown where it is.
func (e *validated) compileGates() []problem {
	spec := &e.benchmark.Spec
	variants := e.variantNames()
	if len(variants) == 0 && len(spec.Gates) > 0 {
		e.notes = append(e.notes, "its gates were not checked, for the names of its variants depend on the matrix")
		return nil
	}
	var problems []problem
	for i, one := range spec.Gates {
		field := fmt.Sprintf("spec.gates[%d]", i)
		if one.Expression != "" {
			field += ".expression"
		}
		if _, err := gate.Compile([]v1alpha1.Gate{one}, spec.Phases, variants); err != nil {
			for line := range strings.Lines(err.Error()) {
				problems = append(problems, problem{field, strings.TrimSpace(line)})
			}
		}
	}
	if len(problems) == 0 {
		var err error
		if e.gates, err = gate.Compile(spec.Gates, spec.Phases, variants); err != nil {
			return []problem{{"spec.gates", err.Error()}}
		}
		looks, most := 1, spec.Repetitions
		if spec.Adaptive != nil {
			looks, most = 2, spec.Adaptive.MaxRepetitions
		}
		if comparisons, needed := e.gates.Needs(looks); int(most) < needed {
			e.notes = append(e.notes,
				fmt.Sprintf("comparisons of the gates: %d; for one of them to be Failed it takes %d repetitions, and there are %d: make more, or "+
					"compare less",
					comparisons, needed, most))
		}
	}
	return problems
}

// variantNames are known from the runs; without them, only if there is no matrix.
func (e *validated) variantNames() []string {
	spec := &e.benchmark.Spec
	switch {
	case len(e.slots) > 0:
		return experiment.VariantNames(e.slots)
	case len(spec.Matrix) > 0:
		return nil
	case len(spec.Variants) == 0:
		return []string{"default"}
	}
	var names []string
	for _, variant := range spec.Variants {
		names = append(names, string(variant.Name))
	}
	return names
}

// rehearse checks the run of each variant, as the manager does before it makes the first: a value of the matrix is text
// until it is put in its place.
func (s schemas) rehearse(ctx context.Context, checked *validated) []problem {
	var problems []problem
	seen := map[string]bool{}
	for i := range checked.slots {
		slot := &checked.slots[i]
		if seen[slot.Variant] {
			continue
		}
		seen[slot.Variant] = true
		run := runObject(checked.benchmark, checked.hash, slot, 1, rehearsalName, rehearsalName)
		run.UID = ""
		if class := run.Spec.Target.StorageClass; class != nil && class.Name == "" {
			class.Name = rehearsalName
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(run)
		if err != nil {
			return append(problems, problem{"", err.Error()})
		}
		_, wrong := s["BenchmarkRun"].admit(ctx, &unstructured.Unstructured{Object: fields})
		for _, one := range wrong {
			problems = append(problems, problem{expansionField(&checked.benchmark.Spec), fmt.Sprintf("variant %q cannot be run: %s", slot.Variant,
				one)})
		}
	}
	return problems
}
