package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// poolLayouts are tried on real disks. tree is what 'zpool status' shows of the tree, in order.
var poolLayouts = []struct{ name, spec, tree string }{
	{"single", `{vdevs: [{devices: [$1]}], ashift: 9}`, "$1"},
	{"stripe", `{vdevs: [{devices: [$1, $2]}], ashift: 13}`, "$1 $2"},
	{"two", `{vdevs: [{devices: [$1]}, {devices: [$2]}]}`, "$1 $2"},
	{"mirror", `{vdevs: [{type: mirror, devices: [$1, $2]}]}`, "mirror-0 $1 $2"},
	{"mirror3", `{vdevs: [{type: mirror, devices: [$1, $2, $3]}]}`, "mirror-0 $1 $2 $3"},
	{"raidz1", `{vdevs: [{type: raidz1, devices: [$1, $2, $3]}]}`, "raidz1-0 $1 $2 $3"},
	{"raidz2", `{vdevs: [{type: raidz2, devices: [$1, $2, $3]}]}`, "raidz2-0 $1 $2 $3"},
	{"draid1", `{vdevs: [{type: draid1, devices: [$1, $2, $3], draidDataDevices: 1}]}`, "draid1:1d:3c:0s-0 $1 $2 $3"},
	{"draids", `{vdevs: [{type: draid1, devices: [$1, $2, $3], draidDataDevices: 1, draidSpares: 1}]}`,
		"draid1:1d:3c:1s-0 $1 $2 $3 draid1-0-0"},
	{"log", `{vdevs: [{devices: [$1]}], log: [{devices: [$2]}]}`, "$1 $2"},
	{"logs", `{vdevs: [{devices: [$1]}], log: [{type: mirror, devices: [$2, $3]}]}`, "$1 mirror-1 $2 $3"},
	{"cache", `{vdevs: [{devices: [$1]}], cache: [$2], spare: [$3]}`, "$1 $2 $3"},
	{"special", `{vdevs: [{devices: [$1]}], special: [{devices: [$2]}], rootProperties: {special_small_blocks: "8192"}}`, "$1 $2"},
}

// layouts makes and destroys a pool of each layout, on the same disks: each leaves them clean for the next.
func (p *pools) layouts() {
	for _, layout := range sampleInShort(poolLayouts, 4) {
		g, started := gomega.NewWithT(p.t), time.Now()
		pool := p.make(layout.name, layout.spec)
		p.ready(pool)
		made := time.Since(started)
		name := string(pool.Spec.PoolName)
		var tree []string
		for _, vdev := range pool.Status.Vdevs {
			g.Expect(vdev.State).To(gomega.BeElementOf("ONLINE", "AVAIL"), "%+v", vdev)
			if vdev.Parent == "" && vdev.Ashift != 0 {
				g.Expect(vdev.Ashift).To(gomega.Equal(pool.Spec.Ashift), "%+v", vdev)
			}
			tree = append(tree, strings.TrimSuffix(vdev.Name, "-part1"))
		}
		g.Expect(strings.Join(tree, " ")).To(gomega.Equal(p.paths(layout.tree)), layout.name)
		facts := strings.Fields(p.run("zpool", "list", "-Hp", "-o", "guid,size,health,ashift", name))
		g.Expect([]string{pool.Status.GUID, strconv.FormatInt(pool.Status.SizeBytes, 10), pool.Status.Health,
			strconv.Itoa(int(pool.Spec.Ashift))}).
			To(gomega.Equal(facts), layout.name)
		g.Expect(pool.Status.ZFSVersion).To(gomega.ContainSubstring("2."))
		g.Expect(pool.Status.Preflight).NotTo(gomega.BeEmpty())
		p.remove(pool)
		fmt.Printf("pool of layout %s: ready after %.1f s, gone %.1f s later\n", layout.name, made.Seconds(),
			(time.Since(started) - made).Seconds())
	}
}

