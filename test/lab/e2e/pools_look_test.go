package e2e

import (
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// looked imports a pool read-only by hand, as a person does who wants to know whether another host has it. The agent leaves it alone. A look
// of its own, which it could not finish, it finishes.
func (p *pools) looked() {
	g := gomega.NewWithT(p.t)
	pool := p.make("looked", `{vdevs: [{type: mirror, devices: [$1, $2]}], datasets: [{path: data, mounted: true}]}`)
	p.ready(pool)
	name := string(pool.Spec.PoolName)
	again := func(options string) {
		p.script(`zpool export ` + name + ` && zpool import -N -d $1-part1 -d $2-part1 -o cachefile=none -o readonly=on ` + options + ` ` + name)
	}
	again("")
	message := p.says(pool, v1alpha1.ReasonPoolUnhealthy)
	g.Expect(message).To(gomega.ContainSubstring("imported read-only by hand"))
	g.Consistently(func(g gomega.Gomega) { // longer than the minute after which the agent looks again
		g.Expect(p.run("zpool", "get", "-Hpo", "value", "readonly", name)).To(gomega.Equal("on"))
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(pool), pool)).To(gomega.Succeed())
		g.Expect(meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady).Message).To(gomega.Equal(message))
	}, 90*time.Second, 10*time.Second).Should(gomega.Succeed())
	p.run("zpool", "export", name)
	p.ready(pool)
	again("-o altroot=/run/storagebench/look")
	eventually(p.t, "the agent finishes its look", func(g gomega.Gomega) {
		mode, _ := theLab.Run(p.t.Context(), p.node, "zpool", "get", "-Hpo", "value", "readonly,altroot", name)
		g.Expect(mode).To(gomega.Equal("off\n-\n"))
	})
	p.ready(pool)
	p.remove(pool)
}

// refusedProperty asks for a root property that the kernel refuses once the pool exists. The disks stay usable.
func (p *pools) refusedProperty() {
	pool := p.make("refused", `{vdevs: [{devices: [$1]}], rootProperties: {reservation: 1P}}`)
	gomega.NewWithT(p.t).Expect(p.says(pool, v1alpha1.ReasonActionFailed)).To(gomega.ContainSubstring("reservation"))
	p.remove(pool)
	next := p.make("refused-next", `{vdevs: [{devices: [$1]}], rootProperties: {reservation: 16M, recordsize: 16k}}`)
	p.ready(next)
	gomega.NewWithT(p.t).Expect(p.run("zfs", "get", "-Hpo", "value", "reservation,recordsize", string(next.Spec.PoolName))).
		To(gomega.Equal("16777216\n16384"))
	p.remove(next)
}
