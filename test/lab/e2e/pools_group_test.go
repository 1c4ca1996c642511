package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// inStep is how far apart the nodes of a group may begin to measure.
const inStep = 2 * time.Second

// nodesAtOnce measures on two nodes at the same time, each with its own disk: they begin together, their figures are added, and nothing is
// left on either.
func (p *pools) nodesAtOnce() {
	pair := nodes[:2]
	second := takeDisks(p.t, pair[1], 1)[0]
	g, s := gomega.NewWithT(p.t), p.team()
	before := s.settled()
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Name: "together"}}
	if err := yaml.UnmarshalStrict([]byte(p.paths(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}, count: 2}
    pool: {vdevs: [{devices: [$1]}]}
    perNode: [{nodeName: `+pair[1]+`, pool: {vdevs: [{devices: [`+device(pair[1], second.Name)+`]}]}}]
    dataset: {size: 512Mi, properties: {recordsize: 8k, compression: "off"}}
phases:
- {name: fill, fill: {size: 64Mi}}
- {name: score, operate: {layoutScore: {dataset: data}}}
- {name: read, measure: {workload: {oltp: {workers: 4, duration: 30s}}}}
repetitions: 1
maxAttempts: 1
gates:
- {name: reads, expression: "phase('read').readOperationsPerSecond >= 1.0"}
`)), &benchmark.Spec); err != nil {
		p.t.Fatal(err)
	}
	// Where a lab has more nodes, the first two are taken: only their disks are named.
	benchmark.Spec.PodTemplate.NodeSelector = p.only(pair)
	s.create(benchmark)
	s.over(benchmark)
	g.Expect(benchmark.Status.Verdict).To(gomega.Equal(v1alpha1.VerdictPassed), "%+v", benchmark.Status.Conditions)
	g.Expect(benchmark.Status.NodeNames).To(gomega.Equal(pair))
	g.Expect(benchmark.Status.NodeName).To(gomega.Equal(strings.Join(pair, ",")))
	p.checkGroup(s, benchmark, pair)
	s.leavesNothing(before, benchmark)
	for _, node := range pair {
		output, err := theLab.Run(p.t.Context(), node, "zpool", "list", "-H")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(strings.TrimSpace(output)).To(gomega.BeEmpty(), "pools of node %s", node)
	}
}

// only labels some nodes until the end of the test, and returns a node selector for them.
func (p *pools) only(some []string) map[string]string {
	p.t.Helper()
	const label = "storagebench.dev/e2e-pair"
	mark := func(value *string) error {
		ctx, cancel := afterwards(p.t)
		defer cancel()
		for _, name := range some {
			text, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{label: value}}})
			if err != nil {
				return err
			}
			node, err := getNode(ctx, name)
			if err != nil {
				return err
			}
			if err := cluster.Patch(ctx, node, client.RawPatch("application/merge-patch+json", text)); err != nil {
				return err
			}
		}
		return nil
	}
	yes := "true"
	if err := mark(&yes); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := mark(nil); err != nil {
			p.t.Error(err)
		}
	})
	return map[string]string{label: yes}
}

// checkGroup compares the results of the single nodes with those of the group.
func (p *pools) checkGroup(s *space, benchmark *v1alpha1.StorageBenchmark, pair []string) {
	p.t.Helper()
	g := gomega.NewWithT(p.t)
	e, stored := s.experiment(benchmark), s.configMap(benchmark.Status.Results.ConfigMap)
	g.Expect(e.Runs).To(gomega.HaveLen(2))
	g.Expect(e.Groups).To(gomega.HaveLen(1))
	g.Expect(e.Groups[0].Valid).To(gomega.BeTrue(), e.Groups[0].Message)
	g.Expect(e.Groups[0].Nodes).To(gomega.Equal(pair))
	for i, phase := range e.Groups[0].Phases {
		a, b := s.phaseDocument(e.Runs[0].Phases[i]), s.phaseDocument(e.Runs[1].Phases[i])
		for _, metric := range []string{"readBytes", "readOperations", "writtenBytes", "filledBytes", "readOperationsPerSecond"} {
			if a.Metrics[metric] > 0 {
				g.Expect(phase.Metrics[metric]).To(gomega.Equal(a.Metrics[metric]+b.Metrics[metric]), "%s %s", phase.Name, metric)
			}
		}
		apart := b.StartedAt.Sub(a.StartedAt)
		late := func(d results.PhaseDocument) time.Duration { return time.Duration(d.Metrics[results.MetricStartLag]) }
		fmt.Printf("nodes at once: phase %s began %s later on %s than on %s (late for the agreed moment: %s and %s)\n",
			phase.Name, apart, pair[1], pair[0], late(a), late(b))
		if phase.Kind == results.KindOperate {
			continue // it has no agreed moment, and may be over in a second
		}
		if overlap := earlier(a.FinishedAt, b.FinishedAt).Sub(later(a.StartedAt, b.StartedAt)); phase.Name == "read" {
			g.Expect(apart.Abs()).To(gomega.BeNumerically("<", inStep),
				"phase read began %s and %s after the agreed moment: do pods take longer than the allowance to start?", late(a), late(b))
			g.Expect(overlap).To(gomega.BeNumerically(">", 25*time.Second), "the 30 s of phase read")
			g.Expect(phase.Stragglers).To(gomega.BeEmpty())
			g.Expect(phase.Metrics["readLatencyP99Nanoseconds"]).To(gomega.Equal(max(a.Metrics["readLatencyP99Nanoseconds"],
				b.Metrics["readLatencyP99Nanoseconds"])))
		}
	}
	g.Expect(stored.Data["report.md"]).To(gomega.And(gomega.ContainSubstring("## Nodes"),
		gomega.ContainSubstring("| "+pair[0]+" | "+pair[1]+" |")))
}

// phaseDocument returns everything that a node reported about a phase.
func (s *space) phaseDocument(phase results.RunPhase) results.PhaseDocument {
	s.t.Helper()
	stored := s.configMap(phase.ConfigMap)
	document, err := results.LoadPhase(stored.Data, stored.BinaryData)
	if err != nil {
		s.t.Fatal(err)
	}
	return document
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
