package e2e

import (
	"regexp"
	"strings"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// retained makes a pool that stays when its object is deleted, and that the next object with this name takes over as its message says.
func (p *pools) retained() {
	g := gomega.NewWithT(p.t)
	const spec = `{deletionPolicy: Retain, vdevs: [{type: mirror, devices: [$1, $2]}], datasets: [{path: data, mounted: true}]}`
	pool := p.make("retained", spec)
	p.ready(pool)
	name, guid := string(pool.Spec.PoolName), pool.Status.GUID
	file := "/var/lib/storagebench/volumes/" + name + "/data/file"
	p.script(`echo kept >` + file)
	if err := cluster.Delete(p.t.Context(), pool); err != nil {
		p.t.Fatal(err)
	}
	gone(p.t.Context(), p.t, pool)
	g.Expect(p.run("zpool", "list", "-H", "-o", "guid", name)).To(gomega.Equal(guid))
	g.Expect(p.run("cat", file)).To(gomega.Equal("kept"), "the pool stays as it is, with what is mounted")

	next := p.make("retained", spec)
	command := regexp.MustCompile(`zfs set [^;]*`).FindString(p.says(next, v1alpha1.ReasonPoolNameTaken))
	g.Expect(command).To(gomega.ContainSubstring("storagebench.dev:uid=" + string(next.UID)))
	p.run(strings.Fields(command)...)
	p.ready(next)
	g.Expect(next.Status.GUID).To(gomega.Equal(guid))
	g.Expect(p.run("cat", file)).To(gomega.Equal("kept"))
	p.change(next, func() { next.Spec.DeletionPolicy = v1alpha1.DeletionDestroy })
	p.ready(next)
	p.remove(next)
}

// restored makes a pool that is newer than its object, as after etcd was restored from a backup. The agent only sees that the mark on the
// pool has a later generation.
func (p *pools) restored() {
	g := gomega.NewWithT(p.t)
	pool := p.make("restored", `{vdevs: [{type: mirror, devices: [$1, $2]}]}`)
	p.ready(pool)
	name := string(pool.Spec.PoolName)
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "storagebench.dev:spec", name)).To(gomega.Equal("1"))
	p.run("zfs", "set", "storagebench.dev:spec=9", "storagebench.dev:disks=of-another-layout", name)
	third := v1alpha1.DevicePath(p.on(3))
	p.change(pool, func() { pool.Spec.Vdevs[0].Devices = append(pool.Spec.Vdevs[0].Devices, third) })
	message := p.says(pool, v1alpha1.ReasonPoolOlderSpec)
	g.Expect(p.script(`zpool status -P `+name+` | grep -c part1`)).To(gomega.Equal("2"), "no disk is attached")
	words := regexp.MustCompile(`kubectl annotate --overwrite benchmarkpool restored (\S+)=(\d+)$`).FindStringSubmatch(message)
	g.Expect(words).To(gomega.HaveLen(3), message)
	p.change(pool, func() { pool.Annotations = map[string]string{words[1]: words[2]} })
	p.ready(pool)
	g.Expect(p.script(`zpool status -P ` + name + ` | grep -c part1`)).To(gomega.Equal("3"))
	p.remove(pool)
}
