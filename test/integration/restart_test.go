package integration

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// restartOften stops the manager and starts another, this number of times, at random moments at most apart changes after each other.
func (l *lab) restartOften(benchmark *v1alpha1.StorageBenchmark, times, apart int) {
	l.t.Helper()
	seed := uint64(time.Now().UnixNano())
	l.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range times {
		news := len(l.journal.all()) + 1 + random.IntN(apart)
		l.eventually("some progress", func(g gomega.Gomega) {
			g.Expect(l.get(benchmark).Status.Verdict != "" || len(l.journal.all()) >= news).To(gomega.BeTrue())
		})
		l.stop()
		l.t.Logf("restart after %d changes, state %s", len(l.journal.all()), l.get(benchmark).Status.State)
		l.startManager(config)
	}
}

// TestRestarts stops the manager at random moments of an experiment, starts another, and expects the same end.
func TestRestarts(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 3 })
	l.restartOften(benchmark, 6, 25) // an experiment of three runs is some 150 changes
	finished := l.finished(benchmark, v1alpha1.VerdictPassed)
	l.executedOnce(6)
	gomega.NewWithT(t).Expect(*finished.Status.Progress).To(gomega.Equal(v1alpha1.ProgressStatus{RunsTotal: 3, RunsDone: 3}))
	l.nothingLeft(heldKinds()...)
}

// TestRestartInFinalStates starts a manager after another has finished a benchmark: nothing is recreated.
func TestRestartInFinalStates(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.startManager(config)
	benchmark := l.finished(l.submit("bench", small), v1alpha1.VerdictPassed)
	l.nothingLeft(heldKinds()...)
	benchmark = l.get(benchmark)
	l.stop()
	m := l.metered()
	l.eventually("a look", func(g gomega.Gomega) {
		g.Expect(m.reconciles(benchmark, "storagebenchmarks")).To(gomega.BeNumerically(">", 0))
	})
	gomega.NewWithT(t).Consistently(m.written).WithTimeout(soon/3).WithPolling(polling).Should(gomega.BeEmpty(), "writes after a restart")
	gomega.NewWithT(t).Expect(l.get(benchmark).ResourceVersion).To(gomega.Equal(benchmark.ResourceVersion))
}
