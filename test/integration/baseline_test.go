package integration

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// TestBaseline: a gate waits for its baseline without holding up the runs, is judged once the baseline exists, and refuses a baseline of
// another machine.
func TestBaseline(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	g := gomega.NewWithT(t)
	benchmark := l.submit("bench", `
phases: [{name: log, measure: {workload: {redo: {}}}}]
repetitions: 4
baseline: {configMap: {name: base}}
gates: [{name: no-worse, compare: {metric: log.writeBytesPerSecond, to: Baseline, tolerance: 20%, acceptSingleDay: true}}]
`)
	first := l.finished(benchmark, v1alpha1.VerdictInconclusive)
	g.Expect(first.Status.Gates[0].Reason).To(gomega.Equal("BaselineMissing"))
	g.Expect(first.Status.Gates[0].Message).To(gomega.ContainSubstring("kubectl storagebench baseline accept"))

	_, written := l.results(first, first.Status.Results.ConfigMap)
	baseline, _, err := results.MakeBaseline(written, results.AcceptOptions{AcceptedAt: written.FinishedAt.Add(1)})
	l.must(err)
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: benchmark.Namespace, Name: "base",
		Labels: map[string]string{v1alpha1.LabelBenchmark: benchmark.Name}}}
	store := func(document results.Baseline) {
		text, err := document.Encode()
		l.must(err)
		stored.Data = map[string]string{results.KeyBaseline: string(text)}
	}
	store(baseline)
	l.must(l.live.Create(t.Context(), stored))
	judged := func(reason string, verdict v1alpha1.Verdict) *v1alpha1.StorageBenchmark {
		l.eventually("judged: "+reason, func(g gomega.Gomega) {
			gates := l.get(benchmark).Status.Gates
			g.Expect(gates).To(gomega.HaveLen(1))
			g.Expect(gates[0].Reason).To(gomega.Equal(reason))
		})
		return l.finished(benchmark, verdict)
	}
	l.eventually("it is not its own reference", func(g gomega.Gomega) {
		gates := l.get(benchmark).Status.Gates
		g.Expect(gates).To(gomega.HaveLen(1))
		g.Expect(gates[0].Message).To(gomega.ContainSubstring("only the numbers of this experiment"))
	})
	baseline.Experiments[0].Experiment = "0123abcd" // as if another one had measured them
	store(baseline)
	l.must(l.live.Update(t.Context(), stored))
	second := judged("Holds", v1alpha1.VerdictPassed)
	comparison := second.Status.Gates[0].Comparisons[0]
	g.Expect(comparison.Runs).To(gomega.Equal(int32(4)))
	g.Expect(comparison.BaselineRuns).To(gomega.Equal(int32(4)))

	baseline.Environment = map[string][]string{"kernel": {"1.0"}}
	store(baseline)
	l.must(l.live.Update(t.Context(), stored))
	third := judged("BaselineUnlike", v1alpha1.VerdictInvalid)
	g.Expect(third.Status.Gates[0].Message).To(gomega.ContainSubstring("baseline 1.0"))

	stored.Data = map[string]string{results.KeyBaseline: "{"}
	l.must(l.live.Update(t.Context(), stored))
	judged("BaselineInvalid", v1alpha1.VerdictInvalid)
	l.executedOnce(4)
}
