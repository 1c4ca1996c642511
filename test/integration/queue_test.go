package integration

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/naming"

	coordinationv1 "k8s.io/api/coordination/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/sim"
)

// queued waits until a benchmark has a place in the queue.
func (l *lab) queued(benchmark *v1alpha1.StorageBenchmark, position int32, holder *v1alpha1.StorageBenchmark) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("%s is number %d in line", benchmark.Name, position), func(g gomega.Gomega) {
		current := l.get(benchmark)
		g.Expect(current.Status.Queue).NotTo(gomega.BeNil())
		g.Expect(current.Status.Queue.Position).To(gomega.Equal(position))
		next := ""
		if position == 1 {
			next = holder.Namespace + "/" + holder.Name
		}
		g.Expect(current.Status.Queue.Holder).To(gomega.Equal(next))
		g.Expect(current.Status.State).To(gomega.Equal(fmt.Sprintf("Queued(%d)", position)))
		g.Expect(ready(current.Status.Conditions).Reason).To(gomega.Equal(v1alpha1.ReasonQueued))
		g.Expect(ready(current.Status.Conditions).Message).To(gomega.And(gomega.ContainSubstring(next), gomega.ContainSubstring(l.node)))
	})
}

// TestQueue queues benchmarks of two namespaces for one node.
func TestQueue(t *testing.T) {
	t.Parallel()
	l := start(t, inPhase("read", sim.Script{Hold: true}), "queue-other")
	other := func(benchmark *v1alpha1.StorageBenchmark) { benchmark.Namespace = "queue-other" }
	first := l.submit("first", small)
	l.running("read", 1)
	second := l.submit("second", small, other)
	l.queued(second, 1, first)
	third := l.submit("third", small)
	l.queued(third, 2, first)
	fourth := l.submit("fourth", small, other)
	l.queued(fourth, 3, first)

	// If one leaves the queue, the others move up.
	l.must(l.live.Delete(t.Context(), third))
	l.queued(fourth, 2, first)
	// The second starts when the first is over.
	l.cluster.Release(nil)
	l.finished(first, v1alpha1.VerdictPassed)
	l.running("read", 1)
	l.queued(fourth, 1, second)
	// The fourth starts when the second is deleted.
	l.must(l.live.Delete(t.Context(), second))
	l.eventually("the fourth runs", func(g gomega.Gomega) { g.Expect(l.get(fourth).Status.State).To(gomega.Equal("Running")) })
	l.running("read", 1)
	l.cluster.Release(nil)
	l.finished(fourth, v1alpha1.VerdictPassed)
	l.nothingLeft(heldKinds()...)

	var order []string
	for _, execution := range l.cluster.Executions() {
		order = append(order, execution.Run[:5])
	}
	g := gomega.NewWithT(t)
	g.Expect(order).To(gomega.Equal([]string{"first", "first", "secon", "secon", "fourt", "fourt"}))
	g.Expect(l.journal.mostAtOnce(l.node)).To(gomega.Equal(1), "pods on the node at the same time")
}

// TestAbandonedLease creates a Lease whose holder no longer exists.
func TestAbandonedLease(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	l.must(l.live.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: l.namespaces[0], Name: naming.LeaseName(l.node), Labels: map[string]string{v1alpha1.LabelNodeLease: "true"},
			Annotations: map[string]string{v1alpha1.AnnotationNode: l.node, v1alpha1.AnnotationHolder: l.namespaces[0] + "/vanished"},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("00000000-0000-0000-0000-000000000000")},
	}))
	l.finished(l.submit("bench", small), v1alpha1.VerdictPassed)
	l.nothingLeft(&coordinationv1.LeaseList{})
}

// TestLeaseStolen takes the node away in the middle of a phase: the numbers are worthless, the run is repeated.
func TestLeaseStolen(t *testing.T) {
	t.Parallel()
	l := start(t, firstAttempt(sim.Script{Hold: true}))
	benchmark := l.submit("bench", small)
	l.running("fill", 1)
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: l.namespaces[0], Name: naming.LeaseName(l.node)}
	l.must(l.live.Get(t.Context(), key, lease))
	lease.Spec.HolderIdentity = ptr.To("00000000-0000-0000-0000-000000000000")
	lease.Annotations[v1alpha1.AnnotationHolder] = l.namespaces[0] + "/thief"
	l.must(l.live.Update(t.Context(), lease))
	l.finished(benchmark, v1alpha1.VerdictPassed)
	l.endedAs(v1alpha1.ReasonLeaseLost, "thief")
}
