package e2e

import (
	"fmt"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// lateOperation keeps the agent off its node past the deadline of an operation: when the agent is back, it destroys nothing. It does not
// destroy a dataset with another GUID than the intended one either, and sets no parameter beyond the bounds of its grant.
func (p *pools) lateOperation() {
	g := gomega.NewWithT(p.t)
	pool := p.make("late", `{vdevs: [{devices: [$1]}], datasets: [{path: data}, {path: data/dear}]}`)
	p.ready(pool)
	dear := string(pool.Spec.PoolName) + "/data/dear"
	guid := p.run("zfs", "get", "-Hpo", "value", "guid", dear)

	p.agentAway(true)
	late := p.submit("late", pool, `destroyDataset: {dataset: data/dear}`)
	before := late.DeepCopy()
	late.Spec.Deadline = &v1alpha1.Duration{Duration: metav1.Duration{Duration: 5 * time.Second}}
	g.Expect(cluster.Patch(p.t.Context(), late, client.MergeFrom(before))).To(gomega.Succeed())
	eventually(p.t, "the deadline has passed", func(g gomega.Gomega) {
		g.Expect(time.Since(late.CreationTimestamp.Time)).To(gomega.BeNumerically(">", 10*time.Second))
	})
	p.agentAway(false)
	p.ended(late, "Failed")
	ready := meta.FindStatusCondition(late.Status.Conditions, v1alpha1.ConditionReady)
	g.Expect(ready).To(gomega.HaveField("Reason", v1alpha1.ReasonDeadlineExceeded))
	g.Expect(late.Status.StartedAt).To(gomega.BeNil())
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "guid", dear)).To(gomega.Equal(guid))

	other := p.operate("late-other", pool, `destroyDataset: {dataset: data/dear, guid: "1"}`, "Failed")
	g.Expect(meta.FindStatusCondition(other.Status.Conditions, v1alpha1.ConditionReady)).To(gomega.HaveField("Reason",
		v1alpha1.ReasonGUIDMismatch))
	g.Expect(p.run("zfs", "get", "-Hpo", "value", "guid", dear)).To(gomega.Equal(guid))
	p.operate("late-meant", pool, fmt.Sprintf(`destroyDataset: {dataset: data/dear, guid: %q}`, guid), "Succeeded")
	g.Expect(p.run("zfs", "list", "-Ho", "name", "-r", string(pool.Spec.PoolName))).NotTo(gomega.ContainSubstring("dear"))

	set := p.operate("late-parameter", pool, `moduleParameter: {name: zfs_txg_timeout, value: "61", duration: 5s}`, "Failed")
	g.Expect(meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionReady).Message).To(gomega.ContainSubstring("1..60"))
	p.remove(pool)
}

// agentAway removes the agent from the node, through the node's label, or brings it back.
func (p *pools) agentAway(away bool) {
	p.t.Helper()
	label := func(value string) {
		ctx, cancel := afterwards(p.t)
		defer cancel()
		node, err := getNode(ctx, p.node)
		if err != nil {
			p.t.Fatal(err)
		}
		patch := fmt.Sprintf(`{"metadata":{"labels":{"storagebench.dev/lab":%s}}}`, value)
		if err := cluster.Patch(ctx, node, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			p.t.Fatal(err)
		}
	}
	if !away {
		label(`"true"`)
		p.agentAvailable()
		return
	}
	p.t.Cleanup(func() { label(`"true"`) })
	label("null")
	eventually(p.t, "the agent is gone", func(g gomega.Gomega) {
		var pods corev1.PodList
		g.Expect(cluster.List(p.t.Context(), &pods, client.InNamespace(agentNamespace),
			client.MatchingFields{"spec.nodeName": p.node})).To(gomega.Succeed())
		g.Expect(pods.Items).To(gomega.BeEmpty())
	})
}
