package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// kept creates an experiment whose pools are kept.
func (l *lab) kept(name string, reset v1alpha1.ResetPolicy, repetitions int32, more string,
	changes ...func(*v1alpha1.StorageBenchmark)) *v1alpha1.StorageBenchmark {
	l.t.Helper()
	return l.submitOnDisks(name, small+oneDisk+"\n"+more, append(changes, func(b *v1alpha1.StorageBenchmark) {
		b.Spec.Target.ZFS.Reset, b.Spec.Repetitions = reset, repetitions
	})...)
}

// pools returns the UIDs of the lab's pools, by name.
func (l *lab) pools(ctx context.Context) map[string]string {
	var list v1alpha1.BenchmarkPoolList
	_ = l.live.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelNamespace: l.namespaces[0]}) // a later call sees missed ones
	found := map[string]string{}
	for _, pool := range list.Items {
		found[pool.Name] = string(pool.UID)
	}
	return found
}

// TestResetNone: each repetition continues with the data of the one before, except the one after a failure, which gets a new pool.
func TestResetNone(t *testing.T) {
	var guard sync.Mutex
	var asked []string
	failed := false
	l := startNodes(t, 1, func(request workload.Request, _ *corev1.Pod) sim.Script {
		guard.Lock()
		defer guard.Unlock()
		from := "none"
		if request.KeepsDataOf != nil {
			from = strings.TrimPrefix(request.KeepsDataOf.Name, request.Run.Name[:len("bench-01234567-")])
		}
		asked = append(asked, string(request.Phase.Name)+" from "+from)
		if len(asked) == 4 && !failed { // the read of the second repetition
			failed = true
			return sim.Script{Outcome: sim.Evict}
		}
		return sim.Script{}
	})
	g := gomega.NewWithT(t)
	benchmark := l.kept("bench", v1alpha1.ResetNone, 3, "")
	l.finished(benchmark, v1alpha1.VerdictPassed)
	guard.Lock()
	g.Expect(asked).To(gomega.Equal([]string{"fill from none", "read from none", "fill from 000", "read from 000",
		"fill from none", "read from none", "fill from 001-2", "read from 001-2"}))
	guard.Unlock()
	from := map[string]string{}
	_, experiment := l.results(benchmark, naming.ResultsName("bench", design.ID(l.get(benchmark))))
	for _, run := range experiment.Runs {
		g.Expect(run.Reset).To(gomega.Equal("None"))
		from[run.Name[len("bench-01234567-"):]] = run.KeptFrom[max(0, len(run.KeptFrom)-5):]
	}
	g.Expect(from).To(gomega.HaveLen(4))
	g.Expect(from["000"]).To(gomega.BeEmpty())
	g.Expect(from["001"]).To(gomega.HaveSuffix("-000"))
	g.Expect(from["001-2"]).To(gomega.BeEmpty())
	g.Expect(from["002"]).To(gomega.Equal("001-2"))
	l.poolsGone()
}

// TestResetDataset: each variant has its own pool, one after another, and at most one exists at any time. The nodes are released after the
// last of them.
func TestResetDataset(t *testing.T) {
	l := startNodes(t, 1, func(request workload.Request, _ *corev1.Pod) sim.Script {
		if request.KeepsDataOf != nil {
			t.Errorf("run %s is to keep data of a dataset that is new", request.Run.Name)
		}
		return sim.Script{}
	})
	var guard sync.Mutex
	seen, there, most := map[string]bool{}, map[string]bool{}, 0
	watchAll(l, &v1alpha1.BenchmarkPoolList{}, func(change watch.EventType, pool *v1alpha1.BenchmarkPool) {
		guard.Lock()
		defer guard.Unlock()
		seen[pool.Name+" "+string(pool.UID)] = true
		if there[pool.Name] = true; change == watch.Deleted {
			delete(there, pool.Name)
		}
		most = max(most, len(there))
	})
	g := gomega.NewWithT(t)
	benchmark := l.kept("bench", v1alpha1.ResetDataset, 2, "order: Sequential\nmatrix: {dataset.recordsize: ['8192', '16384']}\n")
	l.eventually("the first variant is done with", func(g gomega.Gomega) { g.Expect(l.runs()).To(gomega.HaveLen(3)) })
	l.finished(benchmark, v1alpha1.VerdictPassed)
	l.poolsGone()
	guard.Lock()
	defer guard.Unlock()
	g.Expect(seen).To(gomega.HaveLen(2), "one pool for each variant")
	g.Expect(most).To(gomega.Equal(1))
	kept := 0
	for _, run := range l.runs() {
		if run.Status.Volumes[0].KeptFrom != "" {
			kept++
		}
	}
	g.Expect(kept).To(gomega.Equal(2))
}

