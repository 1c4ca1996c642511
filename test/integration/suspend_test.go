package integration

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// holdRun holds one phase of the run with an index.
func holdRun(index, phase string) sim.Behaviour {
	return func(request workload.Request, _ *corev1.Pod) sim.Script {
		hold := request.Run.Name[len(request.Run.Name)-3:] == index && string(request.Phase.Name) == phase
		return sim.Script{Hold: hold}
	}
}

// holdExperiment keeps the pods of one experiment running.
func holdExperiment(experiment string) sim.Behaviour {
	return func(request workload.Request, _ *corev1.Pod) sim.Script {
		return sim.Script{Hold: strings.Contains(request.Run.Name, "-"+experiment+"-")}
	}
}

// TestSuspend stops an experiment in its second run and resumes it.
func TestSuspend(t *testing.T) {
	t.Parallel()
	l := start(t, holdRun("001", "read"))
	g := gomega.NewWithT(t)
	benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 2 })
	l.running("read", 1, "001")
	kept := l.runs()[0].UID

	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = true })
	l.nothingLeft(heldKinds()...)
	l.waits(benchmark, v1alpha1.ReasonSuspended, "1 of 2 runs")
	l.eventually("only the finished run is kept", func(g gomega.Gomega) { g.Expect(l.runs()).To(gomega.HaveLen(1)) })
	g.Expect(l.get(benchmark).Status.State).To(gomega.Equal("Suspended"))

	// A benchmark that waits meanwhile gets the node.
	l.cluster.SetBehaviour(nil)
	l.finished(l.submit("other", small), v1alpha1.VerdictPassed)

	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = false })
	l.finished(benchmark, v1alpha1.VerdictPassed)
	uids := map[types.UID]bool{}
	for _, run := range l.runs() {
		uids[run.UID] = true
	}
	g.Expect(uids).To(gomega.HaveKey(kept), "the finished run was kept")
	l.executedOnce(8)
}

// TestSuspendedFromTheStart: a benchmark that is created suspended makes nothing.
func TestSuspendedFromTheStart(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = true })
	l.waits(benchmark, v1alpha1.ReasonSuspended)
	gomega.NewWithT(t).Expect(l.left(everyKind()...)).To(gomega.HaveLen(1))
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = false })
	l.finished(benchmark, v1alpha1.VerdictPassed)
}
