package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/foresee"
	"github.com/storagebench/storagebench/internal/verdict"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// validated is a valid StorageBenchmark with its runs.
type validated struct {
	benchmark *v1alpha1.StorageBenchmark
	hash      string
	// slots are its runs. Empty if they are unknown.
	slots []design.Slot
	// storage is the speed of the storage, for estimates.
	storage speed
	gates   *gate.Set
	// warnings are about settings that this release does not know, or that are misleading, each at its field.
	warnings []problem
	// missing lists the StorageTargets that are in none of the files.
	missing string
	// notes are hints for the user, such as what was not checked. The manifest is valid nevertheless.
	notes []string
}

// others are the manifests that a benchmark may refer to.
type others struct {
	targets    []v1alpha1.StorageTarget
	configMaps []*manifest
}

// othersIn returns the ConfigMaps and the valid StorageTargets among the manifests.
func (s schemas) othersIn(ctx context.Context, manifests []*manifest) (found others) {
	for _, one := range manifests {
		if one.isConfigMap() {
			found.configMaps = append(found.configMaps, one)
		}
		if !one.isTarget() {
			continue
		}
		target := v1alpha1.StorageTarget{}
		if admitted, problems := s.admit(ctx, one); len(problems) == 0 && decode(admitted, &target) == nil {
			found.targets = append(found.targets, target)
		}
	}
	return found
}

// targetsFor returns the StorageTargets that a benchmark in a namespace can use, by name. A manifest without a namespace can be applied to
// any namespace.
func targetsFor(namespace string, all []v1alpha1.StorageTarget) map[string]v1alpha1.Target {
	found := map[string]v1alpha1.Target{}
	for _, one := range all {
		if _, taken := found[one.Name]; one.Namespace == namespace || !taken && (one.Namespace == "" || namespace == "") {
			found[one.Name] = one.Spec
		}
	}
	return found
}

// checkTarget validates a StorageTarget, or reports all errors.
func (s schemas) checkTarget(ctx context.Context, one *manifest) (*validated, []problem) {
	admitted, problems := s.admit(ctx, one)
	target, checked := &v1alpha1.StorageTarget{}, &validated{benchmark: &v1alpha1.StorageBenchmark{}}
	if admitted == nil {
		return nil, problems
	}
	if err := decode(admitted, target); err != nil {
		if len(problems) == 0 {
			problems = []problem{{"", err.Error()}}
		}
		return nil, problems
	}
	return checked, placed(problems, withoutCovered(problems, checked.note(foresee.Target(&target.Spec))))
}

// checkBenchmark validates a manifest and expands it into an experiment, or reports all errors. The manifest may refer to those in beside.
func (s schemas) checkBenchmark(ctx context.Context, one *manifest, beside others) (*validated, []problem) {
	admitted, problems := s.admit(ctx, one)
	if admitted == nil {
		return nil, problems
	}
	benchmark := &v1alpha1.StorageBenchmark{}
	if err := decode(admitted, benchmark); err != nil {
		if len(problems) == 0 {
			problems = []problem{{"", err.Error()}}
		}
		return nil, problems
	}
	checked := &validated{benchmark: benchmark, hash: design.ID(benchmark)}
	if len(problems) == 0 {
		return checked, s.expand(ctx, checked, beside)
	}
	var found []problem
	if onlyAcross(problems) {
		found = s.expand(ctx, checked, beside)
	} else { // its runs are unknown, but the spec can be checked as it is written
		found = checked.foreseen()
	}
	return nil, placed(problems, withoutCovered(problems, found))
}

// expand finds the runs of a benchmark, and returns the problems of the runs and of the gates.
func (s schemas) expand(ctx context.Context, checked *validated, beside others) (problems []problem) {
	benchmark, spec := checked.benchmark, &checked.benchmark.Spec
	if missing := design.ReplaceTargets(spec, targetsFor(benchmark.Namespace, beside.targets)); len(missing) > 0 {
		checked.missing = strings.Join(missing, ", ")
		checked.notes = append(checked.notes, fmt.Sprintf("only its own fields were checked, because StorageTarget %s is in none of the files",
			checked.missing))
		return checked.foreseen()
	}
	if note := missingBaselineNote(benchmark, beside.configMaps); note != "" {
		checked.notes = append(checked.notes, note)
	}
	slots, err := design.Expand(spec, design.Seed(benchmark))
	problems = append(problems, listed(err, spec)...)
	checked.slots = slots
	if err := experiment.CheckSchedule(spec.Schedule); err != nil {
		problems = append(problems, problem{"spec.schedule", err.Error()})
	}
	var read filesRead
	if err == nil {
		read = checked.readFiles(beside.configMaps)
	}
	problems = append(problems, read.problems...)
	problems = read.atReferences(checked, append(problems, checked.foreseen()...))
	if err != nil {
		checked.slots = nil
	}
	if len(problems) == 0 { // otherwise the same problems would be reported again for each variant
		problems = s.rehearse(ctx, checked)
	}
	return problems
}

// foreseen returns the mistakes that can be found before anything runs: those of the gates, and those that package foresee finds in the
// spec and the runs.
func (e *validated) foreseen() []problem {
	wrong := e.compileGates()
	return append(wrong, e.note(foresee.Spec(&e.benchmark.Spec, e.slots, e.gates))...)
}

