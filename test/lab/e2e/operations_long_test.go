package e2e

import (
	"fmt"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Limits that make a disk so slow that work on it lasts until it is interrupted.
const (
	slowIOPS           = 60
	slowBytesPerSecond = 1 << 20
)

// slow makes a disk slow until quick is called, or the test ends.
func (p *pools) slow(disk int) {
	p.t.Helper()
	breakDisk(p.t, p.node, p.disks[disk-1], "throttle", slowIOPS, slowBytesPerSecond)
}

func (p *pools) quick(disk int) {
	p.t.Helper()
	if err := restoreDisk(p.t.Context(), p.node, p.disks[disk-1]); err != nil {
		p.t.Fatal(err)
	}
}

// cancel cancels an operation.
func (p *pools) cancel(operation *v1alpha1.PoolOperation) {
	p.t.Helper()
	before := operation.DeepCopy()
	operation.Spec.Cancel = true
	if err := cluster.Patch(p.t.Context(), operation, client.MergeFrom(before)); err != nil {
		p.t.Fatal(err)
	}
}

// underWay waits until an operation reports its progress, in a message that begins with these words.
func (p *pools) underWay(operation *v1alpha1.PoolOperation, words string) {
	p.t.Helper()
	eventually(p.t, "operation "+operation.Name+" is under way", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(operation), operation)).To(gomega.Succeed())
		ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(operation.Status.Outcome).To(gomega.BeEmpty(), "%v", ready)
		g.Expect(ready).NotTo(gomega.BeNil())
		g.Expect(ready.Message).To(gomega.HavePrefix(words))
		g.Expect(operation.Status.Progress).NotTo(gomega.BeNil())
	})
}

// fill mounts a dataset of the pool at a path and writes mib MiB that cannot be compressed.
func (p *pools) fill(pool *v1alpha1.BenchmarkPool, dataset, path string, mib int) {
	p.t.Helper()
	p.t.Cleanup(func() { // a pool in use is not destroyed
		ctx, cancel := afterwards(p.t)
		defer cancel()
		_, _ = theLab.Run(ctx, p.node, "sh", "-c", "umount "+path+" 2>/dev/null")
	})
	p.run("zfs", "set", "mountpoint="+path, string(pool.Spec.PoolName)+"/"+dataset)
	p.script(fmt.Sprintf(`zfs mount -a; head -c %dM /dev/urandom >%s/file; zpool sync`, mib, path))
}

// changes runs operations on the disks of a pool, cancels some, and destroys much data.
func (p *pools) changes() {
	g := gomega.NewWithT(p.t)
	pool := p.make("changes",
		`{vdevs: [{devices: [$1]}], rootProperties: {compression: "off"}, datasets: [{path: data, properties: {recordsize: 8k, primarycache: metadata}}]}`)
	target := p.make("changes-to", `{vdevs: [{devices: [$3]}]}`)
	p.ready(pool)
	p.ready(target)
	name := string(pool.Spec.PoolName)
	p.fill(pool, "data", "/e2e", 64)

	trim := p.operate("trim", pool, `trim: {}`, "Succeeded")
	g.Expect(metricOf(trim, "trimmedDisks")).To(gomega.BeEquivalentTo(1))
	p.operate("add", pool, `addVdev: {devices: [$2]}`, "Succeeded")
	g.Expect(p.run("zpool", "status", "-P", name)).To(gomega.ContainSubstring(p.on(2)))
	p.operate("add-again", pool, `addVdev: {devices: [$2]}`, "Failed")
	p.operate("add-taken", pool, `addVdev: {devices: [$3]}`, "Failed")
	g.Expect(p.says(pool, v1alpha1.ReasonPoolDisksDiffer)).To(gomega.ContainSubstring(p.on(2)))

	p.operate("remove", pool, `removeVdev: {device: $2}`, "Succeeded")
	g.Expect(p.run("zpool", "status", "-P", name)).NotTo(gomega.ContainSubstring(p.on(2)))
	p.operate("remove-again", pool, `removeVdev: {device: $2}`, "Failed")
	p.ready(pool)

	p.cancels(pool, target)

	destroy := p.cleared(pool)
	g.Expect(metricOf(destroy, "freedBytes")).To(gomega.BeNumerically(">=", 64<<20))
	g.Expect(p.run("zpool", "list", "-Hpo", "freeing", name)).To(gomega.Equal("0"))
	p.remove(target, pool)
}

