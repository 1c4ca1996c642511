package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/volume"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/test/openebs"
)

// teamNamespace may use disks 1, 2 and 5.
const teamNamespace = "e2e-team"

// team makes the namespace that may use these disks, once an earlier one with this name is gone.
func (p *pools) team() *space {
	p.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: teamNamespace}}
	gone(p.t.Context(), p.t, namespace.DeepCopy())
	return spaceOf(p.t, namespace, levelRestricted)
}

// benchmarks takes StorageBenchmarks from a bare disk to a verdict, through pool, dataset and pods. Nothing is left.
func (p *pools) benchmarks() {
	g := gomega.NewWithT(p.t)
	s := p.team()
	before := s.settled()
	for _, row := range sampleInShort(openebs.Rows, len(openebs.Rows)) {
		p.benchmark(s, before, row, volume.ProvisionerLocal)
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

// benchmark takes one StorageBenchmark from a bare disk to its verdict. The evidence is in the documents of the phases.
func (p *pools) benchmark(s *space, before []string, row openebs.Row, provisioner string) outcome {
	p.t.Helper()
	g := gomega.NewWithT(p.t)
	benchmark := s.benchmark(row.Name, p.paths(row.Spec(provisioner, "$1")))
	o := s.ended(benchmark, v1alpha1.VerdictPassed)
	for name, document := range o.documents {
		if document.Kind != results.KindOperate {
			g.Expect(document.Environment["mount.type"]).To(gomega.Equal(row.FileSystem), name)
			if row.FileSystem == "zfs" {
				g.Expect(document.Environment).To(gomega.And(gomega.HaveKeyWithValue("device.0.path", p.on(1)),
					gomega.HaveKeyWithValue("device.0.serial", p.node+"-disk1"), gomega.HaveKeyWithValue("devices.count", "1")), name)
			}
			// A phase of seconds, on an emulated node, may have too few samples for these.
			g.Expect(document.Omitted).To(gomega.Or(gomega.BeEmpty(), gomega.HaveEach(gomega.Or(
				gomega.HavePrefix("disk bytes for each byte of the workload: "), gomega.HavePrefix("rates of the disks: too few samples")))), name)
			g.Expect(document.Metrics).To(gomega.HaveKey("poolAllocatedBytes"), name)
		}
	}
	g.Expect(o.experiment.Runs[0].Volumes).To(gomega.HaveLen(1))
	g.Expect(o.experiment.Runs[0].Volumes[0].Properties).To(gomega.HaveKeyWithValue(row.Property, row.Value))
	fmt.Printf("benchmark %s: layout score %d ppm\n", row.Name, o.documents["score"].Metrics["layoutScorePartsPerMillion"])
	g.Expect(o.documents["read"].Environment).To(gomega.HaveKeyWithValue("beside.outcome", v1alpha1.OutcomeSucceeded))
	g.Expect(o.documents["read"].Metrics["diskReadOperationsPerSecond"]).To(gomega.BeNumerically(">", 0))
	s.leavesNothing(before, benchmark)
	g.Expect(p.run("zpool", "list", "-H")).To(gomega.BeEmpty())
	return o
}

// sharesAPool measures two datasets on one pool at the same time, each with its properties, after that pool was exported and imported.
func (p *pools) sharesAPool() {
	s := p.team()
	before := s.settled()
	p.t.Helper()
	g := gomega.NewWithT(p.t)
	benchmark := s.benchmark("shared", p.paths(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [$1]}]}
    dataset: {provisioner: Local, size: 256Mi, properties: {recordsize: 8k}}
    volumes:
    - {name: log, poolOf: data, dataset: {provisioner: Local, size: 256Mi}}
matrix: {volumes.log.dataset.recordsize: [128k]}
phases:
- {name: fill, fill: {size: 32Mi}}
- {name: fill-log, volume: log, fill: {size: 16Mi}}
- {name: score, volume: log, operate: {layoutScore: {dataset: log}}}
- {name: cold, operate: {exportImport: {}}}
- name: busy
  measure:
    workloads:
    - {name: reads, oltp: {workers: 2, duration: 15s}}
    - {name: redo, volume: log, redo: {writers: 1, duration: 15s}}
`))
	o := s.ended(benchmark, v1alpha1.VerdictPassed)
	volumes := o.experiment.Runs[0].Volumes
	g.Expect(volumes).To(gomega.HaveLen(2))
	g.Expect(volumes[0].Pool).To(gomega.Equal(volumes[1].Pool))
	g.Expect([]string{volumes[0].Properties["recordsize"], volumes[1].Properties["recordsize"]}).To(gomega.Equal([]string{"8192", "131072"}))
	g.Expect(o.documents["score"].Metrics).To(gomega.HaveKey("layoutScorePartsPerMillion"))
	busy := o.documents["busy"].Metrics
	g.Expect(busy["reads.diskWriteOperationsPerSecond"]).To(gomega.BeNumerically(">", 0), "%v", busy)
	g.Expect(busy["redo.diskWriteOperationsPerSecond"]).To(gomega.Equal(busy["reads.diskWriteOperationsPerSecond"]), "they share the disk")
	g.Expect(busy).NotTo(gomega.Or(gomega.HaveKey("reads.deviceWrittenBytes"), gomega.HaveKey("redo.deviceWrittenBytes")))
	s.leavesNothing(before, benchmark)
	g.Expect(p.run("zpool", "list", "-H")).To(gomega.BeEmpty())
}

// inFull returns a part of a manifest, or an empty text in short tests.
func inFull(text string) string {
	if testing.Short() {
		return ""
	}
	return strings.TrimPrefix(text, "\n")
}

// wholeDatabase runs PostgreSQL with its log on its own dataset, on a pool with a log device. It measures the datasets that operations make
// of the data: a clone, a copy and a replica, also after the pool was exported. Before that replica, another one is sent while a load runs.
// The clone is destroyed while the others are still in use, and nothing is left.
func (p *pools) wholeDatabase() {
	s := p.team()
	before := s.settled()
	g := gomega.NewWithT(p.t)
	benchmark := s.benchmark("made", p.paths(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [$1]}], log: [{devices: [$5]}]}
    dataset: {provisioner: Local, properties: {recordsize: 8k, compression: "off"}}
    volumes:
    - {name: wal, poolOf: data, dataset: {provisioner: Local, properties: {recordsize: 128k}}}
    - {name: other, pool: {vdevs: [{devices: [$2]}]}, dataset: {provisioner: Local}}
phases:
- name: tx
  measure:
    workload:
      postgres: {databaseSize: 16Mi, walVolume: wal, clients: 2, rampUp: 2s, duration: 10s, settings: {max_wal_size: 128MB}}
- {name: fill, fill: {size: 32Mi}}
- {name: snapshot, operate: {snapshot: {dataset: data, name: whole}}}
- {name: clone, operate: {clone: {dataset: data, snapshot: whole, as: cloned}}}
`+inFull(`
- {name: score, volume: cloned, operate: {layoutScore: {dataset: cloned}}}
- {name: cold, operate: {exportImport: {}}}
`)+`
- {name: read-clone, volume: cloned, measure: {`+inFull("cache: Cold, ")+`workload: {scan: {}}}}
- {name: copy, operate: {copy: {dataset: data, as: copied, properties: {recordsize: 128k}}}}
`+inFull(`
- {name: write-copy, volume: copied, measure: {workload: {oltp: {workers: 2, updatePercent: 50, duration: 10s}}}}
- name: follow
  measure:
    workload: {oltp: {workers: 2, updatePercent: 25, duration: 30s}}
    operate: {replicate: {dataset: data, toVolume: other, to: followed, increments: 1}}
`)+`
- {name: send, operate: {replicate: {dataset: data, toVolume: other, as: sent}}}
- {name: read-replica, volume: sent, measure: {workload: {scan: {}}}}
- {name: destroy, operate: {destroyDataset: {dataset: cloned}}}
- {name: forget, operate: {destroySnapshot: {dataset: data, name: whole}}}
`+inFull(`
- {name: read-data, measure: {workload: {scan: {}}}}
`)+`
- name: tx-aged
  measure:
    workload:
      postgres: {databaseSize: 16Mi, walVolume: wal, keep: true, clients: 2, rampUp: 2s, duration: 10s, settings: {max_wal_size: 128MB}}
`))
	o := s.ended(benchmark, v1alpha1.VerdictPassed)
	p.madeIsTrue(o)
	s.leavesNothing(before, benchmark)
	g.Expect(p.run("zpool", "list", "-H")).To(gomega.BeEmpty())
	g.Expect(p.run("sh", "-c", "find /var/lib/storagebench/volumes -mindepth 1 2>/dev/null; true")).To(gomega.BeEmpty())
}

