package integration

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestRestarts stops the manager at random moments of an experiment, starts another, and wants the same end.
func TestRestarts(t *testing.T) {
	t.Parallel()
	const restarts = 6
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	l := start(t, nil)
	benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 3 })
	for range restarts {
		news := len(l.journal.all()) + 1 + random.IntN(25) // an experiment of three runs is some 150 changes
		l.eventually("some progress", func(g gomega.Gomega) {
			g.Expect(l.get(benchmark).Status.Verdict != "" || len(l.journal.all()) >= news).To(gomega.BeTrue())
		})
		l.stop()
		t.Logf("restart after %d changes, state %s", len(l.journal.all()), l.get(benchmark).Status.State)
		l.startManager(config)
	}
	finished := l.finished(benchmark, v1alpha1.VerdictPassed)
	l.executedOnce(6)
	gomega.NewWithT(t).Expect(*finished.Status.Progress).To(gomega.Equal(v1alpha1.ProgressStatus{RunsTotal: 3, RunsDone: 3}))
	l.nothingLeft(append(workloadKinds(), &coordinationv1.LeaseList{})...)
}

// TestRestartInFinalStates starts a manager on what another has finished: nothing is recreated.
func TestRestartInFinalStates(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.startManager(config)
	benchmark := l.finished(l.submit("bench", small), v1alpha1.VerdictPassed)
	l.nothingLeft(append(workloadKinds(), &coordinationv1.LeaseList{})...)
	benchmark = l.get(benchmark)
	l.stop()
	m := l.metered()
	l.eventually("a look", func(g gomega.Gomega) {
		g.Expect(m.reconciles(benchmark, "storagebenchmarks")).To(gomega.BeNumerically(">", 0))
	})
	gomega.NewWithT(t).Consistently(m.written).WithTimeout(soon/3).WithPolling(polling).Should(gomega.BeEmpty(), "writes after a restart")
	gomega.NewWithT(t).Expect(l.get(benchmark).ResourceVersion).To(gomega.Equal(benchmark.ResourceVersion))
}
