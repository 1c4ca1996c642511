package integration

import (
	"slices"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestExpansion runs variants times a matrix times repetitions in the order that it recorded.
func TestExpansion(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	g := gomega.NewWithT(t)
	benchmark := l.submit("bench", `
seed: 11
variants: [{name: small, storageClass: {size: 32Mi}}, {name: large, storageClass: {size: 96Mi}}]
matrix: {phases.fill.to: [40%, 80%]}
phases: [{name: fill, fill: {to: 50%}}]
repetitions: 2
`)
	benchmark = l.finished(benchmark, v1alpha1.VerdictPassed)
	runs := l.runs()
	g.Expect(runs).To(gomega.HaveLen(8))
	seeds := map[int32]int64{}
	var variants [2][]string
	for i, run := range runs {
		g.Expect(run.Spec.Index).To(gomega.BeEquivalentTo(i))
		g.Expect(run.Spec.Repetition).To(gomega.BeEquivalentTo(i/4+1), "every variant once before any twice")
		g.Expect(run.Spec.Variant).To(gomega.HaveSuffix("phases.fill.to=" + string(run.Spec.Phases[0].Fill.To)))
		variants[i/4] = append(variants[i/4], run.Spec.Variant)
		if i%4 > 0 {
			g.Expect(run.Spec.Seed).To(gomega.Equal(seeds[run.Spec.Repetition]), "variants are compared on equal data")
		}
		seeds[run.Spec.Repetition] = run.Spec.Seed
	}
	g.Expect(seeds[1]).NotTo(gomega.Equal(seeds[2]))
	g.Expect(variants[0]).To(gomega.ConsistOf(variants[1]))
	g.Expect(slices.Compact(slices.Sorted(slices.Values(variants[0])))).To(gomega.HaveLen(4))
	for i, execution := range l.cluster.Executions() {
		g.Expect(execution.Run).To(gomega.Equal(runs[i].Name), "executed in the order of the index")
		g.Expect(execution.Seed).To(gomega.Equal(runs[i].Spec.Seed))
	}
	_, written := l.results(benchmark, benchmark.Status.Results.ConfigMap)
	g.Expect(written.Order).To(gomega.Equal("Interleaved"))
	g.Expect(written.Seed).To(gomega.BeEquivalentTo(11))
	for i, run := range written.Runs {
		g.Expect([]any{run.Name, run.Variant, run.Seed}).To(gomega.Equal([]any{runs[i].Name, runs[i].Spec.Variant, runs[i].Spec.Seed}))
	}
	g.Expect(written.Variants).To(gomega.HaveLen(4))
}

// TestExpansionThatCannotBe: an impossible expansion stops the benchmark before anything is made.
func TestExpansionThatCannotBe(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	sixteen := "[1%, 2%, 3%, 4%, 5%, 6%, 7%, 8%, 9%, 10%, 11%, 12%, 13%, 14%, 15%, 16%]"
	phases := "phases: [{name: fill, fill: {to: 50%}}, {name: more, fill: {to: 90%}}]\n"
	for _, c := range []struct{ name, spec, reason, words string }{
		{"too-large", phases + "repetitions: 3\nmatrix: {phases.fill.to: " + sixteen + ", phases.more.to: " + sixteen + "}",
			v1alpha1.ReasonExpansionTooLarge, "768 runs"},
		{"bad-value", phases + "repetitions: 1\nmatrix: {phases.fill.to: [40%, 800%]}", v1alpha1.ReasonSpecInvalid, "800%"},
		{"bad-field", phases + "repetitions: 1\nmatrix: {phases.fill.colour: [40%]}", v1alpha1.ReasonMatrixInvalid, "colour"},
		{"bad-number", "phases: [{name: read, measure: {workload: {oltp: {workers: 2}}}}]\nmatrix: {phases.read.workers: [many]}",
			v1alpha1.ReasonMatrixInvalid, "many"},
		{"never-due", phases + "schedule: {cron: '0 0 30 2 *'}", v1alpha1.ReasonScheduleInvalid, "never matches"},
	} {
		benchmark := l.submit(c.name, c.spec)
		l.waits(benchmark, c.reason, c.words)
		if got := l.get(benchmark).Status.State; got != c.reason {
			t.Errorf("%s: state is %s", c.name, got)
		}
	}
	gomega.NewWithT(t).Expect(l.left(everyKind()...)).To(gomega.HaveLen(5), "only the benchmarks themselves")
}