// madeIsTrue compares what the phases of wholeDatabase report with what they should measure.
func (p *pools) madeIsTrue(o outcome) {
	g := gomega.NewWithT(p.t)
	measured := map[string]string{"read-clone": "/cloned", "read-replica": "/sent"}
	if !testing.Short() {
		measured["write-copy"], measured["read-data"] = "/copied", "/data"
		g.Expect(o.documents["follow"].Metrics["besidePartsPerMillion"]).To(gomega.BeNumerically(">=", 900_000))
	}
	for name, dataset := range measured {
		g.Expect(o.documents[name].Environment).To(gomega.HaveKeyWithValue("mount.source", gomega.HaveSuffix(dataset)), name)
		g.Expect(o.documents[name].Metrics).To(gomega.HaveKey("poolAllocatedBytes"), name)
	}
	aged := o.documents["tx-aged"].Metrics
	g.Expect(aged["databaseBytes"]).To(gomega.BeNumerically(">=", o.documents["tx"].Metrics["databaseBytes"]))
	g.Expect(aged).NotTo(gomega.HaveKey("initialiseNanoseconds"), "it was kept")
	fmt.Printf("whole database: %d transactions a second with the database of the first phase\n", aged["transactionsPerSecond"])
	tx := o.documents["tx"].Metrics
	g.Expect(tx["transactionsPerSecond"]).To(gomega.BeNumerically(">", 0))
	logged := p.writtenTo(o.experiment, "default", "tx", 5)
	fmt.Printf("whole database: %d transactions a second; %d bytes of log, %d written to the log device\n", tx["transactionsPerSecond"],
		tx["walBytes"], logged)
	g.Expect(logged).To(gomega.BeNumerically(">", tx["walBytes"]/2), "commits wait for the log device")
	g.Expect(o.documents["send"].Metrics["sentBytes"]).To(gomega.BeNumerically(">", 32<<20))
	made := map[string]string{}
	for _, one := range o.experiment.Runs[0].Volumes {
		made[one.Name] = one.Properties["recordsize"]
	}
	g.Expect(made).To(gomega.Equal(map[string]string{"data": "8192", "wal": "131072", "other": "131072", "cloned": "131072",
		"copied": "131072", "sent": "131072"}),
		"a clone and a replica inherit from the root")
}

