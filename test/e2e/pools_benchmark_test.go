package e2e

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// teamNamespace may use disk 1.
const teamNamespace = "e2e-team"

// poolBenchmarks are what a workload can get from a pool. Evidence is in the documents of the phases.
var poolBenchmarks = []struct{ name, dataset, fileSystem string }{
	{"dataset", `{size: 512Mi, properties: {recordsize: 8k, primarycache: metadata, compression: "off"}}`, "zfs"},
	{"raw-volume", `{type: Volume, size: 256Mi, properties: {volblocksize: 8k}}`, ""},
	{"ext4-volume", `{type: Volume, size: 256Mi, fsType: ext4}`, "ext4"},
}

// benchmarks bring StorageBenchmarks from a bare disk to a verdict: pool, dataset, pods, and nothing is left.
func (p *pools) benchmarks() {
	g := gomega.NewWithT(p.t)
	s := spaceOf(p.t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: teamNamespace}}, levelRestricted)
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
- {name: read, measure: {workload: {oltp: {workers: 4, duration: 10s}}}}
gates:
- {name: reads, bound: {metric: read.readOperationsPerSecond, min: "1"}}
`))
		o := s.ended(benchmark, v1alpha1.VerdictPassed)
		for name, document := range o.documents {
			g.Expect(document.Environment["mount.type"]).To(gomega.Equal(row.fileSystem), name)
		}
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
