package e2e

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// operations runs PoolOperations on real pools: most of them on a mirror with data, the others on the results of these.
func (p *pools) operations() {
	g := gomega.NewWithT(p.t)
	from := p.make("acts",
		`{vdevs: [{type: mirror, devices: [$1, $2]}], rootProperties: {compression: "off"}, datasets: [{path: data, properties: {recordsize: 8k}}, {path: other}]}`)
	to := p.make("target", `{vdevs: [{devices: [$3]}]}`)
	p.ready(from)
	p.ready(to)
	p.t.Cleanup(func() { // a pool in use is not destroyed
		ctx, cancel := afterwards(p.t)
		defer cancel()
		_, _ = theLab.Run(ctx, p.node, "sh", "-c", "umount /e2e /e2e-other 2>/dev/null")
	})
	name := string(from.Spec.PoolName)
	p.run("zfs", "set", "mountpoint=/e2e", name+"/data")
	p.run("zfs", "set", "mountpoint=/e2e-other", name+"/other")
	p.script(`zfs mount -a; head -c 16M /dev/urandom >/e2e/file; zpool sync; sha256sum </e2e/file >/run/e2e.sum`)

	snapshot := p.operate("snapshot", from, `snapshot: {dataset: data, name: before}`, "Succeeded")
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "storagebench.dev:operation", name+"/data@before")).To(gomega.Equal(string(snapshot.UID)))
	p.operate("snapshot-again", from, `snapshot: {dataset: data, name: before}`, "Failed")
	p.operate("clone", from, `clone: {dataset: data, snapshot: before, to: clone}`, "Succeeded")

	observation := p.begin("observe", from, `observe: {duration: 40s, interval: 1s}`)
	eventually(p.t, "the window is open", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(observation), observation)).To(gomega.Succeed())
		g.Expect(observation.Status.Progress).To(gomega.HaveField("Message", gomega.HavePrefix("observing for")))
	})
	p.script(`head -c 8M /dev/urandom >/e2e/observed; zpool sync`)
	p.ended(observation, "Succeeded")
	g.Expect(metricOf(observation, "poolWriteBytes")).To(gomega.BeNumerically(">=", 8<<20), "%v", observation.Status.Metrics)
	g.Expect(observation.Status.Data).NotTo(gomega.BeEmpty())

	score := p.operate("score", from, `layoutScore: {dataset: data}`, "Succeeded")
	g.Expect(metricOf(score, "layoutScorePartsPerMillion")).To(gomega.And(gomega.BeNumerically(">", 500_000),
		gomega.BeNumerically("<=", 1_000_000)))
	metaslabs := p.operate("metaslabs", from, `metaslabMap: {}`, "Succeeded")
	g.Expect(metricOf(metaslabs, "metaslabs")).To(gomega.BeNumerically(">", 0))

	copied := p.operate("copy", from, `copy: {dataset: data, to: other}`, "Succeeded")
	g.Expect(metricOf(copied, "copiedBytes")).To(gomega.BeEquivalentTo(24 << 20))
	g.Expect(p.script(`sha256sum </e2e-other/file`)).To(gomega.Equal(p.script(`cat /run/e2e.sum`)))

	p.copiesElsewhere(from, to)
	p.setsProperties(from)
	p.operate("replicate", from, `replicate: {dataset: data, toPool: target, to: copy, increments: 1}`, "Succeeded")
	g.Expect(p.run("zfs", "list", "-Hpo", "referenced", string(to.Spec.PoolName)+"/copy")).NotTo(gomega.Equal("0"))
	g.Expect(p.run("zfs", "list", "-Ho", "name", "-t", "snapshot", "-r", name+"/data")).To(gomega.Equal(name+"/data@before"),
		"its own snapshots are gone at the source")

	p.breaksOff(from, to)
	p.losesASide(from, to)

	parameter := p.begin("parameter", from, `moduleParameter: {name: zfs_txg_timeout, value: "7", duration: 10s}`)
	eventually(p.t, "the parameter is set", func(g gomega.Gomega) {
		g.Expect(p.run("cat", "/sys/module/zfs/parameters/zfs_txg_timeout")).To(gomega.Equal("7"))
	})
	p.ended(parameter, "Succeeded")
	g.Expect(p.run("cat", "/sys/module/zfs/parameters/zfs_txg_timeout")).To(gomega.Equal("5"), "as before")
	p.operate("forbidden", from, `moduleParameter: {name: zfs_arc_max, value: "1"}`, "Failed")

	p.operate("destroy-cloned", from, `destroySnapshot: {dataset: data, name: before}`, "Failed")
	p.operate("destroy", from, `destroyDataset: {dataset: clone}`, "Succeeded")
	g.Expect(p.run("zfs", "list", "-Ho", "name", "-r", name)).NotTo(gomega.ContainSubstring("clone"))
	p.operate("snapshot-later", from, `snapshot: {dataset: data, name: later}`, "Succeeded")
	p.script(`rm /e2e/observed; zpool sync`)
	destroyed := p.operate("destroy-later", from, `destroySnapshot: {dataset: data, name: later}`, "Succeeded")
	g.Expect(metricOf(destroyed, "freedBytes")).To(gomega.And(gomega.BeNumerically(">=", 8<<20), gomega.BeNumerically("<", 10<<20)),
		"what only the snapshot held")
	g.Expect(p.run("zfs", "list", "-Ho", "name", "-t", "snapshot", "-r", name)).To(gomega.Equal(name + "/data@before"))

	p.unmount()
	p.operate("export", from, `exportImport: {}`, "Succeeded")
	p.repairs(from)
	p.replaces(from)
	p.change(from, func() { from.Spec.Vdevs[0].Devices[1] = v1alpha1.DevicePath(p.on(4)) }) // otherwise its removal waits for the lost disk
	p.ready(from)
	p.unmountLeft()
	p.run("zpool", "offline", name, p.on(4)) // it is released with its pool anyway, and the next pool gets it
	p.remove(to, from)
}

