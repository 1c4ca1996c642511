package design

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// agedOnly returns a benchmark with a phase that only variant a has.
func agedOnly() *v1alpha1.StorageBenchmark {
	benchmark := runstest.Benchmark()
	aged := runstest.Phase("aged")
	aged.OnlyFor = []v1alpha1.VariantName{"a"}
	benchmark.Spec.Phases = append(benchmark.Spec.Phases, aged)
	return benchmark
}

func TestPhasesOfSomeVariants(t *testing.T) {
	phasesOf := func(slots []Slot) map[string]string {
		all := map[string]string{}
		for _, slot := range slots {
			var names []string
			for _, phase := range slot.Phases {
				names = append(names, string(phase.Name))
				if phase.OnlyFor != nil {
					t.Errorf("a run of variant %s says for whom phase %s is", slot.Variant, phase.Name)
				}
			}
			all[slot.Variant] = strings.Join(names, " ")
		}
		return all
	}
	spec := &agedOnly().Spec
	want := map[string]string{"a": "fill scan aged", "b": "fill scan"}
	if diff := cmp.Diff(want, phasesOf(mustExpand(t, spec, 1))); diff != "" {
		t.Error(diff)
	}
	spec.Matrix = v1alpha1.Matrix{"phases.scan.to": {"1%", "2%"}}
	want = map[string]string{"a,phases.scan.to=1%": "fill scan aged", "a,phases.scan.to=2%": "fill scan aged",
		"b,phases.scan.to=1%": "fill scan", "b,phases.scan.to=2%": "fill scan"}
	if diff := cmp.Diff(want, phasesOf(mustExpand(t, spec, 1))); diff != "" {
		t.Error(diff)
	}
}

func TestPhasesOfSomeVariantsAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*v1alpha1.StorageBenchmarkSpec)
		message string
	}{
		"a variant without phases": {func(s *v1alpha1.StorageBenchmarkSpec) {
			for i := range s.Phases {
				s.Phases[i].OnlyFor = []v1alpha1.VariantName{"a"}
			}
		}, `variant "b" has no phase`},
		"data of a fill that the variant skips": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.Phases = []v1alpha1.Phase{s.Phases[2], {Name: "age", Fragment: &v1alpha1.FragmentPhase{}}}
		}, `phase age of variant "b" works on the data of volume data, but no earlier phase fills it`},
		"a path into a phase of others": {func(s *v1alpha1.StorageBenchmarkSpec) { s.Matrix = v1alpha1.Matrix{"phases.aged.to": {"1%"}} },
			`there is no phase "aged" in this variant`},
	} {
		spec := &agedOnly().Spec
		test.change(spec)
		if _, err := Expand(spec, 1); err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: got %v, want ...%s...", name, err, test.message)
		}
	}
}

// TestOnlyForIsPartOfTheExperiment: onlyFor changes the hash of the experiment, but not the definition of variants whose phases stay the
// same.
func TestOnlyForIsPartOfTheExperiment(t *testing.T) {
	some, all := agedOnly(), agedOnly()
	all.Spec.Phases[2].OnlyFor = nil
	if ID(some) == ID(all) {
		t.Error("the hash of the experiment is the same")
	}
	pods := v1alpha1.PodTemplate{}
	before, after := Definitions(mustExpand(t, &all.Spec, 1), pods), Definitions(mustExpand(t, &some.Spec, 1), pods)
	if before["a"] != after["a"] || before["a"] == "" {
		t.Error("variant a, whose phases are the same, is no longer comparable")
	}
	if before["b"] == after["b"] {
		t.Error("variant b, which lost a phase, is still called the same")
	}
}
