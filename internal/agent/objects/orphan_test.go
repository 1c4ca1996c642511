package objects

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestOrphans: without an agent, an object is released only if it is deleted, and either retains its pool or was released by a user for
// exactly this node.
func TestOrphans(t *testing.T) {
	deleted := func(meta *metav1.ObjectMeta) {
		meta.DeletionTimestamp, meta.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.FinalizerTeardown}
	}
	released := func(node string) func(*metav1.ObjectMeta) {
		return func(meta *metav1.ObjectMeta) {
			deleted(meta)
			meta.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: node}
		}
	}
	pool := func(policy v1alpha1.DeletionPolicy, change func(*metav1.ObjectMeta)) Orphan {
		object := v1alpha1.BenchmarkPool{Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "node-a", DeletionPolicy: policy}}
		change(&object.ObjectMeta)
		return OrphanedPool(&object)
	}
	operation := func(outcome string, change func(*metav1.ObjectMeta)) Orphan {
		object := v1alpha1.PoolOperation{Spec: v1alpha1.PoolOperationSpec{NodeName: "node-a"}}
		object.Status.Outcome = outcome
		change(&object.ObjectMeta)
		return OrphanedOperation(&object)
	}
	none := func(*metav1.ObjectMeta) {}
	onlyReleased := func(meta *metav1.ObjectMeta) {
		meta.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: "node-a"}
	}
	for _, test := range []struct {
		name   string
		orphan Orphan
		letGo  bool
		want   []string
	}{
		{"pool in use", pool(v1alpha1.DeletionDestroy, none), false, []string{"why"}},
		{"pool in use, released too early", pool(v1alpha1.DeletionDestroy, onlyReleased), false, []string{"why"}},
		{"pool to destroy", pool(v1alpha1.DeletionDestroy, deleted), false, []string{"why: ", "on node node-a", "Bring the node back, or release it"}},
		{"pool released", pool(v1alpha1.DeletionDestroy, released("node-a")), true, nil},
		{"pool released for another node", pool(v1alpha1.DeletionDestroy, released("node-b")), false, []string{"Bring the node back"}},
		{"pool to retain", pool(v1alpha1.DeletionRetain, deleted), true, nil},
		{"pool to retain, in use", pool(v1alpha1.DeletionRetain, none), false, []string{"why"}},
		{"operation in progress", operation("", none), false, []string{"why"}},
		{"operation that has ended", operation(v1alpha1.OutcomeSucceeded, none), false, nil},
		{"operation deleted", operation("", deleted), false, []string{"why: ", "Bring the node back, or release it as it is"}},
		{"operation released", operation("", released("node-a")), true, nil},
		{"operation released for another node", operation("", released("node-b")), false, []string{"Bring the node back"}},
	} {
		letGo, report := test.orphan.Decide("why")
		if letGo != test.letGo || (report == "") != (len(test.want) == 0) {
			t.Errorf("%s: %v, %q", test.name, letGo, report)
		}
		for _, want := range test.want {
			if !strings.Contains(report, want) {
				t.Errorf("%s: %q lacks %q", test.name, report, want)
			}
		}
		if test.orphan.Node != "node-a" || test.orphan.Left == "" || !strings.Contains(test.orphan.Release, "kubectl annotate") {
			t.Errorf("%s: %+v", test.name, test.orphan)
		}
	}
}

func TestWithoutAgent(t *testing.T) {
	node := func(label string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelLabNode: label}}}
	}
	for want, node := range map[string]*corev1.Node{
		"": node("true"), "node node-a does not exist": nil,
		"node node-a has no agent: kubectl label node node-a " + v1alpha1.LabelLabNode + "=true": node("false"),
	} {
		if got := WithoutAgent("node-a", node); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