// breaksOff interrupts a stream in the middle. What was received before is not sent again, except for a record.
func (p *pools) breaksOff(from, to *v1alpha1.BenchmarkPool) {
	p.t.Helper()
	g := gomega.NewWithT(p.t)
	sent := p.operate("replicate-broken", from, `replicate: {dataset: data, toPool: target, to: broken, compressed: true, interruptAt: 50%}`, "Succeeded")
	fmt.Printf("replicate: %v\n", sent.Status.Metrics)
	g.Expect(metricOf(sent, "resentBytes")).To(gomega.And(gomega.BeNumerically(">=", 0), gomega.BeNumerically("<=", 1<<20)), "%v",
		sent.Status.Metrics)
	g.Expect(metricOf(sent, "sentBytes")).To(gomega.BeNumerically(">", 24<<20))
	received := string(to.Spec.PoolName) + "/broken"
	p.run("mkdir", "-p", "/run/e2e-broken")
	p.run("mount", "-t", "zfs", "-o", "zfsutil", received, "/run/e2e-broken")
	g.Expect(p.script(`sha256sum </run/e2e-broken/file`)).To(gomega.Equal(p.script(`cat /run/e2e.sum`)))
	p.run("umount", "/run/e2e-broken")
}

// losesASide takes a disk of the mirror offline, and checks that the writes that it has missed are rebuilt. A pool without redundancy keeps
// its disk.
func (p *pools) losesASide(pool, alone *v1alpha1.BenchmarkPool) {
	p.t.Helper()
	g, name := gomega.NewWithT(p.t), string(pool.Spec.PoolName)
	lost := p.begin("offline", pool, `offlineDevice: {device: $2, duration: 30s}`)
	eventually(p.t, "the disk is offline", func(g gomega.Gomega) {
		g.Expect(p.run("zpool", "status", name)).To(gomega.ContainSubstring("OFFLINE"))
	})
	p.script(`head -c 8M /dev/urandom >/e2e/missed; zpool sync`)
	p.ended(lost, "Succeeded")
	fmt.Printf("offline: %v\n", lost.Status.Metrics)
	g.Expect(p.run("zpool", "status", name)).NotTo(gomega.ContainSubstring("OFFLINE"))
	g.Expect(metricOf(lost, "resilveredBytes")).To(gomega.And(gomega.BeNumerically(">=", 8<<20), gomega.BeNumerically("<", 32<<20)))
	g.Expect(metricOf(lost, "resilverNanoseconds")).To(gomega.BeNumerically(">", 0))
	g.Expect(metricOf(lost, "offlineNanoseconds")).To(gomega.BeNumerically("~", 31e9, 1e9))
	p.ready(pool)
	p.operate("offline-alone", alone, `offlineDevice: {device: $3, duration: 1s}`, "Failed")
	g.Expect(p.run("zpool", "status", string(alone.Spec.PoolName))).NotTo(gomega.ContainSubstring("OFFLINE"))
}