// life follows a pool with datasets: properties drift and are repaired, and the pool grows.
func (p *pools) life() {
	g := gomega.NewWithT(p.t)
	pool := p.make("life", `{vdevs: [{type: mirror, devices: [$1, $2]}], properties: {autotrim: "on"}, rootProperties: {compression: "off", atime: "off"},
		datasets: [{path: data, properties: {recordsize: 8k, logbias: throughput}}, {path: data/below}, {path: volume, type: Volume, size: 64Mi, properties: {volblocksize: 8k}}]}`)
	p.ready(pool)
	name, uid := string(pool.Spec.PoolName), string(pool.UID)
	g.Expect(property(pool, name+"/data", "recordsize")).To(gomega.Equal("8192"))
	g.Expect(property(pool, name, "compression")).To(gomega.Equal("off"))
	g.Expect(property(pool, "", "autotrim")).To(gomega.Equal("on"))
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "storagebench.dev:uid", name)).To(gomega.Equal(uid))
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "snapdir", name+"/data")).To(gomega.Equal("disabled"), "no pod keeps a snapshot mounted")
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "volsize", name+"/volume")).To(gomega.Equal("67108864"))

	p.run("zfs", "set", "recordsize=16k", name+"/data")
	message := p.says(pool, v1alpha1.ReasonPoolDrifted)
	g.Expect(message).To(gomega.And(gomega.ContainSubstring("recordsize"), gomega.ContainSubstring("16384")))
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "recordsize", name+"/data")).To(gomega.Equal("16384"), "drift: Report changes nothing")
	p.change(pool, func() { pool.Spec.Drift = "Repair" })
	p.ready(pool)
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "recordsize", name+"/data")).To(gomega.Equal("8192"))

	p.change(pool, func() {
		var added v1alpha1.Vdev
		added.Devices = []v1alpha1.DevicePath{v1alpha1.DevicePath(p.on(3))}
		pool.Spec.Vdevs = append(pool.Spec.Vdevs, added)
	})
	message = p.says(pool, v1alpha1.ReasonActionFailed)
	g.Expect(message).To(gomega.ContainSubstring("mirror"), "ZFS refuses a disk without redundancy beside a mirror, and is not forced")
	fmt.Printf("pool %s refuses to grow by a plain disk: %s\n", name, message)
	p.remove(pool)
	p.mounts()
	p.grows()
}

// mounts checks a dataset that the agent keeps mounted: it is mounted again after an export, and is removed with its pool unless it is in
// use.
func (p *pools) mounts() {
	g := gomega.NewWithT(p.t)
	pool := p.make("mounts", `{vdevs: [{devices: [$1]}], datasets: [{path: lab}, {path: lab/data, mounted: true}]}`)
	p.ready(pool)
	point := "/var/lib/storagebench/volumes/" + string(pool.Spec.PoolName) + "/lab/data"
	source := func() string { return p.script(`findmnt -no SOURCE --mountpoint ` + point + ` || echo none`) }
	g.Expect(source()).To(gomega.Equal(string(pool.Spec.PoolName) + "/lab/data"))
	p.script(`echo kept >` + point + `/file`)
	p.operate("mounts-again", pool, `exportImport: {}`, "Succeeded")
	g.Expect(p.run("cat", point+"/file")).To(gomega.Equal("kept"))

	p.script(`nohup sleep 1000 <` + point + `/file >/dev/null 2>&1 & echo $! >/run/e2e-user`)
	if err := cluster.Delete(p.t.Context(), pool); err != nil {
		p.t.Fatal(err)
	}
	g.Expect(p.says(pool, v1alpha1.ReasonActionFailed)).To(gomega.ContainSubstring("busy"))
	g.Expect(source()).NotTo(gomega.Equal("none"), "what is in use stays mounted")
	p.script(`kill $(cat /run/e2e-user); rm /run/e2e-user`)
	p.remove(pool)
	g.Expect(p.script(`ls -d ` + point + ` 2>/dev/null || echo gone`)).To(gomega.Equal("gone"))
}

