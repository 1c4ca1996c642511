package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// startNodes makes a lab of several nodes with a simulated agent on each, and a manager. The label lab-of keeps the nodes of parallel tests
// apart.
func startNodes(t *testing.T, count int, behaviour sim.Behaviour) *lab {
	t.Helper()
	l := newLabOn(t, count, behaviour)
	for _, name := range l.nodes {
		node := &corev1.Node{}
		l.must(l.live.Get(t.Context(), client.ObjectKey{Name: name}, node))
		before := node.DeepCopy()
		node.Labels[v1alpha1.LabelLabNode], node.Labels["lab-of"] = "true", l.namespaces[0]
		l.must(l.live.Patch(t.Context(), node, client.MergeFrom(before)))
	}
	l.background("the simulated agents", again(sim.Agents{Client: l.live, Nodes: l.nodes}.Step))
	l.startManager(config)
	return l
}

// again repeats a step of the simulated agents until the test is over.
func again(step func(context.Context) (bool, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			if _, err := step(ctx); err != nil && ctx.Err() == nil {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(polling):
			}
		}
	}
}

// oneDisk is a target on a pool of one disk, and twoDisks has another volume, on another disk. More fields of the target may follow.
const (
	oneDisk = `
target:
  zfs:
    pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}
    dataset: {provisioner: Local, size: 64Mi}`
	twoDisks = oneDisk + `
    volumes:
    - {name: other, pool: {vdevs: [{devices: [/dev/disk/by-id/b]}]}, dataset: {provisioner: Local, size: 64Mi}}`
)

// submitOnDisks creates a benchmark with a target on disks, on the nodes of the lab, which startNodes has labelled.
func (l *lab) submitOnDisks(name, spec string, change ...func(*v1alpha1.StorageBenchmark)) *v1alpha1.StorageBenchmark {
	l.t.Helper()
	return l.submit(name, spec, append(change, func(b *v1alpha1.StorageBenchmark) {
		b.Spec.PodTemplate.NodeSelector = nil // the target selects the nodes
		b.Spec.Target.ZFS.Nodes.MatchLabels = map[string]string{"lab-of": l.namespaces[0]}
	})...)
}

// together creates an experiment that runs on this number of nodes at the same time.
func (l *lab) together(name string, count int32, change ...func(*v1alpha1.StorageBenchmark)) *v1alpha1.StorageBenchmark {
	l.t.Helper()
	return l.submitOnDisks(name, small+fmt.Sprintf(`
target:
  zfs:
    nodes: {count: %d}
    pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}
    perNode: [{nodeName: %s, pool: {vdevs: [{devices: [/dev/disk/by-id/b]}]}}]
    dataset: {size: 64Mi}
`, count, l.nodes[1]), change...)
}

// poolsGone waits until there is no pool.
func (l *lab) poolsGone() {
	l.t.Helper()
	l.nothingLeft(heldKinds()...)
	l.eventually("no pool is left", func(g gomega.Gomega) {
		var pools v1alpha1.BenchmarkPoolList
		g.Expect(l.live.List(l.t.Context(), &pools, client.MatchingLabels{v1alpha1.LabelNamespace: l.namespaces[0]})).To(gomega.Succeed())
		g.Expect(pools.Items).To(gomega.BeEmpty())
	})
}

// onNode gives a script to one phase on one node.
func onNode(node func() string, phase string, script sim.Script) sim.Behaviour {
	return func(request workload.Request, pod *corev1.Pod) sim.Script {
		affinity := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if string(request.Phase.Name) != phase || affinity.NodeSelectorTerms[0].MatchFields[0].Values[0] != node() {
			return sim.Script{}
		}
		return script
	}
}

