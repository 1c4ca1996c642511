package e2e

import (
	"fmt"
	"slices"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// database puts data and log on their own pools, under load at the same time, with a StorageTarget that two variants use. Each workload has
// its figures, its distributions and the counters of its own pool, and one variant changes its log in mid-run. A real PostgreSQL has its
// log on the second pool.
func (p *pools) database() {
	g := gomega.NewWithT(p.t)
	s := p.team()
	target := &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: "two-pools"}}
	if err := yaml.UnmarshalStrict([]byte(p.paths(`
zfs:
  nodes: {matchLabels: {storagebench.dev/lab: "true"}}
  pool: {vdevs: [{devices: [$1]}]}
  dataset: {properties: {recordsize: 8k, compression: "off"}}
  volumes:
  - {name: log, pool: {vdevs: [{devices: [$2]}]}, dataset: {properties: {recordsize: 8k, compression: "off"}}}
`)), &target.Spec); err != nil {
		p.t.Fatal(err)
	}
	s.create(target)
	before := s.settled()
	benchmark := s.benchmark("database", `
target: {ref: {name: two-pools}}
maxAttempts: 3 # an emulated node may be too busy to start two workloads at the same time
variants:
- {name: changed}
- {name: whole, set: {volumes.log.dataset.recordsize: 128k}}
phases:
- {name: fill, fill: {size: 64Mi}}
- name: busy
  measure:
    workloads:
    - {name: data, oltp: {workers: 2, updatePercent: 25, rampUp: 2s, duration: 8s}}
    - {name: log, volume: log, redo: {writers: 2, duration: 8s}}
- name: tx
  measure:
    workload:
      postgres: {databaseSize: 16Mi, walVolume: log, clients: 2, rampUp: 2s, duration: 10s, settings: {max_wal_size: 128MB}}
- {name: change, onlyFor: [changed], volume: log, operate: {setProperty: {dataset: log, properties: {recordsize: 128k}}}}
- {name: after, volume: log, measure: {workload: {redo: {writers: 2, duration: 5s}}}}
gates:
- {name: both-work, expression: "phase('busy').workload('log').writeOperations > 0.0 && phase('busy').workload('data').readOperations > 0.0"}
- {name: no-hang, expression: "phase('busy').workload('log').share('writeLatency', '>', '10s') <= 0.05"}
- {name: commits, expression: "phase('tx').transactionsPerSecond > 0.0 && phase('tx').workload('wal').diskWrittenBytesPerSecond > 0.0"}
- {name: whole-records, expression: "phase('busy').workload('data').mode('diskWriteRequestSize') >= 4096.0"}
`)
	experiment := s.completed(benchmark)
	valid := slices.DeleteFunc(slices.Clone(experiment.Runs), func(run results.RunResult) bool { return !run.Valid })
	g.Expect(benchmark.Status.Verdict).To(gomega.Equal(v1alpha1.VerdictPassed), "%+v", experiment.Gates)
	g.Expect(valid).To(gomega.HaveLen(2))
	for _, run := range valid {
		first := map[string]string{"changed": "8192", "whole": "131072"}[run.Variant]
		at := slices.IndexFunc(run.Volumes, func(one results.RunVolume) bool { return one.Name == "log" })
		g.Expect(at).To(gomega.BeNumerically(">=", 0))
		g.Expect(run.Volumes[at].Properties).To(gomega.HaveKeyWithValue("recordsize", first), run.Variant)
		g.Expect(slices.ContainsFunc(run.Phases, func(of results.RunPhase) bool { return of.Name == "change" })).
			To(gomega.Equal(run.Variant == "changed"), "onlyFor")
		p.togetherIsTrue(s, run)
		p.walIsTrue(s, run)
	}
	s.leavesNothing(before, benchmark)
	s.stop(target)
}

// togetherIsTrue compares the figures of two workloads with what the disks of their pools counted.
func (p *pools) togetherIsTrue(s *space, run results.RunResult) {
	g := gomega.NewWithT(p.t)
	document := s.phaseOf(run, "busy")
	metric := func(name string) int64 {
		g.Expect(document.Metrics).To(gomega.HaveKey(name))
		return document.Metrics[name]
	}
	fmt.Printf("database: %s: %d reads and %d updates of data, %d appends a second; the disks wrote %d and %d bytes a second\n", run.Variant,
		metric("data.readOperationsPerSecond"), metric("data.writeOperationsPerSecond"), metric("log.writeOperationsPerSecond"),
		metric("data.diskWrittenBytesPerSecond"), metric("log.diskWrittenBytesPerSecond"))
	g.Expect(document.Metrics).NotTo(gomega.HaveKey("diskWrittenBytesPerSecond"), "whose pool?")
	g.Expect(document.Metrics).NotTo(gomega.HaveKey("log.readOperationsPerSecond"))
	// An append is durable when it is on the disk. The counters are read once a second, so their window differs by one at most.
	g.Expect(float64(metric("log.diskWrittenBytesPerSecond"))).To(gomega.BeNumerically(">", 0.8*float64(metric("log.writeBytesPerSecond"))))
	for _, name := range []string{"data.readLatency", "data.writeLatency", "log.writeLatency"} {
		g.Expect(document.Distributions).To(gomega.HaveKey(name))
	}
	reads := document.Distributions["data.readLatency"]
	g.Expect(reads.Count()).To(gomega.Equal(metric("data.readOperations")))
}

// phaseOf returns the document of a phase of a run.
func (s *space) phaseOf(run results.RunResult, name string) results.PhaseDocument {
	s.t.Helper()
	g := gomega.NewWithT(s.t)
	at := slices.IndexFunc(run.Phases, func(of results.RunPhase) bool { return of.Name == name })
	g.Expect(at).To(gomega.BeNumerically(">=", 0), "phase "+name)
	stored := s.configMap(run.Phases[at].ConfigMap)
	document, err := results.LoadPhase(stored.Data, stored.BinaryData)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	return document
}

// walIsTrue compares what PostgreSQL wrote to its log with what the disks of that pool counted. A commit is durable when its log is on
// them.
func (p *pools) walIsTrue(s *space, run results.RunResult) {
	g := gomega.NewWithT(p.t)
	document := s.phaseOf(run, "tx")
	for _, name := range []string{"transactionsPerSecond", "walBytes", "durationNanoseconds", "diskWrittenBytesPerSecond",
		"wal.diskWrittenBytesPerSecond", "wal.poolAllocatedBytes"} {
		g.Expect(document.Metrics).To(gomega.HaveKey(name))
	}
	logged := float64(document.Metrics["walBytes"]) / time.Duration(document.Metrics["durationNanoseconds"]).Seconds()
	written := float64(document.Metrics["wal.diskWrittenBytesPerSecond"])
	fmt.Printf("database: %s: %d transactions and %.0f bytes of log a second; the disks of log and data wrote %.0f and %d bytes a second\n",
		run.Variant, document.Metrics["transactionsPerSecond"], logged, written, document.Metrics["diskWrittenBytesPerSecond"])
	g.Expect(logged).To(gomega.BeNumerically(">", 0))
	g.Expect(written).To(gomega.BeNumerically(">", 0.8*logged))
	g.Expect(document.Distributions).To(gomega.HaveKey("wal.diskWriteRequestSize"))
	g.Expect(document.Environment).To(gomega.And(gomega.HaveKey("mount.source"), gomega.HaveKey("wal.mount.source")))
	g.Expect(document.Environment["wal.mount.source"]).NotTo(gomega.Equal(document.Environment["mount.source"]))
}