// copiesElsewhere copies to a dataset that it makes on another pool, and overwrites files. Incompressible data is written once, with some
// metadata; without a redundant disk that is all.
func (p *pools) copiesElsewhere(from, to *v1alpha1.BenchmarkPool) {
	p.t.Helper()
	g := gomega.NewWithT(p.t)
	name := string(to.Spec.PoolName) + "/files"
	copied := p.operate("copy-elsewhere", from,
		`copy: {dataset: data, toPool: target, to: files, properties: {recordsize: 128k, compression: "off"}}`, "Succeeded")
	fmt.Printf("copy: %v\n", copied.Status.Metrics)
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "recordsize,storagebench.dev:operation,mounted", name)).To(
		gomega.Equal("131072\n" + string(copied.UID) + "\nno"))
	g.Expect(metricOf(copied, "copiedBytes")).To(gomega.BeEquivalentTo(24 << 20))
	g.Expect(metricOf(copied, "copiedBytesPerSecond")).To(gomega.BeNumerically(">", 0))
	g.Expect(metricOf(copied, "diskWrittenBytesPerCopiedBytePartsPerMillion")).To(gomega.And(gomega.BeNumerically(">=", 1_000_000),
		gomega.BeNumerically("<", 1_500_000)), "%v", copied.Status.Metrics)
	g.Expect(metricOf(copied, "diskWritesPerCopiedMebibyteMilli")).To(gomega.BeNumerically(">", 0))
	p.operate("copy-again", from, `copy: {dataset: data, toPool: target, to: files}`, "Failed")
	over := p.operate("copy-over", from, `copy: {dataset: data, toPool: target, to: files, overwrite: true}`, "Succeeded")
	g.Expect(metricOf(over, "overwrittenFiles")).To(gomega.BeEquivalentTo(2))
	p.run("mkdir", "-p", "/run/e2e-files")
	p.run("mount", "-t", "zfs", "-o", "zfsutil", name, "/run/e2e-files")
	g.Expect(p.script(`sha256sum </run/e2e-files/file`)).To(gomega.Equal(p.script(`cat /run/e2e.sum`)))
	p.run("umount", "/run/e2e-files")
}

// setsProperties changes a dataset that is in use: its pool stays as it is, and a newer spec resets the properties.
func (p *pools) setsProperties(pool *v1alpha1.BenchmarkPool) {
	p.t.Helper()
	g := gomega.NewWithT(p.t)
	dataset := string(pool.Spec.PoolName) + "/data"
	values := func() string { return p.run("zfs", "get", "-Hpo", "value", "recordsize,logbias", dataset) }
	g.Expect(values()).To(gomega.Equal("8192\nlatency"))
	set := p.operate("set", pool, `setProperty: {dataset: data, properties: {recordsize: 64k, logbias: throughput}}`, "Succeeded")
	g.Expect(values()).To(gomega.Equal("65536\nthroughput"))
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "storagebench.dev:changed", dataset)).To(
		gomega.Equal(string(set.UID) + ",logbias=throughput,recordsize=64k"))
	p.operate("set-another", pool, `setProperty: {dataset: data, properties: {logbias: latency}}`, "Succeeded")
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "storagebench.dev:changed", dataset)).To(
		gomega.HaveSuffix(",logbias=latency,recordsize=64k"))
	p.operate("set-nonsense", pool, `setProperty: {dataset: data, properties: {recordsize: 3k}}`, "Failed")
	g.Expect(values()).To(gomega.Equal("65536\nlatency"))
	p.operate("set-nowhere", pool, `setProperty: {dataset: date, properties: {recordsize: 4k}}`, "Failed")
	p.change(pool, func() { pool.Spec.Datasets[0].Properties["atime"] = "off" })
	p.ready(pool)
	g.Expect(values()).To(gomega.Equal("8192\nlatency"), "a newer spec")
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "storagebench.dev:changed", dataset)).To(gomega.Equal("-"))
}

// unmount unmounts the datasets with data: a pool in use is not destroyed.
func (p *pools) unmount() {
	p.script(`umount /e2e /e2e-other`)
}

// repairs lets a scrub find the damage after one side of a mirror was overwritten.
func (p *pools) repairs(pool *v1alpha1.BenchmarkPool) {
	p.t.Helper()
	p.ready(pool)
	p.script(`head -c 6M /dev/urandom | dd of="$2-part1" bs=1M seek=200 conv=notrunc,fsync status=none
		for at in 20 40 60 80 100; do head -c 4M /dev/urandom | dd of="$2-part1" bs=1M seek=$at conv=notrunc,fsync status=none; done`)
	scrub := p.operate("scrub", pool, `scrub: {}`, "Succeeded")
	fmt.Printf("scrub: %v\n", scrub.Status.Metrics)
	gomega.NewWithT(p.t).Expect(metricOf(scrub, "repairedBytes")+metricOf(scrub, "errorsFound")).To(gomega.BeNumerically(">", 0), "%v",
		scrub.Status.Metrics)
	p.run("zpool", "clear", string(pool.Spec.PoolName))
}

