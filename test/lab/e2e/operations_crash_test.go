package e2e

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// crashedOperations are executed one after another on a mirror of disks 1 and 2 with the dataset data, and a pool on disk 3. The agent is
// killed in each. The script then shows that the operation took effect once.
var crashedOperations = []struct{ name, action, outcome, script, shows string }{
	{"snapshot", `snapshot: {dataset: data, name: one}`, "Succeeded", `zfs list -Ho name -t snapshot -r e2e-crashed`, "e2e-crashed/data@one"},
	{"clone", `clone: {dataset: data, snapshot: one, to: clone}`, "Succeeded", `zfs get -Hpo value origin e2e-crashed/clone`,
		"e2e-crashed/data@one"},
	{"destroy", `destroyDataset: {dataset: clone}`, "Succeeded", `zfs list -Ho name -r e2e-crashed | grep -c clone || true`, "0"},
	{"copy", `copy: {dataset: data, to: other}`, "Succeeded", `cmp /e2e/file /e2e-other/file && ls -A /e2e-other`, "file"},
	{"replicate", `replicate: {dataset: data, toPool: crashed-to, to: copy, increments: 2}`, "Succeeded",
		`zfs list -Ho name -t snapshot -r e2e-crashed; zfs get -Ho value receive_resume_token e2e-crashed-to/copy; zfs list -Ho name -t snapshot -r e2e-crashed-to/copy | wc -l`,
		"e2e-crashed/data@one\n-\n3"},
	{"scrub", `scrub: {}`, "Succeeded", `zpool status e2e-crashed | grep -o 'with 0 errors'`, "with 0 errors"},
	{"trim", `trim: {}`, "Succeeded", `zpool status -t e2e-crashed | grep -c '100% trimmed'`, "2"},
	{"parameter", `moduleParameter: {name: zfs_txg_timeout, value: "9", duration: 5s}`, "Succeeded",
		`cat /sys/module/zfs/parameters/zfs_txg_timeout; ls -A /var/lib/storagebench/parameters`, "5"},
	{"observe", `observe: {duration: 30s}`, "Failed", `true`, ""}, // a window with a gap does not count
	{"score", `layoutScore: {dataset: data}`, "Succeeded", `true`, ""},
	{"metaslabs", `metaslabMap: {}`, "Succeeded", `true`, ""},
	{"offline", `offlineDevice: {device: $2, duration: 20s}`, "Failed", `zpool status e2e-crashed | grep -c OFFLINE || true`, "0"},
	{"forget", `destroySnapshot: {dataset: data, name: one}`, "Succeeded", `zfs list -Ho name -t snapshot -r e2e-crashed | grep -c @one || true`, "0"},
	{"export", `exportImport: {}`, "Succeeded", `zpool list -Ho health e2e-crashed`, "ONLINE"},
	{"replace", `replaceDevice: {device: $2, with: $4}`, "Succeeded",
		`zpool status -P e2e-crashed | grep -o 'virtio[^ ]*disk[0-9]' | sed 's/.*disk//' | tr -d '\n'`, "14"},
}

// operationsCrash kills the agent in every kind of operation, each time at another moment, and more often in those of many steps.
func (p *pools) operationsCrash() {
	pool, target := p.pair("crashed", 16)
	for number, row := range crashedOperations {
		if row.name == "export" { // the pool must be unused
			p.unmount()
		}
		operation := p.submit(row.name, pool, row.action)
		moment(number % crashRounds)
		p.killAgent()
		if row.outcome == "Failed" { // it succeeds if the window had not begun
			p.ended(operation, "Failed", "Succeeded")
		} else {
			p.ended(operation, row.outcome)
		}
		eventually(p.t, row.name+" was done", func(g gomega.Gomega) { // the agent removes its record after it has written the outcome
			output, err := theLab.Run(p.t.Context(), p.node, "sh", "-euc", row.script)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(strings.TrimSpace(output)).To(gomega.Equal(row.shows))
		})
	}
	fmt.Printf("agent: killed in %d operations; each ended once and as it should\n", len(crashedOperations))
	p.change(pool, func() { pool.Spec.Vdevs[0].Devices[1] = v1alpha1.DevicePath(p.on(4)) })
	p.ready(pool)
	p.resumes(pool, target)
	p.unmountLeft()
	p.remove(target, pool)
}

// pair makes a mirror with mib MiB of data in a mounted dataset and an empty mounted one, and a second pool.
func (p *pools) pair(name string, mib int) (pool, target *v1alpha1.BenchmarkPool) {
	p.t.Helper()
	pool = p.make(name,
		`{vdevs: [{type: mirror, devices: [$1, $2]}], rootProperties: {compression: "off"}, datasets: [{path: data}, {path: other}]}`)
	target = p.make(name+"-to", `{vdevs: [{devices: [$3]}]}`)
	p.ready(pool)
	p.ready(target)
	p.fill(pool, "data", "/e2e", mib)
	p.fill(pool, "other", "/e2e-other", 0)
	p.script(`rm /e2e-other/file`)
	return pool, target
}

