package objects

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Orphan describes an object whose node has no agent. Only agents finalize it.
type Orphan struct {
	Node string
	// Deleted says that the object waits for its finalizer. LetsGo says that it needs no agent for that, because its pool stays behind or a
	// user has released it. Ended says that it needs no more work.
	Deleted, LetsGo, Ended bool
	// Left describes what may be left behind, and where. Release is the command that accepts that.
	Left, Release string
}

// OrphanedPool describes a BenchmarkPool.
func OrphanedPool(pool *v1alpha1.BenchmarkPool) Orphan {
	left := LeftBehind(pool)
	if LetsGo(pool) {
		left = StaysBehind(pool, pool.Status.GUID)
	}
	return Orphan{Node: pool.Spec.NodeName, Deleted: finalizing(pool), LetsGo: LetsGo(pool), Left: left, Release: ReleaseCommand(pool)}
}

// OrphanedOperation describes a PoolOperation.
func OrphanedOperation(operation *v1alpha1.PoolOperation) Orphan {
	return Orphan{Node: operation.Spec.NodeName, Deleted: finalizing(operation), LetsGo: OperationReleased(operation),
		Ended: operation.Status.Outcome != "", Left: OperationLeftBehind(operation), Release: OperationReleaseCommand(operation)}
}

func finalizing(object metav1.Object) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), v1alpha1.FinalizerTeardown)
}

// Decide reports whether to remove the finalizer without an agent, and otherwise what to report. The report is empty if there is nothing to
// report. why is the reason why the node has no agent.
func (o Orphan) Decide(why string) (letGo bool, report string) {
	switch {
	case o.Deleted && o.LetsGo:
		return true, ""
	case o.Deleted:
		return false, why + ": " + o.Left + ". Bring the node back, or " + o.Release
	case o.Ended:
		return false, ""
	}
	return false, why
}

// HasAgent reports whether an agent may run on a node.
func HasAgent(node metav1.Object) bool { return node.GetLabels()[v1alpha1.LabelLabNode] == "true" }

// WithoutAgent is the reason why no agent runs on a node. Empty if one may run. A nil node does not exist.
func WithoutAgent(name string, node *corev1.Node) string {
	switch {
	case node == nil:
		return fmt.Sprintf("node %s does not exist", name)
	case !HasAgent(node):
		return fmt.Sprintf("node %s has no agent: kubectl label node %s %s=true", name, name, v1alpha1.LabelLabNode)
	}
	return ""
}
