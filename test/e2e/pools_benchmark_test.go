package e2e

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// teamNamespace may use disk 1.
const teamNamespace = "e2e-team"

// poolBenchmarks are what a workload can get from a pool. Evidence is in the documents of the phases.
var poolBenchmarks = []struct{ name, dataset, fileSystem, property, value string }{
	{"dataset", `{size: 512Mi, properties: {recordsize: 8k, compression: "off"}}`, "zfs", "recordsize", "8192"},
	{"raw-volume", `{type: Volume, size: 256Mi, properties: {volblocksize: 16k}}`, "", "volblocksize", "16384"},
	{"ext4-volume", `{type: Volume, size: 256Mi, fsType: ext4}`, "ext4", "pool.ashift", "12"},
}

// team is the namespace that may use a disk, once an earlier one of that name is gone.
func (p *pools) team() *space {
	p.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: teamNamespace}}
	gone(p.t.Context(), p.t, namespace.DeepCopy())
	return spaceOf(p.t, namespace, levelRestricted)
}

// benchmarks bring StorageBenchmarks from a bare disk to a verdict: pool, dataset, pods, and nothing is left.
func (p *pools) benchmarks() {
	g := gomega.NewWithT(p.t)
	s := p.team()
	before := s.settled()
	for _, row := range some(poolBenchmarks, len(poolBenchmarks)) {
		benchmark := s.benchmark(row.name, p.paths(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [$1]}], ashift: 12}
    dataset: `+row.dataset+`
phases:
- {name: fill, fill: {size: 64Mi}}
- {name: age, fragment: {blockSize: 8Ki, until: Rounds, rounds: 1}}
- {name: score, operate: {layoutScore: {dataset: volume}}}
- {name: cold, operate: {exportImport: {}}}
- {name: read, measure: {workload: {oltp: {workers: 4, duration: 10s}}}}
gates:
- {name: reads, bound: {metric: read.readOperationsPerSecond, min: "1"}}
- {name: scored, bound: {metric: score.layoutScorePartsPerMillion, min: "0"}}
`))
		o := s.ended(benchmark, v1alpha1.VerdictPassed)
		for name, document := range o.documents {
			if document.Kind != results.KindOperate {
				g.Expect(document.Environment["mount.type"]).To(gomega.Equal(row.fileSystem), name)
			}
		}
		g.Expect(o.experiment.Runs[0].Volumes).To(gomega.HaveLen(1))
		g.Expect(o.experiment.Runs[0].Volumes[0].Properties).To(gomega.HaveKeyWithValue(row.property, row.value))
		fmt.Printf("benchmark %s: layout score %d ppm\n", row.name, o.documents["score"].Metrics["layoutScorePartsPerMillion"])
		s.leavesNothing(before, benchmark)
		g.Expect(p.run("zpool", "list", "-H")).To(gomega.BeEmpty())
	}
	denied := s.benchmark("denied", p.paths(`
target: {zfs: {nodes: {matchLabels: {storagebench.dev/lab: "true"}}, pool: {vdevs: [{devices: [$4]}]}}}
phases:
- {name: fill, startDeadline: 20s, fill: {size: 64Mi}}
`))
	o := s.ended(denied, v1alpha1.VerdictInvalid)
	g.Expect(o.experiment.Message).To(gomega.ContainSubstring("namespace " + teamNamespace))
	fmt.Printf("a disk of others: %s\n", strings.TrimSpace(o.experiment.Message))
	s.leavesNothing(before, denied)
}

// Limits of the disk that ages: they, and not the emulated machine, decide how fast it is.
const (
	ageingIOPS           = 400
	ageingBytesPerSecond = 16 << 20
)

// ageing is the experiment that the product is for, in small: what is filled in order and then overwritten at random is read in order
// much more slowly, and at random as fast as before. Layout score and request sizes say why.
func (p *pools) ageing() {
	g := gomega.NewWithT(p.t)
	s := p.team()
	before := s.settled()
	breakDisk(p.t, p.node, p.disks[0], "throttle", ageingIOPS, ageingBytesPerSecond)
	benchmark := s.benchmark("ageing", p.paths(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [$1]}]}
    dataset: {size: 1Gi, properties: {recordsize: 8k, compression: "off"}}
phases:
- {name: fill, fill: {size: 128Mi}}
- {name: fresh-score, operate: {layoutScore: {dataset: volume}}}
- {name: fresh-cold, operate: {exportImport: {}}}
- {name: fresh-scan, measure: {cache: Cold, workload: {scan: {regions: 8}}}}
- {name: fresh-colder, operate: {exportImport: {}}}
- {name: fresh-read, measure: {workload: {oltp: {workers: 8, duration: 10s}}}}
- {name: age, fragment: {blockSize: 8Ki, until: Rounds, rounds: 1}}
- {name: aged-score, operate: {layoutScore: {dataset: volume}}}
- {name: aged-cold, operate: {exportImport: {}}}
- {name: aged-scan, measure: {cache: Cold, workload: {scan: {regions: 8}}}}
- {name: aged-colder, operate: {exportImport: {}}}
- {name: aged-read, measure: {workload: {oltp: {workers: 8, duration: 10s}}}}
gates:
- {name: scan-suffers, expression: "phase('aged-scan').readBytesPerSecond < 0.5 * phase('fresh-scan').readBytesPerSecond"}
- {name: reads-do-not, expression: "phase('aged-read').readOperationsPerSecond >= 0.95 * phase('fresh-read').readOperationsPerSecond"}
- {name: layout-suffers, expression: "phase('aged-score').layoutScorePartsPerMillion < 0.5 * phase('fresh-score').layoutScorePartsPerMillion"}
`))
	o := s.ended(benchmark, v1alpha1.VerdictPassed)
	metric := func(phase, name string) int64 { return o.documents[phase].Metrics[name] }
	for _, what := range []struct{ phase, metric string }{
		{"scan", "readBytesPerSecond"}, {"read", "readOperationsPerSecond"}, {"score", "layoutScorePartsPerMillion"},
	} {
		fresh, aged := metric("fresh-"+what.phase, what.metric), metric("aged-"+what.phase, what.metric)
		fmt.Printf("ageing: %s %d fresh, %d aged: %.3f\n", what.metric, fresh, aged, float64(aged)/float64(max(fresh, 1)))
	}
	read := float64(metric("fresh-read", "readOperationsPerSecond"))
	g.Expect(float64(metric("aged-read", "readOperationsPerSecond"))).To(gomega.BeNumerically("~", read, read/20))
	s.leavesNothing(before, benchmark)
}