// Limits of the disk that ages: they, and not the emulated machine, decide how fast it is, even if other programs run at the same time.
const (
	ageingIOPS           = 150
	ageingBytesPerSecond = 6 << 20
	// busyHost is how much two equal rates differ if the host stops the machine for a second of the ten. On a quiet one it is 3%.
	busyHost = 0.15
)

// ageing is a small version of the experiment that the product is for: data that is written in order and then overwritten at random is read
// in order much more slowly, and at random as fast as before. Layout score and request sizes say why.
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
    dataset: {properties: {recordsize: 8k, compression: "off"}}
    moduleParameters: {zfs_dirty_data_max: "8388608", zfetch_max_distance: "131072"}
phases:
- {name: fill, fill: {size: 64Mi}}
- {name: fresh-score, operate: {layoutScore: {dataset: data}}}
- {name: fresh-cold, operate: {exportImport: {}}}
- {name: fresh-scan, measure: {cache: Cold, workload: {scan: {regions: 8}}}}
- {name: fresh-colder, operate: {exportImport: {}}}
- {name: fresh-read, measure: {workload: {oltp: {workers: 8, duration: 10s}}}}
- {name: age, fragment: {blockSize: 8Ki, until: Rounds, rounds: 1}}
- {name: aged-score, operate: {layoutScore: {dataset: data}}}
- {name: aged-cold, operate: {exportImport: {}}}
- {name: aged-scan, measure: {cache: Cold, workload: {scan: {regions: 8}}}}
- {name: aged-colder, operate: {exportImport: {}}}
- {name: aged-read, measure: {workload: {oltp: {workers: 8, duration: 10s}}}}
gates:
- {name: scan-suffers, expression: "phase('aged-scan').readBytesPerSecond < 0.5 * phase('fresh-scan').readBytesPerSecond"}
- {name: reads-do-not, expression: "phase('aged-read').readOperationsPerSecond >= 0.85 * phase('fresh-read').readOperationsPerSecond"}
- name: layout-suffers
  expression: "phase('aged-score').layoutScorePartsPerMillion < 0.5 * phase('fresh-score').layoutScorePartsPerMillion"