// grows adds a disk to a pool, makes a mirror of each disk, and then removes one disk of each mirror.
func (p *pools) grows() {
	g := gomega.NewWithT(p.t)
	pool := p.make("grow", `{vdevs: [{devices: [$1]}]}`)
	p.ready(pool)
	before := pool.Status.SizeBytes
	vdevs := func(kind v1alpha1.VdevType, disks ...[]int) func() {
		return func() {
			pool.Spec.Vdevs = nil
			for _, numbers := range disks {
				vdev := v1alpha1.Vdev{Type: kind}
				for _, number := range numbers {
					vdev.Devices = append(vdev.Devices, v1alpha1.DevicePath(p.on(number)))
				}
				pool.Spec.Vdevs = append(pool.Spec.Vdevs, vdev)
			}
		}
	}
	p.change(pool, vdevs("stripe", []int{1}, []int{2}))
	p.ready(pool)
	g.Expect(pool.Status.SizeBytes).To(gomega.BeNumerically(">", before*19/10))
	g.Expect(pool.Status.Vdevs).To(gomega.HaveLen(2))
	fmt.Printf("pool grew from %d to %d bytes\n", before, pool.Status.SizeBytes)

	tree := func() string {
		return strings.Join(strings.Fields(p.script(`zpool status -P `+string(pool.Spec.PoolName)+` | grep -oE "mirror-[0-9]|disk[0-9]-part1"`)),
			" ")
	}
	p.change(pool, vdevs("mirror", []int{1, 3}, []int{2, 4}))
	p.ready(pool)
	g.Expect(tree()).To(gomega.Equal("mirror-0 disk1-part1 disk3-part1 mirror-1 disk2-part1 disk4-part1"))
	p.change(pool, vdevs("stripe", []int{3}, []int{2}))
	p.ready(pool)
	g.Expect(tree()).To(gomega.Equal("disk3-part1 disk2-part1"))

	left := p.make("left", `{vdevs: [{devices: [$1]}, {devices: [$4]}]}`) // the agent has cleared the labels of both
	p.ready(left)
	p.remove(left, pool)
}

// rivals claim the same disk and the same name: the second one waits, and gets them when the first one is gone.
func (p *pools) rivals() {
	g := gomega.NewWithT(p.t)
	first := p.make("first", `{vdevs: [{devices: [$1]}]}`)
	p.ready(first)
	second := p.make("second", `{vdevs: [{devices: [$1]}]}`)
	g.Expect(p.says(second, v1alpha1.ReasonPoolConflict)).To(gomega.ContainSubstring("BenchmarkPool first also claims"))
	namesake := p.make("namesake", `{poolName: `+poolPrefix+`first, vdevs: [{devices: [$2]}]}`)
	g.Expect(p.says(namesake, v1alpha1.ReasonPoolNameTaken)).To(gomega.ContainSubstring("it belongs to BenchmarkPool first"))
	denied := p.make("denied", `{namespace: team-a, vdevs: [{devices: [$2]}]}`)
	g.Expect(p.says(denied, v1alpha1.ReasonPoolDeviceDenied)).To(gomega.ContainSubstring("namespace team-a"))
	allowed := p.make("allowed", `{namespace: lab, vdevs: [{devices: [$4]}]}`)
	p.ready(allowed)
	p.remove(denied, allowed, namesake)
	g.Expect(p.run("zpool", "list", "-H", "-o", "guid", string(first.Spec.PoolName))).To(gomega.Equal(first.Status.GUID),
		"the first is untouched")
	p.remove(first)
	p.ready(second)
	p.remove(second)
}

// reuse: a disk with old data is taken if its serial number is named, and otherwise refused.
func (p *pools) reuse() {
	g := gomega.NewWithT(p.t)
	p.script(`mkfs.ext4 -q -F -E nodiscard "$1" 64M`)
	pool := p.make("reuse", `{vdevs: [{devices: [$1]}], reuse: {serials: [`+p.node+`-disk2]}}`)
	g.Expect(p.says(pool, v1alpha1.ReasonPoolDeviceRefused)).To(gomega.And(gomega.ContainSubstring("ext"),
		gomega.ContainSubstring("list its serial number "+p.node+"-disk1")))
	p.change(pool, func() { pool.Spec.Reuse.Serials = []string{p.node + "-disk1"} })
	p.ready(pool)
	p.remove(pool)
}