// TestResetIsStopped: a benchmark that is suspended or deleted in the middle leaves no pool. If it is resumed, it begins on a new one.
func TestResetIsStopped(t *testing.T) {
	hold := sync.OnceValue(func() sim.Script { return sim.Script{Hold: true} })
	l := startNodes(t, 1, func(request workload.Request, _ *corev1.Pod) sim.Script {
		if request.KeepsDataOf != nil && request.Phase.Name == "read" {
			return hold()
		}
		return sim.Script{}
	})
	g := gomega.NewWithT(t)
	benchmark := l.kept("bench", v1alpha1.ResetNone, 2, "")
	l.running("read", 1, "-001")
	g.Expect(l.pools(t.Context())).To(gomega.HaveLen(1))
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = true })
	l.eventually("no pool is left of a suspended benchmark", func(g gomega.Gomega) { g.Expect(l.pools(t.Context())).To(gomega.BeEmpty()) })
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = false })
	l.finished(benchmark, v1alpha1.VerdictPassed)
	for _, run := range l.runs() {
		g.Expect(run.Status.Volumes[0].KeptFrom).To(gomega.BeEmpty(), run.Name)
	}
	l.must(l.live.Delete(t.Context(), benchmark))
	l.poolsGone()
}

// TestKeepForSchedule: a pool ages over three experiments of a schedule. Between them the node is free and the pool stays. A suspended
// benchmark gives the pool up, and the age begins again.
func TestKeepForSchedule(t *testing.T) {
	l := startNodes(t, 1, nil)
	g := gomega.NewWithT(t)
	benchmark := l.kept("nightly", v1alpha1.ResetNone, 2, `
schedule: {cron: "0 3 * * *"}
gates:
- {name: refuses, compare: {metric: read.readBytesPerSecond, to: History}}
- {name: accepts, compare: {metric: read.readBytesPerSecond, to: History, acceptAgeing: true}}
`, func(b *v1alpha1.StorageBenchmark) { b.Spec.Target.ZFS.KeepFor = v1alpha1.KeepForSchedule })
	night, pool := l.finished(benchmark, v1alpha1.VerdictInconclusive), map[string]string{}
	for number := int32(1); ; number++ {
		l.eventually("the node is free between the experiments", func(g gomega.Gomega) {
			var leases coordinationv1.LeaseList
			g.Expect(l.live.List(t.Context(), &leases, client.InNamespace(l.namespaces[0]))).To(gomega.Succeed())
			g.Expect(leases.Items).To(gomega.BeEmpty())
		})
		if number == 1 {
			pool = l.pools(t.Context())
		}
		g.Expect(pool).To(gomega.HaveLen(1))
		g.Expect(l.pools(t.Context())).To(gomega.Equal(pool), "after experiment %d", number)
		gates := l.agedOver(night, number, 2*number)
		g.Expect([]string{gates[0].Reason, gates[1].Reason}).To(gomega.Equal([]string{gate.ReasonNotIndependent,
			gate.ReasonTooFewExperiments}), gates[1].Message)
		g.Expect(gates[1].Message).To(gomega.ContainSubstring(fmt.Sprintf("has %d experiment", number)))
		if number == 3 {
			break
		}
		l.clock.set(night.Status.Schedule.NextTime.Time)
		l.wake(benchmark)
		night = l.finishedExperimentAfter(benchmark, night.Status.Experiment, v1alpha1.VerdictInconclusive)
		g.Expect(l.runs()).To(gomega.HaveLen(2), "the runs of the experiment before are gone")
	}
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = true })
	l.poolsGone()
	suspended := l.finished(benchmark, v1alpha1.VerdictInconclusive)
	g.Expect(suspended.Status.Experiment).To(gomega.Equal(night.Status.Experiment))
	l.clock.set(night.Status.Schedule.NextTime.Time)
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = false })
	night = l.finishedExperimentAfter(benchmark, night.Status.Experiment, v1alpha1.VerdictInconclusive)
	l.agedOver(night, 1, 2)
	g.Expect(l.history(night).Points).To(gomega.HaveLen(4))
	l.must(l.live.Delete(t.Context(), night))
	l.poolsGone()
}

// agedOver checks what the status and the results of an experiment say about the age of its pool, and returns the gates.
func (l *lab) agedOver(benchmark *v1alpha1.StorageBenchmark, experiments, runs int32) []results.GateResult {
	l.t.Helper()
	g := gomega.NewWithT(l.t)
	_, experiment := l.results(benchmark, benchmark.Status.Results.ConfigMap)
	last := experiment.Runs[len(experiment.Runs)-1]
	g.Expect(last.PoolAge).NotTo(gomega.BeNil())
	g.Expect([]int32{last.PoolAge.Experiments, last.PoolAge.Runs}).To(gomega.Equal([]int32{experiments, runs}))
	g.Expect(experiment.Runs[0].KeptFrom == "").To(gomega.Equal(experiments == 1))
	g.Expect(experiment.Message).To(gomega.ContainSubstring(results.AgeOf(experiment.Runs).Words()))
	l.waits(benchmark, v1alpha1.ReasonFinished, fmt.Sprintf("is kept for the next scheduled experiment (%d experiment", experiments))
	return experiment.Gates
}
