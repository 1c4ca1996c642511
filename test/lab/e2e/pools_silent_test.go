package e2e

import (
	"fmt"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// releasePatience is ample for a release, which waits for nothing on the node. It is less than a look at a disk may take.
const releasePatience = 25 * time.Second

// silentDisk makes two disks stop answering: one with a pool on it, and one that a pool is to be made on. Other pools of the node
// are made and destroyed meanwhile, and the stuck one is released.
func (p *pools) silentDisk() {
	g := gomega.NewWithT(p.t)
	restarts := p.agentPod().Status.ContainerStatuses[0].RestartCount
	stuck := p.make("stuck", `{vdevs: [{devices: [$1]}], datasets: [{path: data, mounted: true}]}`)
	earlier := p.make("earlier", `{vdevs: [{devices: [$2]}]}`)
	p.ready(stuck)
	p.ready(earlier)

	breakDisk(p.t, p.node, p.disks[0], "hang")
	breakDisk(p.t, p.node, p.disks[2], "hang")
	trim := p.submit("trim-silent", stuck, `trim: {}`) // the kernel would wait for the disk, and every other pool for the kernel
	eventually(p.t, "the trim says why it does not begin", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(trim), trim)).To(gomega.Succeed())
		ready := meta.FindStatusCondition(trim.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).To(gomega.HaveField("Message", gomega.ContainSubstring("does not respond")))
	})
	if err := cluster.Delete(p.t.Context(), trim); err != nil {
		p.t.Fatal(err)
	}
	gone(p.t.Context(), p.t, trim)
	never := p.make("never", `{vdevs: [{devices: [$3]}]}`)
	if err := cluster.Delete(p.t.Context(), stuck); err != nil {
		p.t.Fatal(err)
	}
	g.Expect(p.says(never, v1alpha1.ReasonPoolDeviceRefused)).To(gomega.And(gomega.ContainSubstring(p.on(3)),
		gomega.ContainSubstring("does not respond")))

	started := time.Now()
	fine := p.make("fine", `{vdevs: [{devices: [$4]}], datasets: [{path: data, mounted: true}]}`)
	p.ready(fine)
	fmt.Printf("silent disk: another pool is ready after %.0f s\n", time.Since(started).Seconds())
	started = time.Now()
	p.remove(earlier)
	fmt.Printf("silent disk: a third pool is destroyed after %.0f s\n", time.Since(started).Seconds())

	eventually(p.t, "the stuck pool says why it stays", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(stuck), stuck)).To(gomega.Succeed())
		ready := meta.FindStatusCondition(stuck.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready.Status).To(gomega.Equal(metav1.ConditionFalse))
		fmt.Printf("silent disk: %s: %s\n", ready.Reason, ready.Message)
	})
	started = time.Now()
	p.change(stuck, func() { stuck.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: p.node} })
	gomega.NewWithT(p.t).Eventually(func() error {
		return cluster.Get(p.t.Context(), client.ObjectKeyFromObject(stuck), &v1alpha1.BenchmarkPool{})
	}).WithTimeout(releasePatience).WithPolling(time.Second).ShouldNot(gomega.Succeed(), "the stuck pool is released")
	fmt.Printf("silent disk: released after %.0f s\n", time.Since(started).Seconds())
	g.Expect(p.agentPod().Status.ContainerStatuses[0].RestartCount).To(gomega.Equal(restarts), "restarts of the agent")

	breakDisk(p.t, p.node, p.disks[0], "heal")
	breakDisk(p.t, p.node, p.disks[2], "heal")
	p.ready(never)
	p.remove(never, fine)
	g.Expect(p.run("zpool", "list", "-H", "-o", "name")).To(gomega.Equal(string(stuck.Spec.PoolName)), "what was released is left as it is")
	p.run("zpool", "destroy", string(stuck.Spec.PoolName))
	takeDisks(p.t, p.node, poolDisks)
}
