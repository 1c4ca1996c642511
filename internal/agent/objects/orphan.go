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
	// Deleted says that the object is deleted and waits for the removal of its finalizer. LetsGo says that the removal needs no agent,
	// because the pool stays behind or a user has released the object. Ended says that the object needs no more work.
	Deleted, LetsGo, Ended bool
	// Left describes what may be left behind, and where. Release is the command by which a user accepts that.
	Left, Release string
}

// OrphanedPool returns the description of a BenchmarkPool.
func OrphanedPool(pool *v1alpha1.BenchmarkPool) Orphan {
	left := LeftBehind(pool)
	if LetsGo(pool) {
		left = StaysBehind(pool, pool.Status.GUID)
	}
	if Released(pool) { // only an agent can record it on the node
		left += ". If the node comes back, " + Disown(pool)
	}
	return Orphan{Node: pool.Spec.NodeName, Deleted: finalizing(pool), LetsGo: LetsGo(pool), Left: left, Release: ReleaseCommand(pool)}
}

// OrphanedOperation returns the description of a PoolOperation.
func OrphanedOperation(operation *v1alpha1.PoolOperation) Orphan {
	return Orphan{Node: operation.Spec.NodeName, Deleted: finalizing(operation), LetsGo: OperationReleased(operation),
		Ended: operation.Status.Outcome != "", Left: OperationLeftBehind(operation), Release: OperationReleaseCommand(operation)}
}

func finalizing(object metav1.Object) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), v1alpha1.FinalizerTeardown)
}

// Decide returns whether to remove the finalizer without an agent, and otherwise what to report, or "" if there is nothing to report. why
// is the reason why the node has no agent.
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

// WithoutAgent returns the reason why no agent runs on a node, or "" if one may run. A nil node means that the node does not exist.
func WithoutAgent(name string, node *corev1.Node) string {
	switch {
	case node == nil:
		return fmt.Sprintf("node %s does not exist", name)
	case !HasAgent(node):
		return fmt.Sprintf("node %s has no agent: kubectl label node %s %s=true", name, name, v1alpha1.LabelLabNode)
	}
	return ""
}
