package integration

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/sim"
)

// TestRetain: volumes and pods are kept as requested, and deleted with the benchmark.
func TestRetain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy v1alpha1.RetainPolicy
		kept   int
	}{
		// The first attempt fails in its first phase, the second has two phases; a claim and its volume for each.
		{v1alpha1.RetainAlways, 2 + 2 + (2*2 + 2)},
		{v1alpha1.RetainOnFailure, 2 + 2},
		{v1alpha1.RetainNever, 0},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			t.Parallel()
			l := start(t, firstAttempt(sim.Script{Outcome: sim.Fail, ExitCode: 3, Message: "disk on fire"}))
			benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Retain = c.policy })
			l.finished(benchmark, v1alpha1.VerdictPassed)
			l.eventually("what is kept", func(g gomega.Gomega) {
				g.Expect(l.left(heldKinds()...)).To(gomega.HaveLen(c.kept))
			})
			for _, run := range l.runs() {
				if told := strings.Contains(ready(run.Status.Conditions).Message, "are kept"); told != (run.Spec.Attempt == 1 && c.kept > 0 ||
					c.kept > 4) {
					t.Errorf("run %s says: %s", run.Name, ready(run.Status.Conditions).Message)
				}
			}
			l.endedAs(v1alpha1.ReasonPodFailed, "exit code 3", "disk on fire")
			l.must(l.live.Delete(t.Context(), benchmark))
			l.nothingLeft(everyKind()...)
		})
	}
}

// TestTTL deletes a benchmark with its results some time after its end.
func TestTTL(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) {
		b.Spec.TTLAfterFinished = new(v1alpha1.Duration)
		l.must(yaml.Unmarshal([]byte("3s"), b.Spec.TTLAfterFinished))
	})
	finished := l.finished(benchmark, v1alpha1.VerdictPassed)
	l.nothingLeft(everyKind()...)
	end := finished.Status.FinishedAt.Time
	for _, seen := range l.journal.all() {
		if b, is := seen.object.(*v1alpha1.StorageBenchmark); is && b.DeletionTimestamp != nil && b.DeletionTimestamp.Sub(end).Seconds() < 3 {
			t.Errorf("deleted %v after its end", b.DeletionTimestamp.Sub(end))
		}
	}
	gomega.NewWithT(t).Expect(l.cluster.Executions()).To(gomega.HaveLen(2))
}