// TestGroup follows an experiment on two nodes at once: no phase begins before both are ready for it, and the figures are added.
func TestGroup(t *testing.T) {
	var second string
	l := startNodes(t, 2, onNode(func() string { return second }, "fill", sim.Script{Hold: true}))
	second = l.nodes[1]
	g := gomega.NewWithT(t)
	benchmark := l.together("bench", 2, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 2 })
	for i := range 2 { // repetitions: the first node has filled and waits, the second still fills
		l.eventually("the first node waits", func(g gomega.Gomega) {
			runs := l.runs()
			g.Expect(runs).To(gomega.HaveLen(2*i + 2))
			first := runs[2*i]
			g.Expect(ready(first.Status.Conditions).Reason).To(gomega.Equal(v1alpha1.ReasonWaitingForPeers))
			g.Expect(ready(first.Status.Conditions).Message).To(gomega.ContainSubstring("waiting for node " + second))
			g.Expect(first.Status.ReadyFor.Phase).To(gomega.BeEquivalentTo("read"))
		})
		l.running("fill", 1)
		current := l.get(benchmark)
		g.Expect(current.Status.NodeName).To(gomega.Equal(l.node + "," + second))
		g.Expect(current.Status.NodeNames).To(gomega.Equal(l.nodes))
		g.Expect(ready(current.Status.Conditions).Message).To(gomega.ContainSubstring("node " + second + ": phase fill"))
		g.Expect(current.Status.Progress.RunsTotal).To(gomega.BeEquivalentTo(2))
		g.Expect(l.cluster.Release(nil)).To(gomega.Equal(1))
	}
	benchmark = l.finished(benchmark, v1alpha1.VerdictPassed)
	l.executedOnce(8)
	l.poolsGone()
	g.Expect(*benchmark.Status.Progress).To(gomega.Equal(v1alpha1.ProgressStatus{RunsTotal: 2, RunsDone: 2}))

	members := l.runs()
	g.Expect(members).To(gomega.HaveLen(4))
	for i := 0; i < len(members); i += 2 {
		g.Expect(members[i].Name).To(gomega.HaveSuffix(fmt.Sprintf("-00%d-a", i/2)))
		g.Expect(members[i].Spec.Seed).To(gomega.Equal(members[i+1].Spec.Seed))
		g.Expect(string(members[i].Spec.Target.ZFS.Pool.Vdevs[0].Devices[0])).To(gomega.HaveSuffix("/a"))
		g.Expect(string(members[i+1].Spec.Target.ZFS.Pool.Vdevs[0].Devices[0])).To(gomega.HaveSuffix("/b"))
		for k, phase := range members[i].Status.Phases {
			other := members[i+1].Status.Phases[k]
			g.Expect(phase.StartAt).NotTo(gomega.BeNil())
			g.Expect(phase.StartAt.Equal(other.StartAt)).To(gomega.BeTrue(), "%s and %s", phase.StartAt, other.StartAt)
			g.Expect(*phase.StartLagMilliseconds).To(gomega.BeZero())
		}
		since := members[i+1].Status.ReadyFor.Since // the second was the last to be ready
		g.Expect(members[i].Status.Phases[1].StartAt.Time).To(gomega.BeTemporally("~", since.Add(runs.StartAllowance), time.Millisecond))
	}
	stored, experiment := l.results(benchmark, benchmark.Status.Results.ConfigMap)
	g.Expect(experiment.Groups).To(gomega.HaveLen(2))
	g.Expect(experiment.Groups[0].Nodes).To(gomega.Equal(l.nodes))
	g.Expect(experiment.Groups[0].Phases[1].Metrics).To(gomega.HaveKeyWithValue("readBytes", int64(12_000_000_000)))
	each := experiment.Runs[0].Phases[1].Metrics["readBytesPerSecond"]
	g.Expect(experiment.Groups[0].Phases[1].Metrics["readBytesPerSecond"]).To(gomega.Equal(2 * each)) // equal seeds are equally fast
	g.Expect(experiment.Variants[0].Phases[1].Metrics[0].Runs).To(gomega.BeEquivalentTo(2))
	g.Expect(experiment.Variants[0].Phases[1].Metrics[0].Max).To(gomega.BeNumerically(">", each*3/2))
	g.Expect(stored.Data["report.md"]).To(gomega.And(gomega.ContainSubstring("## Nodes"), gomega.ContainSubstring(second)))
}

