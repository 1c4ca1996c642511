package design

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

func TestReplaceTargets(t *testing.T) {
	benchmark := referring("b", "a", "b", "c")
	if diff := cmp.Diff([]string{"a", "b", "c"}, TargetNames(&benchmark.Spec)); diff != "" {
		t.Error(diff)
	}
	missing := ReplaceTargets(&benchmark.Spec, map[string]v1alpha1.Target{"b": runstest.Target()})
	if diff := cmp.Diff([]string{"a", "c"}, missing); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(runstest.Target(), benchmark.Spec.Target); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(runstest.Target(), *benchmark.Spec.Variants[1].Target); diff != "" {
		t.Error(diff)
	}
}

func referring(names ...string) *v1alpha1.StorageBenchmark {
	benchmark := runstest.Benchmark()
	benchmark.Spec.Target = v1alpha1.Target{Ref: &v1alpha1.TargetRef{Name: names[0]}}
	benchmark.Spec.Variants = nil
	for _, name := range names[1:] {
		benchmark.Spec.Variants = append(benchmark.Spec.Variants, v1alpha1.Variant{Name: v1alpha1.VariantName(name),
			Target: &v1alpha1.Target{Ref: &v1alpha1.TargetRef{Name: name}}})
	}
	return benchmark
}
