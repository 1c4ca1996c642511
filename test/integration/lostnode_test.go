package integration

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestOperationOfLostNode deletes an operation that has begun on a node that goes away. Pools and operations have no namespace: a
// manager of any test would write them, and some tests count writes. So the tests of this file run alone.
func TestOperationOfLostNode(t *testing.T) {
	l := start(t, nil)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-lost-too", Labels: map[string]string{v1alpha1.LabelLabNode: "true"}}}
	l.must(l.live.Create(t.Context(), node))
	operation := &v1alpha1.PoolOperation{
		ObjectMeta: metav1.ObjectMeta{Name: "lost-parameter", Finalizers: []string{v1alpha1.FinalizerTeardown}},
		Spec: v1alpha1.PoolOperationSpec{NodeName: node.Name, Pool: "of-lost-node", Action: v1alpha1.PoolAction{
			ModuleParameter: &v1alpha1.ModuleParameterAction{Name: "zfs_txg_timeout", Value: "7"}}},
	}
	ended := operation.DeepCopy()
	ended.Name, ended.Finalizers = "ended-before", nil
	for _, one := range []*v1alpha1.PoolOperation{operation, ended} {
		l.must(l.live.Create(t.Context(), one))
		one.Status.StartedAt, one.Status.Handle = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}, "101/life-1"
		one.Status.Data = []byte("what it has to show")
	}
	ended.Status.Outcome, ended.Status.FinishedAt = "Succeeded", ended.Status.StartedAt
	l.must(l.live.Status().Update(t.Context(), operation))
	l.must(l.live.Status().Update(t.Context(), ended))
	l.must(l.live.Delete(t.Context(), operation))
	l.must(l.live.Delete(t.Context(), node))

	l.eventually("what is left behind is said", func(g gomega.Gomega) {
		g.Expect(l.live.Get(t.Context(), client.ObjectKeyFromObject(operation), operation)).To(gomega.Succeed())
		condition := ready(operation.Status.Conditions)
		g.Expect(condition.Reason).To(gomega.Equal(v1alpha1.ReasonPoolNodeGone))
		g.Expect(condition.Message).To(gomega.And(gomega.ContainSubstring("node node-lost-too does not exist"),
			gomega.ContainSubstring("parameter zfs_txg_timeout may keep the value 7"),
			gomega.ContainSubstring("kubectl annotate pooloperation lost-parameter storagebench.dev/release-pool=node-lost-too")))
	})
	gomega.NewWithT(t).Expect(string(operation.Status.Data)).To(gomega.Equal("what it has to show"),
		"the manager writes no status from its cache")
	changed := operation.DeepCopy()
	changed.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: node.Name}
	l.must(l.live.Patch(t.Context(), changed, client.MergeFrom(operation)))
	l.eventually("the operation is gone", func(g gomega.Gomega) {
		g.Expect(apierrors.IsNotFound(l.live.Get(t.Context(), client.ObjectKeyFromObject(operation), operation))).To(gomega.BeTrue())
	})
	l.must(l.live.Get(t.Context(), client.ObjectKeyFromObject(ended), ended))
	gomega.NewWithT(t).Expect(ended.Status.Conditions).To(gomega.BeEmpty(), "what has ended needs no agent")
}

// TestRetainedPoolOfLostNode deletes the object of a pool that is retained: no agent has to do anything for that, and no person has to
// release it.
func TestRetainedPoolOfLostNode(t *testing.T) {
	l := start(t, nil)
	pool := &v1alpha1.BenchmarkPool{
		ObjectMeta: metav1.ObjectMeta{Name: "retained-of-lost-node", Finalizers: []string{v1alpha1.FinalizerTeardown}},
		Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "node-never", PoolTemplate: v1alpha1.PoolTemplate{
			Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/nvme-LAB_A"}}}}},
	}
	l.must(l.live.Create(t.Context(), pool))
	gomega.NewWithT(t).Expect(pool.Spec.DeletionPolicy).To(gomega.Equal(v1alpha1.DeletionRetain), "the default is in the object")
	l.must(l.live.Delete(t.Context(), pool))
	l.eventually("the object is gone", func(g gomega.Gomega) {
		g.Expect(apierrors.IsNotFound(l.live.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))).To(gomega.BeTrue())
	})
}

// TestPoolOfLostNode deletes a pool whose node goes away: the object says what is left and where. It is removed when it is released, and
// not before.
func TestPoolOfLostNode(t *testing.T) {
	l := start(t, nil)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-lost", Labels: map[string]string{v1alpha1.LabelLabNode: "true"}}}
	l.must(l.live.Create(t.Context(), node))
	pool := &v1alpha1.BenchmarkPool{
		ObjectMeta: metav1.ObjectMeta{Name: "of-lost-node", Finalizers: []string{v1alpha1.FinalizerTeardown}},
		Spec: v1alpha1.BenchmarkPoolSpec{NodeName: node.Name, PoolName: "bench0", DeletionPolicy: v1alpha1.DeletionDestroy,
			PoolTemplate: v1alpha1.PoolTemplate{
				Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/nvme-LAB_A"}}}}},
	}
	l.must(l.live.Create(t.Context(), pool))
	pool.Status.GUID = "12345678901234567890"
	l.must(l.live.Status().Update(t.Context(), pool))
	key := client.ObjectKeyFromObject(pool)
	l.must(l.live.Delete(t.Context(), pool))

	// While its node exists, the agent is responsible for the pool: the manager says nothing.
	stays := func(seconds string) {
		t.Helper()
		gomega.NewWithT(t).Consistently(func(g gomega.Gomega) {
			g.Expect(l.live.Get(t.Context(), key, pool)).To(gomega.Succeed())
			g.Expect(pool.Finalizers).To(gomega.HaveLen(1))
		}, seconds).Should(gomega.Succeed())
	}
	stays("1s")
	gomega.NewWithT(t).Expect(pool.Status.Conditions).To(gomega.BeEmpty())

	l.must(l.live.Delete(t.Context(), node))
	l.eventually("what is left behind is said", func(g gomega.Gomega) {
		g.Expect(l.live.Get(t.Context(), key, pool)).To(gomega.Succeed())
		condition := ready(pool.Status.Conditions)
		g.Expect(condition.Reason).To(gomega.Equal(v1alpha1.ReasonPoolNodeGone))
		g.Expect(condition.Message).To(gomega.And(gomega.ContainSubstring("node node-lost does not exist"),
			gomega.ContainSubstring("pool bench0 (guid 12345678901234567890)"),
			gomega.ContainSubstring("/dev/disk/by-id/nvme-LAB_A"),
			gomega.ContainSubstring("kubectl annotate benchmarkpool of-lost-node storagebench.dev/release-pool=node-lost")))
	})
	annotate := func(value string) {
		t.Helper()
		changed := pool.DeepCopy()
		changed.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: value}
		l.must(l.live.Patch(t.Context(), changed, client.MergeFrom(pool)))
	}
	annotate("node-other") // a typo
	stays("1s")
	annotate("node-lost")
	l.eventually("the pool is gone", func(g gomega.Gomega) {
		g.Expect(apierrors.IsNotFound(l.live.Get(t.Context(), key, pool))).To(gomega.BeTrue())
	})
}
