package integration

import (
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// gates replaces the gates by one expression.
func gates(expression string) func(*v1alpha1.StorageBenchmark) {
	return func(benchmark *v1alpha1.StorageBenchmark) {
		benchmark.Spec.Gates = []v1alpha1.Gate{{Name: "gate", Expression: expression}}
	}
}

// TestGateIsJudgedAgain changes only the gates of a finished benchmark: the verdict follows without a new run.
func TestGateIsJudgedAgain(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	g := gomega.NewWithT(t)
	benchmark := l.submit("bench", small, gates("phase('read').readOperationsPerSecond > 1e9"))
	first := l.finished(benchmark, v1alpha1.VerdictFailed)
	passed := meta.FindStatusCondition(first.Status.Conditions, v1alpha1.ConditionPassed)
	g.Expect(passed.Message).To(gomega.ContainSubstring("gate"))
	g.Expect(first.Status.Gates[0].Verdict).To(gomega.Equal(v1alpha1.VerdictFailed))

	l.change(benchmark, gates("phase('read').readOperationsPerSecond > 1.0"))
	second := l.finished(benchmark, v1alpha1.VerdictPassed)
	g.Expect(second.Status.Experiment).To(gomega.Equal(first.Status.Experiment))
	_, written := l.results(second, second.Status.Results.ConfigMap)
	g.Expect(written.Verdict).To(gomega.Equal("Passed"))

	// A metric that the phase does not have: no data is no verdict.
	l.change(benchmark, gates("phase('read').readLatencyP50Nanoseconds < 1e9"))
	third := l.finished(benchmark, v1alpha1.VerdictInconclusive)
	g.Expect(third.Status.Gates[0].Message).To(gomega.ContainSubstring("readLatencyP50Nanoseconds"))

	l.change(benchmark, gates("phase('read').readOperationsPerSecond >"))
	l.waits(benchmark, v1alpha1.ReasonGateInvalid)
	l.change(benchmark, gates("phase('read').readOperationsPerSecond > 2.0"))
	l.finished(benchmark, v1alpha1.VerdictPassed)
	l.executedOnce(2)
}

// TestGateThatDoesNotCompile: the benchmark stops before anything is made, and continues once the gate is corrected.
func TestGateThatDoesNotCompile(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	g := gomega.NewWithT(t)
	benchmark := l.submit("bench", small, gates("phase('read').readOperationsPerSecond >> 5"))
	l.waits(benchmark, v1alpha1.ReasonGateInvalid, "gate", "1:")
	current := l.get(benchmark)
	g.Expect(meta.IsStatusConditionTrue(current.Status.Conditions, v1alpha1.ConditionStalled)).To(gomega.BeTrue())
	g.Expect(meta.FindStatusCondition(current.Status.Conditions, v1alpha1.ConditionReconciling)).To(gomega.BeNil())
	g.Expect(ready(current.Status.Conditions).Status).To(gomega.Equal(metav1.ConditionFalse))
	g.Expect(current.Status.State).To(gomega.Equal(v1alpha1.ReasonGateInvalid))
	g.Expect(l.left(everyKind()...)).To(gomega.HaveLen(1), "only the benchmark itself")

	l.change(benchmark, gates("phase('read').readOperationsPerSecond > 5.0"))
	l.finished(benchmark, v1alpha1.VerdictPassed)
}

// TestGatePolicy: an enforced verdict stops tools that read Ready and Stalled; changing the policy needs no new run.
func TestGatePolicy(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	g := gomega.NewWithT(t)
	policy := func(policy v1alpha1.GatePolicy) func(*v1alpha1.StorageBenchmark) {
		return func(benchmark *v1alpha1.StorageBenchmark) { benchmark.Spec.GatePolicy = policy }
	}
	benchmark := l.submit("bench", small, gates("phase('read').readOperationsPerSecond > 1e9"), policy(v1alpha1.GatesEnforce))
	l.waits(benchmark, v1alpha1.ReasonNotPassed, "Failed: ", "gate")
	stopped := l.get(benchmark).Status
	g.Expect(meta.IsStatusConditionTrue(stopped.Conditions, v1alpha1.ConditionStalled)).To(gomega.BeTrue())
	g.Expect(meta.IsStatusConditionTrue(stopped.Conditions, v1alpha1.ConditionComplete)).To(gomega.BeTrue())
	g.Expect(stopped.Verdict).To(gomega.Equal(v1alpha1.VerdictFailed))

	l.change(benchmark, policy(v1alpha1.GatesReport))
	reported := l.finished(benchmark, v1alpha1.VerdictFailed)
	g.Expect(reported.Status.Experiment).To(gomega.Equal(stopped.Experiment))

	l.change(benchmark, policy(v1alpha1.GatesEnforce))
	l.waits(benchmark, v1alpha1.ReasonNotPassed)
	l.change(benchmark, gates("phase('read').readOperationsPerSecond > 1.0"))
	l.finished(benchmark, v1alpha1.VerdictPassed)
	l.executedOnce(2)

	l.must(l.live.Delete(t.Context(), benchmark))
	l.nothingLeft(everyKind()...)
}