// replaces pulls a disk out of the running machine and replaces it by another.
func (p *pools) replaces(pool *v1alpha1.BenchmarkPool) {
	p.t.Helper()
	breakDisk(p.t, p.node, p.disks[1], "unplug")
	eventually(p.t, "the pool misses its disk", func(g gomega.Gomega) {
		p.run("zpool", "sync", string(pool.Spec.PoolName))
		g.Expect(p.run("zpool", "status", string(pool.Spec.PoolName))).To(gomega.MatchRegexp(`REMOVED|UNAVAIL|FAULTED`))
	})
	replaced := p.operate("replace", pool, `replaceDevice: {device: $2, with: $4}`, "Succeeded")
	fmt.Printf("replace: %v\n", replaced.Status.Metrics)
	g := gomega.NewWithT(p.t)
	g.Expect(metricOf(replaced, "resilveredBytes")).To(gomega.BeNumerically(">", 16<<20))
	tree := p.run("zpool", "status", "-P", string(pool.Spec.PoolName))
	g.Expect(tree).To(gomega.And(gomega.ContainSubstring(p.on(4)), gomega.Not(gomega.ContainSubstring(p.on(2)))))
}

// submit creates a PoolOperation. The text is its action, with the disks' paths as $1 to $5.
func (p *pools) submit(name string, pool *v1alpha1.BenchmarkPool, action string) *v1alpha1.PoolOperation {
	p.t.Helper()
	operation := &v1alpha1.PoolOperation{}
	if err := yaml.UnmarshalStrict([]byte("{"+p.paths(action)+"}"), &operation.Spec.Action); err != nil {
		p.t.Fatal(err)
	}
	operation.Name, operation.Spec.Pool, operation.Spec.NodeName = name, pool.Name, p.node
	if err := cluster.Create(p.t.Context(), operation); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		ctx, cancel := afterwards(p.t)
		defer cancel()
		if err := cluster.Delete(ctx, operation); err == nil {
			gone(ctx, p.t, operation)
		}
	})
	return operation
}

// begin creates a PoolOperation and waits until it has begun.
func (p *pools) begin(name string, pool *v1alpha1.BenchmarkPool, action string) *v1alpha1.PoolOperation {
	p.t.Helper()
	operation := p.submit(name, pool, action)
	eventually(p.t, "operation "+name+" has begun", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(operation), operation)).To(gomega.Succeed())
		g.Expect(operation.Status.StartedAt != nil || operation.Status.Outcome != "").To(gomega.BeTrue(), "%v", operation.Status.Conditions)
	})
	return operation
}

// ended waits for the outcome of an operation, which must be one of these.
func (p *pools) ended(operation *v1alpha1.PoolOperation, outcomes ...string) {
	p.t.Helper()
	eventually(p.t, "operation "+operation.Name+" has ended", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(operation), operation)).To(gomega.Succeed())
		g.Expect(operation.Status.Outcome).NotTo(gomega.BeEmpty(), "%v", operation.Status.Conditions)
	})
	ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
	gomega.NewWithT(p.t).Expect(operation.Status.Outcome).To(gomega.BeElementOf(outcomes), "%s: %v", operation.Name,
		operation.Status.Conditions)
	took := operation.Status.FinishedAt.Sub(operation.CreationTimestamp.Time)
	fmt.Printf("operation %s: %s after %.0f s: %s\n", operation.Name, operation.Status.Outcome, took.Seconds(),
		strings.TrimSpace(ready.Message))
}

// operate creates a PoolOperation and waits for its outcome.
func (p *pools) operate(name string, pool *v1alpha1.BenchmarkPool, action, outcome string) *v1alpha1.PoolOperation {
	p.t.Helper()
	operation := p.begin(name, pool, action)
	p.ended(operation, outcome)
	return operation
}

// metricOf returns a metric of an operation's result, or -1 if there is none.
func metricOf(operation *v1alpha1.PoolOperation, name string) int64 {
	for _, metric := range operation.Status.Metrics {
		if metric.Name == name {
			return metric.Value
		}
	}
	return -1
}