`))
	o := s.ended(benchmark, v1alpha1.VerdictPassed)
	metric := func(phase, name string) int64 { return o.documents[phase].Metrics[name] }
	for _, what := range []struct{ phase, metric string }{
		{"scan", "readBytesPerSecond"}, {"scan", "diskReadRequestBytes"}, {"scan", "smallDiskReadsPartsPerMillion"},
		{"scan", "diskReadsPerReadMilli"}, {"read", "readOperationsPerSecond"}, {"score", "layoutScorePartsPerMillion"},
	} {
		fresh, aged := metric("fresh-"+what.phase, what.metric), metric("aged-"+what.phase, what.metric)
		fmt.Printf("ageing: %s %d fresh, %d aged: %.3f\n", what.metric, fresh, aged, float64(aged)/float64(max(fresh, 1)))
	}
	g.Expect(metric("aged-scan", "diskReadRequestBytes")).To(gomega.BeNumerically("<", metric("fresh-scan", "diskReadRequestBytes")*2/3))
	g.Expect(metric("aged-scan", "diskReadsPerReadMilli")).To(gomega.BeNumerically(">", metric("fresh-scan", "diskReadsPerReadMilli")*3/2))
	read := float64(metric("fresh-read", "readOperationsPerSecond"))
	g.Expect(float64(metric("aged-read", "readOperationsPerSecond"))).To(gomega.BeNumerically("~", read, read*busyHost))
	s.leavesNothing(before, benchmark)
}

// scrubbed makes the same measurement with and without a scrub at the same time.
func (p *pools) scrubbed() {
	g := gomega.NewWithT(p.t)
	s := p.team()
	before := s.settled()
	breakDisk(p.t, p.node, p.disks[0], "throttle", ageingIOPS, 4<<20) // a scrub takes a while
	benchmark := s.benchmark("scrubbed", p.paths(`
target:
  zfs: {nodes: {matchLabels: {storagebench.dev/lab: "true"}}, pool: {vdevs: [{devices: [$1]}]}, dataset: {properties: {recordsize: 8k}}}
phases:
- {name: fill, fill: {size: 96Mi}}
- {name: cold, operate: {exportImport: {}}}
- {name: alone, measure: {workload: {oltp: {workers: 8, duration: 5s}}}}
- {name: colder, operate: {exportImport: {}}}
- {name: under, measure: {workload: {oltp: {workers: 8, duration: 5s}}, operate: {scrub: {}}}}
- name: until
  measure:
    workload: {oltp: {workers: 8, duration: 9m}}
    operate: {scrub: {}}
    operateAfter: 30s
    until: OperationEnds
    afterOperation: 15s
gates:
- {name: suffers, expression: "phase('under').readOperationsPerSecond < phase('alone').readOperationsPerSecond"}
`))
	o := s.ended(benchmark, v1alpha1.VerdictPassed)
	under := o.documents["under"]
	g.Expect(under.Environment).To(gomega.HaveKeyWithValue("beside", "scrub"))
	fmt.Printf("scrub: %d reads a second alone, %d under a scrub, beside it for %d ppm of the time\n",
		o.documents["alone"].Metrics["readOperationsPerSecond"], under.Metrics["readOperationsPerSecond"], under.Metrics["besidePartsPerMillion"])
	until := o.documents["until"].Metrics
	measured := time.Duration(until["durationNanoseconds"])
	fmt.Printf("scrub: measured for %s of at most 9m, for %s after it; %d bytes a second read before it, %d during it, %d after it\n",
		measured, time.Duration(until["after.durationNanoseconds"]), until["before.readBytesPerSecond"],
		until["during.readBytesPerSecond"], until["after.readBytesPerSecond"])
	g.Expect(measured).To(gomega.BeNumerically("<", 8*time.Minute), "the pod did not see that its operation had ended")
	g.Expect(until["after.durationNanoseconds"]).To(gomega.BeNumerically(">=", 13*time.Second.Nanoseconds()))
	g.Expect(until["before.readBytesPerSecond"]).To(gomega.BeNumerically(">", 0))
	s.leavesNothing(before, benchmark)
}