// resumes kills the agent when half a dataset has arrived: the next agent continues there, and does not start over.
func (p *pools) resumes(pool, target *v1alpha1.BenchmarkPool) {
	p.t.Helper()
	g, copied := gomega.NewWithT(p.t), string(target.Spec.PoolName)+"/resumed"
	p.slow(3)
	operation := p.begin("replicate-resumed", pool, `replicate: {dataset: data, toPool: `+target.Name+`, to: resumed}`)
	eventually(p.t, "half has arrived", func(g gomega.Gomega) {
		arrived, err := theLab.Run(p.t.Context(), p.node, "zfs", "list", "-Hpo", "used", copied+"/%recv")
		if err != nil { // a new dataset has no %recv below it
			arrived, err = theLab.Run(p.t.Context(), p.node, "zfs", "list", "-Hpo", "used", copied)
		}
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(strconv.Atoi(strings.TrimSpace(arrived))).To(gomega.BeNumerically(">", 2<<20))
	})
	p.killAgent()
	p.quick(3)
	p.ended(operation, "Succeeded")
	g.Expect(metricOf(operation, "sentBytes")).To(gomega.BeEquivalentTo(-1), "this agent has not sent all of it")
	g.Expect(operation.Status.Conditions).To(gomega.ContainElement(gomega.HaveField("Message", gomega.ContainSubstring("resumed"))))
	p.same(copied)
}

// same compares a copy with the data.
func (p *pools) same(copied string) {
	p.t.Helper()
	p.run("zfs", "set", "mountpoint=/e2e-copy", copied)
	gomega.NewWithT(p.t).Expect(p.script(`mkdir -p /e2e-copy; zfs mount "` + copied +
		`" 2>/dev/null || true; zfs mount -a; cmp /e2e/file /e2e-copy/file; umount /e2e-copy; echo same`)).To(gomega.Equal("same"))
}

// unmountLeft unmounts datasets that an import may have mounted.
func (p *pools) unmountLeft() {
	p.script(`for path in /e2e /e2e-other /e2e-copy; do umount "$path" 2>/dev/null || true; done`)
}

// operationsReset presses the reset button while a scrub, a replication and a changed module parameter are under way.
func (p *pools) operationsReset() {
	g := gomega.NewWithT(p.t)
	switchOnAfterwards(p.t, p.node)
	pool, target := p.pair("struck", 32)
	parameter := p.begin("parameter-struck", pool, `moduleParameter: {name: zfs_txg_timeout, value: "7"}`)
	p.slow(3)
	send := p.begin("replicate-struck", pool, `replicate: {dataset: data, toPool: `+target.Name+`, to: copy}`)
	p.underWay(send, "sending to")
	scrub := p.submit("scrub-struck", pool, `scrub: {}`) // waits for the replication, and begins after the reset
	act(p.t, p.node, "reset")
	p.quick(3)
	p.ended(parameter, "Failed") // it was in force only until the reset
	g.Expect(p.run("cat", "/sys/module/zfs/parameters/zfs_txg_timeout")).To(gomega.Equal("5"))
	p.ended(send, "Succeeded")
	p.ended(scrub, "Succeeded")
	p.script(`zfs mount -a`)
	p.same(string(target.Spec.PoolName) + "/copy")
	g.Expect(p.run("zfs", "list", "-H", "-o", "name", "-t", "snapshot", "-r", string(pool.Spec.PoolName))).To(gomega.BeEmpty())

	p.slow(1)
	again := p.begin("scrub-again", pool, `scrub: {}`)
	p.underWay(again, "scrubbing pool")
	act(p.t, p.node, "reset")
	p.quick(1)
	p.ended(again, "Succeeded")
	p.unmountLeft()
	p.remove(target, pool)
	p.joins()
}

// joins presses the reset button while a disk joins a pool, and deletes the operation. The pool comes back with or without that disk. When
// it is destroyed, neither of the disks stays in use.
func (p *pools) joins() {
	p.t.Helper()
	pool := p.make("joined", `{vdevs: [{devices: [$3]}]}`)
	p.ready(pool)
	p.slow(4)
	add := p.submit("add-struck", pool, `addVdev: {devices: [$4]}`)
	eventually(p.t, "the disk that joins is recorded", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(pool), pool)).To(gomega.Succeed())
		g.Expect(pool.Status.Joining).To(gomega.ConsistOf(v1alpha1.DevicePath(p.on(4))))
	})
	act(p.t, p.node, "reset")
	p.quick(4)
	gomega.NewWithT(p.t).Expect(cluster.Delete(p.t.Context(), add)).To(gomega.Succeed())
	eventually(p.t, "the pool is imported", func(g gomega.Gomega) {
		guids, err := theLab.Run(p.t.Context(), p.node, "zpool", "list", "-H", "-o", "guid")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(strings.Fields(guids)).To(gomega.ContainElement(pool.Status.GUID))
	})
	p.remove(pool)
	after := p.make("after-joined", `{vdevs: [{devices: [$3]}, {devices: [$4]}]}`) // no right to reuse: both have to be empty
	p.ready(after)
	p.remove(after)
}