// note keeps the warnings, and returns the mistakes.
func (e *validated) note(foresight *foresee.Foresight) []problem {
	for _, warning := range foresight.Warnings {
		e.warnings = append(e.warnings, problem{warning.Field, warning.Message})
	}
	return listed(foresight.Err(), &e.benchmark.Spec)
}

// listed converts an error of the planner to problems.
func listed(err error, spec *v1alpha1.StorageBenchmarkSpec) (problems []problem) {
	for _, wrong := range design.Mistakes(err) {
		field := cmp.Or(wrong.Field, expansionField(spec))
		problems = append(problems, problem{field, strings.TrimPrefix(wrong.Message, field+": ")})
	}
	return problems
}

// withoutCovered returns more without the problems of fields that already have a problem, or whose parent has one, and without those of
// gates with a malformed value. A problem of a whole list does not hide those of its items.
func withoutCovered(before, more []problem) (news []problem) {
	for _, one := range more {
		if !slices.ContainsFunc(before, func(other problem) bool {
			rest, within := strings.CutPrefix(one.field, other.field)
			return within && (rest == "" || rest[0] == '.') && other.field != "" && other.field != "spec" && acrossRule(other) < 0 &&
				namesRule(other) < 0 ||
				strings.HasPrefix(one.field, "spec.gates[") && strings.HasPrefix(other.field, one.field+".") &&
					strings.HasPrefix(other.message, "Invalid value")
		}) {
			news = append(news, one)
		}
	}
	return news
}

// admit checks an object against the CRD of its kind.
func (s schemas) admit(ctx context.Context, one *manifest) (*unstructured.Unstructured, []problem) {
	if version := one.object.GetAPIVersion(); version != v1alpha1.GroupVersion.String() {
		return nil, []problem{{"apiVersion", fmt.Sprintf("%q is not served: write %s", version, v1alpha1.GroupVersion)}}
	}
	compiled, known := s[one.object.GetKind()]
	if !known {
		return nil, []problem{{"kind", fmt.Sprintf("there is no kind %q in %s: write %s", one.object.GetKind(), v1alpha1.GroupVersion,
			kindBenchmark)}}
	}
	kind, err := compiled()
	if err != nil {
		return nil, []problem{{"kind", err.Error()}}
	}
	object := one.object.DeepCopy()
	types := quotes{positions: one.positions}
	types.object(object.Object, kind.structural)
	admitted, problems := kind.admit(ctx, object)
	return admitted, types.with(problems)
}

// expansionField is the field of the spec that most likely caused an expansion error.
func expansionField(spec *v1alpha1.StorageBenchmarkSpec) string {
	switch {
	case len(spec.Matrix) > 0:
		return "spec.matrix"
	case len(spec.Variants) > 0:
		return "spec.variants"
	}
	return "spec.phases"
}

// compileGates compiles each gate separately, to report an error at its position.
func (e *validated) compileGates() []problem {
	spec := &e.benchmark.Spec
	variants := e.variantNames()
	if len(variants) == 0 && len(spec.Gates) > 0 {
		e.notes = append(e.notes, "its gates were not checked, because the names of its variants depend on the matrix")
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
		if advice := verdict.Undecidable(spec, e.gates); advice != "" {
			e.notes = append(e.notes, advice)
		}
	}
	return problems
}

// variantNames returns the names of the variants of the runs. Without runs, they are known only if there is no matrix.
func (e *validated) variantNames() []string {
	spec := &e.benchmark.Spec
	switch {
	case len(e.slots) > 0:
		return design.VariantNames(e.slots)
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

// state returns the planner's state for the benchmark, outside of a cluster.
func (e *validated) state() experiment.State {
	return experiment.State{Benchmark: e.benchmark, Experiment: e.hash, Slots: e.slots}
}

// rehearse validates the run of each variant, as the manager does before it creates the first: a matrix value is only text until it
// is set in a field.
func (s schemas) rehearse(ctx context.Context, checked *validated) []problem {
	kind, err := s[kindRun]()
	if err != nil {
		return []problem{{"", err.Error()}}
	}
	var problems []problem
	state := checked.state()
	state.Images.Runner = "rehearsal" // only the manager knows it
	for _, run := range experiment.Rehearsals(state) {
		run.OwnerReferences = nil // the benchmark has no UID yet
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(run)
		if err != nil {
			return append(problems, problem{"", err.Error()})
		}
		_, wrong := kind.admit(ctx, &unstructured.Unstructured{Object: fields})
		for _, one := range wrong {
			problems = append(problems, problem{expansionField(&checked.benchmark.Spec),
				experiment.RefusedRun(run, errors.New(one.String())).Message})
		}
	}
	return problems
}

// missingBaselineNote returns a note if a gate needs the baseline and its ConfigMap is not among the files. Otherwise the user would learn
// this only after all runs.
func missingBaselineNote(benchmark *v1alpha1.StorageBenchmark, configMaps []*manifest) string {
	baseline := benchmark.Spec.Baseline
	judged := slices.ContainsFunc(benchmark.Spec.Gates, func(gate v1alpha1.Gate) bool {
		return gate.Compare != nil && gate.Compare.To == "Baseline"
	})
	if baseline == nil || !judged || slices.ContainsFunc(configMaps, func(one *manifest) bool {
		return one.isConfigMap() && one.object.GetName() == baseline.ConfigMap.Name
	}) {
		return ""
	}
	return fmt.Sprintf("ConfigMap %s of spec.baseline is not among the files: if the namespace does not have it, gates to Baseline are "+
		"Inconclusive (BaselineMissing)", baseline.ConfigMap.Name)
}
