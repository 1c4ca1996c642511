package integration

import (
	"testing"

	"github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/sim"
)

// TestDelete deletes a benchmark in the middle of each phase and after its end; nothing is left.
func TestDelete(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		for _, phase := range []string{"fill", "read", ""} {
			t.Run(string(policy)+"-"+phase, func(t *testing.T) {
				t.Parallel()
				l := start(t, inPhase(phase, sim.Script{Hold: true}))
				benchmark := l.submit("bench", small)
				if phase == "" {
					l.finished(benchmark, v1alpha1.VerdictPassed)
				} else {
					l.running(phase, 1)
				}
				l.must(l.live.Delete(t.Context(), benchmark, client.PropagationPolicy(policy)))
				l.nothingLeft(everyKind()...)
			})
		}
	}
}

// TestDeleteWithAnOrphan deletes a benchmark that no longer owns its run, as after 'kubectl delete --cascade=orphan': the run is deleted
// too.
func TestDeleteWithAnOrphan(t *testing.T) {
	t.Parallel()
	l := start(t, inPhase("read", sim.Script{Hold: true}))
	benchmark := l.submit("bench", small)
	l.running("read", 1)
	l.eventually("the run is orphaned", func(g gomega.Gomega) {
		run := l.runs()[0]
		before := run.DeepCopy()
		run.OwnerReferences = nil
		g.Expect(l.live.Patch(t.Context(), &run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(gomega.Succeed())
	})
	l.must(l.live.Delete(t.Context(), benchmark))
	l.nothingLeft(everyKind()...)
}

// TestDeleteInTeardown deletes a benchmark during the teardown of its run: a finalizer keeps the run's volume.
func TestDeleteInTeardown(t *testing.T) {
	t.Parallel()
	l := start(t, inPhase("read", sim.Script{Hold: true}))
	benchmark := l.submit("bench", small)
	l.running("read", 1)
	var claim corev1.PersistentVolumeClaim
	l.must(l.live.Get(t.Context(), client.ObjectKey{Namespace: l.namespaces[0], Name: l.runs()[0].Name}, &claim))
	l.changeFinalizers(&claim, append(claim.Finalizers, "test.example/slow"))
	l.cluster.Release(nil)
	l.eventually("the volume is being deleted", func(g gomega.Gomega) {
		l.must(l.live.Get(t.Context(), client.ObjectKeyFromObject(&claim), &claim))
		g.Expect(claim.DeletionTimestamp).NotTo(gomega.BeNil())
	})
	l.must(l.live.Delete(t.Context(), benchmark))
	l.waits(benchmark, v1alpha1.ReasonCleaningUp, "1 run to be")
	gomega.NewWithT(t).Expect(l.left(everyKind()...)).To(gomega.ContainElement(gomega.ContainSubstring("Lease")),
		"the node is kept until the volume is gone")
	l.must(l.live.Get(t.Context(), client.ObjectKeyFromObject(&claim), &claim))
	l.changeFinalizers(&claim, nil)
	l.nothingLeft(everyKind()...)
}

func (l *lab) changeFinalizers(object client.Object, finalizers []string) {
	l.t.Helper()
	before := object.DeepCopyObject().(client.Object)
	object.SetFinalizers(finalizers)
	l.must(l.live.Patch(l.t.Context(), object, client.MergeFrom(before)))
}

// TestRunDeletedByHand deletes a running run: it is recreated and starts from the beginning.
func TestRunDeletedByHand(t *testing.T) {
	t.Parallel()
	l := start(t, inPhase("read", sim.Script{Hold: true}))
	benchmark := l.submit("bench", small)
	l.running("read", 1)
	run := l.runs()[0]
	l.must(l.live.Delete(t.Context(), &run))
	l.eventually("another run", func(g gomega.Gomega) {
		runs := l.runs()
		g.Expect(runs).To(gomega.HaveLen(1))
		g.Expect(runs[0].UID).NotTo(gomega.Equal(run.UID))
	})
	l.running("read", 1)
	l.cluster.Release(nil)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	l.executedOnce(4)
}

// TestJobDeletedByHand deletes the Job of a running phase: the API server confirms that it is gone, and the run is repeated.
func TestJobDeletedByHand(t *testing.T) {
	t.Parallel()
	l := start(t, inPhase("read", sim.Script{Hold: true}))
	benchmark := l.submit("bench", small)
	l.running("read", 1)
	lost := l.runs()[0]
	l.must(l.live.DeleteAllOf(t.Context(), &batchv1.Job{}, client.InNamespace(lost.Namespace),
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	l.eventually("the run ends, and another begins", func(g gomega.Gomega) {
		g.Expect(l.runs()).To(gomega.HaveLen(2))
		g.Expect(l.live.Get(t.Context(), client.ObjectKeyFromObject(&lost), &lost)).To(gomega.Succeed())
		g.Expect(lost.Status.Conditions).To(gomega.ContainElement(gomega.HaveField("Reason", v1alpha1.ReasonExecutorLost)))
	})
	l.running("read", 1)
	l.cluster.Release(nil)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	l.nothingLeft(workloadKinds()...)
}

// TestDeleteKeepsWhatOthersOwn: deleting a benchmark does not delete objects that it only refers to, nor other benchmarks.
func TestDeleteKeepsWhatOthersOwn(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	g := gomega.NewWithT(t)
	target := l.storageTarget("fast", "64Mi")
	baseline := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespaces[0], Name: "bench-baseline"}}
	l.must(l.live.Create(t.Context(), baseline))
	other := l.submit("bench2", small)
	l.finished(other, v1alpha1.VerdictPassed)
	kept := l.left(everyKind()...)
	benchmark := l.submit("bench", onFast, func(benchmark *v1alpha1.StorageBenchmark) {
		benchmark.Spec.Baseline = &v1alpha1.Baseline{ConfigMap: v1alpha1.ConfigMapName{Name: baseline.Name}}
		benchmark.Spec.Retain = v1alpha1.RetainAlways
	})
	l.finished(benchmark, v1alpha1.VerdictPassed)
	g.Expect(len(l.left(everyKind()...))).To(gomega.BeNumerically(">", len(kept)+2), "there is something to delete")
	l.must(l.live.Delete(t.Context(), benchmark))
	l.eventually("only what others own is left", func(g gomega.Gomega) {
		g.Expect(l.left(everyKind()...)).To(gomega.ConsistOf(kept))
	})
	g.Expect(l.live.Get(t.Context(), client.ObjectKeyFromObject(target), target)).To(gomega.Succeed())
}
