package integration

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// TestSpecChange changes what is measured in the middle of the second run.
func TestSpecChange(t *testing.T) {
	t.Parallel()
	l := start(t, holdRun("001", "read"))
	g := gomega.NewWithT(t)
	benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 2 })
	l.running("read", 1, "001")
	old := l.get(benchmark).Status.Experiment
	l.cluster.SetBehaviour(holdExperiment(old)) // or the old run might go on before the change is seen
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Phases[0].Fill.To = "60%" })
	current := l.finishedExperimentAfter(benchmark, old, v1alpha1.VerdictPassed)

	g.Expect(current.Status.History).To(gomega.HaveLen(1))
	kept := current.Status.History[0]
	g.Expect(kept.Experiment).To(gomega.Equal(old))
	g.Expect(kept.ConfigMap).To(gomega.Equal("bench-" + old))
	g.Expect(kept.Verdict).To(gomega.BeEmpty())
	_, written := l.results(current, kept.ConfigMap)
	g.Expect(written.State).To(gomega.Equal(results.StateSuperseded))
	g.Expect(written.Experiment).To(gomega.Equal(old))
	g.Expect(written.Runs).NotTo(gomega.BeEmpty())
	g.Expect(written.Runs[0].Valid).To(gomega.BeTrue())
	g.Expect(written.Runs[0].Phases).To(gomega.HaveLen(2))
	for _, run := range l.runs() {
		g.Expect(run.Spec.Experiment).To(gomega.Equal(current.Status.Experiment))
		g.Expect(run.Spec.Phases[0].Fill.To).To(gomega.BeEquivalentTo("60%"))
	}
	l.nothingLeft(workloadKinds()...)
	g.Expect(l.journal.mostAtOnce(l.node)).To(gomega.Equal(1), "pods on the node at the same time")
}

// TestSpecChangeBeforeAnyResult: nothing of the old experiment is kept, because it has no result.
func TestSpecChangeBeforeAnyResult(t *testing.T) {
	t.Parallel()
	l := start(t, holdRun("000", "fill"))
	benchmark := l.submit("bench", small)
	l.running("fill", 1)
	old := l.get(benchmark).Status.Experiment
	l.cluster.SetBehaviour(holdExperiment(old)) // or the old run might go on before the change is seen
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Phases[0].Fill.To = "60%" })
	current := l.finishedExperimentAfter(benchmark, old, v1alpha1.VerdictPassed)
	gomega.NewWithT(t).Expect(current.Status.History).To(gomega.BeEmpty())
	l.executedOnce(3)
}

// TestRerun repeats a finished benchmark by annotation, again and again; only resultsHistory old results are kept.
func TestRerun(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	g := gomega.NewWithT(t)
	benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.ResultsHistory = new(int32(2)) })
	current := l.finished(benchmark, v1alpha1.VerdictPassed)
	experiments := []string{current.Status.Experiment}
	for _, again := range []string{"1", "2", "3"} {
		l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Annotations = map[string]string{v1alpha1.AnnotationRerun: again} })
		current = l.finishedExperimentAfter(benchmark, experiments[0], v1alpha1.VerdictPassed)
		experiments = append([]string{current.Status.Experiment}, experiments...)
	}
	l.eventually("two old results are kept", func(g gomega.Gomega) {
		current = l.get(benchmark)
		g.Expect(current.Status.History).To(gomega.HaveLen(2))
	})
	kept := map[string]bool{current.Status.Experiment: true}
	for _, old := range current.Status.History {
		kept[old.Experiment] = true
		g.Expect(old.Verdict).To(gomega.Equal("Passed"))
		_, written := l.results(current, old.ConfigMap)
		g.Expect(written.Verdict).To(gomega.Equal("Passed"))
	}
	g.Expect(kept).To(gomega.And(gomega.HaveLen(3), gomega.HaveKey(experiments[0]), gomega.HaveKey(experiments[1])))
	var maps corev1.ConfigMapList
	l.eventually("the ConfigMaps of what is not kept are gone", func(g gomega.Gomega) {
		l.must(l.live.List(t.Context(), &maps, client.InNamespace(l.namespaces[0]), client.HasLabels{v1alpha1.LabelBenchmarkUID}))
		g.Expect(maps.Items).To(gomega.HaveLen(6), "three results, the history, and two phases of the last run")
	})
	l.executedOnce(8)
}