// TestGroupIsSpoiledByOne: if a pod is evicted on one node, the runs on the other nodes do not count either, and all runs are repeated.
func TestGroupIsSpoiledByOne(t *testing.T) {
	var second string
	evicted := sim.Script{Outcome: sim.Evict}
	l := startNodes(t, 3, func(request workload.Request, pod *corev1.Pod) sim.Script {
		if strings.HasSuffix(request.Run.Name, "-2-"+request.Run.Name[len(request.Run.Name)-1:]) {
			return sim.Script{}
		}
		if script := onNode(func() string { return second }, "read", evicted)(request, pod); script.Outcome != sim.Succeed {
			return script
		}
		return sim.Script{Hold: request.Phase.Name == "read"} // the others run as long as they may
	})
	second = l.nodes[1]
	g := gomega.NewWithT(t)
	benchmark := l.finished(l.together("bench", 3), v1alpha1.VerdictPassed)
	l.poolsGone()
	g.Expect(*benchmark.Status.Progress).To(gomega.Equal(v1alpha1.ProgressStatus{RunsTotal: 1, RunsDone: 1, RunsInvalid: 1}))
	_, experiment := l.results(benchmark, benchmark.Status.Results.ConfigMap)
	g.Expect(experiment.Runs).To(gomega.HaveLen(6))
	var reasons []string
	for _, run := range experiment.Runs[:3] {
		reasons = append(reasons, run.Reason)
		g.Expect(run.Valid).To(gomega.BeFalse())
	}
	g.Expect(reasons).To(gomega.Equal([]string{v1alpha1.ReasonPeerInvalid, v1alpha1.ReasonPodEvicted, v1alpha1.ReasonPeerInvalid}))
	g.Expect(experiment.Runs[0].Message).To(gomega.And(gomega.ContainSubstring("-b of the group, on node "+second),
		gomega.ContainSubstring("evicted")))
	g.Expect([]string{experiment.Groups[0].Reason, experiment.Groups[1].Reason}).To(gomega.Equal([]string{v1alpha1.ReasonPodEvicted, ""}))
	g.Expect(experiment.Groups[1].Valid).To(gomega.BeTrue())
}

// TestGroupStops: suspension stops all runs and frees all nodes; if a user deletes one run, all are recreated; and deletion leaves nothing.
func TestGroupStops(t *testing.T) {
	l := startNodes(t, 2, inPhase("read", sim.Script{Hold: true}))
	g := gomega.NewWithT(t)
	benchmark := l.together("bench", 2)
	l.running("read", 2)
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = true })
	l.poolsGone()
	l.eventually("no run is left", func(g gomega.Gomega) { g.Expect(l.runs()).To(gomega.BeEmpty()) })

	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = false })
	l.running("read", 2)
	before := l.runs()
	l.must(l.live.Delete(t.Context(), &before[1]))
	l.eventually("both runs are new", func(g gomega.Gomega) {
		runs := l.runs()
		g.Expect(runs).To(gomega.HaveLen(2))
		for i, run := range runs {
			g.Expect(run.Name).To(gomega.Equal(before[i].Name))
			g.Expect(run.UID).NotTo(gomega.Equal(before[i].UID))
		}
	})
	l.running("read", 2)
	l.cluster.Release(nil)
	done := l.finished(benchmark, v1alpha1.VerdictPassed)
	g.Expect(done.Status.Progress.RunsInvalid).To(gomega.BeZero(), "a stopped group is no attempt")

	l.must(l.live.Delete(t.Context(), benchmark))
	l.nothingLeft(everyKind()...)
	l.poolsGone()
}

// TestGroupsInLine: benchmarks that want all nodes and benchmarks that want one of them all get their turn.
func TestGroupsInLine(t *testing.T) {
	l := startNodes(t, 3, nil)
	var all []*v1alpha1.StorageBenchmark
	for i, count := range []int32{2, 3, 1, 2, 3, 1} {
		all = append(all, l.together(fmt.Sprintf("bench-%d", i), count))
	}
	for _, benchmark := range all {
		l.finished(benchmark, v1alpha1.VerdictPassed)
	}
	l.poolsGone()
	g := gomega.NewWithT(t)
	for _, node := range l.nodes {
		g.Expect(l.journal.mostAtOnce(node)).To(gomega.BeNumerically("<=", 1), "pods on node %s at the same time", node)
	}
	_, experiment := l.results(l.get(all[1]), l.get(all[1]).Status.Results.ConfigMap)
	g.Expect(experiment.Groups[0].Nodes).To(gomega.HaveLen(3))
	g.Expect(experiment.State).To(gomega.Equal(results.StateComplete))
}