// cancels cancels operations that take long, and operations that do not end by themselves.
func (p *pools) cancels(pool, target *v1alpha1.BenchmarkPool) {
	p.t.Helper()
	g, name := gomega.NewWithT(p.t), string(pool.Spec.PoolName)
	p.slow(1)
	scrub := p.begin("scrub-cancelled", pool, `scrub: {}`)
	p.underWay(scrub, "scrubbing pool")
	p.cancel(scrub)
	p.ended(scrub, "Cancelled")
	g.Expect(p.run("zpool", "status", name)).To(gomega.ContainSubstring("scrub canceled"))
	p.quick(1)

	p.slow(1) // otherwise the target's memory takes in everything at once, and nothing is left to cancel
	send := p.begin("replicate-cancelled", pool, `replicate: {dataset: data, toPool: changes-to, to: copy}`)
	p.underWay(send, "sending to")
	p.cancel(send)
	p.ended(send, "Cancelled")
	p.quick(1)
	g.Expect(p.run("zfs", "list", "-H", "-o", "name", "-t", "snapshot", "-r", name)).To(gomega.BeEmpty(), "its snapshot is gone")
	g.Expect(p.run("zfs", "list", "-H", "-o", "name", "-r", string(target.Spec.PoolName))).NotTo(gomega.ContainSubstring("copy"),
		"half a dataset is gone")

	observe := p.begin("observe-until", pool, `observe: {}`)
	p.underWay(observe, "observing until")
	p.cancel(observe)
	p.ended(observe, "Succeeded")
	parameter := p.begin("parameter-until", pool, `moduleParameter: {name: zfs_txg_timeout, value: "7"}`)
	eventually(p.t, "the parameter is set", func(g gomega.Gomega) {
		g.Expect(p.run("cat", "/sys/module/zfs/parameters/zfs_txg_timeout")).To(gomega.Equal("7"))
	})
	p.cancel(parameter)
	p.ended(parameter, "Succeeded")
	g.Expect(p.run("cat", "/sys/module/zfs/parameters/zfs_txg_timeout")).To(gomega.Equal("5"), "as before")
}

// cleared destroys the dataset with the data, once it is unused.
func (p *pools) cleared(pool *v1alpha1.BenchmarkPool) *v1alpha1.PoolOperation {
	p.t.Helper()
	operation := p.submit("destroy-data", pool, `destroyDataset: {dataset: data}`)
	eventually(p.t, "the operation says who uses the dataset", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(operation), operation)).To(gomega.Succeed())
		ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).To(gomega.HaveField("Reason", v1alpha1.ReasonDatasetInUse))
		g.Expect(ready.Message).To(gomega.ContainSubstring("/e2e"))
	})
	p.run("umount", "/e2e")
	p.ended(operation, "Succeeded")
	return operation
}

// manyOperations is how many PoolOperations are executed one after another.
const manyOperations = 200

// many executes many operations, and compares what the agent holds before and after.
func (p *pools) many() {
	g := gomega.NewWithT(p.t)
	pool := p.make("many", `{vdevs: [{devices: [$1]}], datasets: [{path: data}]}`)
	p.ready(pool)
	p.operate("base", pool, `snapshot: {dataset: data, name: base}`, "Succeeded")
	// Open files, threads, and KiB of memory of the agent; its running commands; its records on the node.
	held := func() (files, threads, memory, commands, records int) {
		p.t.Helper()
		output := p.script(`for process in /proc/[0-9]*; do
			[ "$(readlink "$process/exe" 2>/dev/null)" = /agent ] || continue
			sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p; s/^Threads:[^0-9]*//p' "$process/status" | tr '\n' ' '
			echo $(ls "$process/fd" | wc -l) $(cat "$process"/task/*/children | wc -w) $(find /var/lib/storagebench -type f 2>/dev/null | wc -l)
		done`)
		if _, err := fmt.Sscan(output, &memory, &threads, &files, &commands, &records); err != nil {
			p.t.Fatalf("%v: %q", err, output)
		}
		return files, threads, memory, commands, records
	}
	datasets := p.run("zfs", "list", "-Ho", "name", "-t", "all", "-r", string(pool.Spec.PoolName))
	var files, threads, memory, commands, records int
	for round := range manyOperations / 20 {
		if round == 1 { // by then everything that is created only once exists
			files, threads, memory, commands, records = held()
		}
		p.batch(pool, `clone: {dataset: data, snapshot: base, to: clone-%d}`)
		p.batch(pool, `destroyDataset: {dataset: clone-%d}`)
	}
	filesAfter, threadsAfter, memoryAfter, commandsAfter, recordsAfter := held()
	fmt.Printf("agent: %d operations; open files %d before, %d after; threads %d, %d; memory %d, %d KiB; commands under way %d, %d; files "+
		"on the node %d, %d\n",
		manyOperations, files, filesAfter, threads, threadsAfter, memory, memoryAfter, commands, commandsAfter, records, recordsAfter)
	g.Expect(filesAfter).To(gomega.BeNumerically("<=", files+3), "open files")
	g.Expect(threadsAfter).To(gomega.BeNumerically("<=", threads+5), "threads")
	g.Expect(memoryAfter).To(gomega.BeNumerically("<", idleMemoryKiB), "memory")
	g.Expect(commandsAfter).To(gomega.BeZero(), "commands")
	g.Expect(recordsAfter).To(gomega.Equal(records), "files on the node")
	g.Expect(p.run("zfs", "list", "-Ho", "name", "-t", "all", "-r", string(pool.Spec.PoolName))).To(gomega.Equal(datasets))
	p.remove(pool)
}

// batch submits ten operations at once, which the agent executes one after another, and deletes them afterwards.
func (p *pools) batch(pool *v1alpha1.BenchmarkPool, action string) {
	p.t.Helper()
	var batch [10]*v1alpha1.PoolOperation
	for i := range batch {
		batch[i] = p.submit(fmt.Sprintf("many-%d", i), pool, fmt.Sprintf(action, i))
	}
	for _, operation := range batch {
		p.ended(operation, "Succeeded")
		if err := cluster.Delete(p.t.Context(), operation); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, operation := range batch {
		gone(p.t.Context(), p.t, operation)
	}
}
