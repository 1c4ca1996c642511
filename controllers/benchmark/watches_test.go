package benchmark

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/line"
	"github.com/storagebench/storagebench/internal/experiment"
)

// notes records what is added to a work queue, and when it is due.
type notes struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	now, later []string
}

func (n *notes) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		if o.After > 0 {
			n.AddAfter(request, o.After)
			continue
		}
		n.now = append(n.now, fmt.Sprintf("%s at %d", request.Name, *o.Priority))
	}
}

func (n *notes) AddAfter(request reconcile.Request, after time.Duration) {
	n.later = append(n.later, fmt.Sprintf("%s in %s", request.Name, after))
}

// TestOnlyTheNextOneIsWokenAtOnce: if benchmarks move up in a queue, only the first one has something to do.
func TestOnlyTheNextOneIsWokenAtOnce(t *testing.T) {
	places := &notes{}
	r := &Reconciler{Line: line.New(experiment.Limits{}), places: places}
	for i := range 4 {
		r.Line.Put(EntryOf(waiting(i), r.Limits))
	}
	gone, limited := &notes{}, waiting(9)
	r.followBenchmarks().Delete(t.Context(), event.DeleteEvent{Object: waiting(0)}, gone)
	if want := []string{"b1 at 10"}; !slices.Equal(gone.now, want) {
		t.Errorf("after the first has left, %q are woken, want %q", gone.now, want)
	}
	if want := []string{"b2 in 5s", "b3 in 5s"}; !slices.Equal(places.later, want) || len(places.now)+len(gone.later) > 0 {
		t.Errorf("after the first has left, %q get a new place and %q are woken later, want %q only", places.later, gone.later, want)
	}
	limited.Status.Queue, limited.Status.Conditions = nil, []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNamespaceLimit}}
	r.Line.Put(EntryOf(limited, r.Limits))
	share := &notes{}
	r.followBenchmarks().Delete(t.Context(), event.DeleteEvent{Object: waiting(3)}, share)
	if want := []string{"b9 at 0"}; !slices.Equal(share.now, want) || len(share.later) > 0 {
		t.Errorf("after a share was given back, %q are woken, and %q later; want %q", share.now, share.later, want)
	}
}

// TestStorageTargetsWakeTheirNamespace: a StorageTarget wakes only benchmarks of its own namespace.
func TestStorageTargetsWakeTheirNamespace(t *testing.T) {
	r := &Reconciler{Line: line.New(experiment.Limits{})}
	for i, namespace := range []string{"a", "b", "a"} {
		benchmark := waiting(i)
		benchmark.Namespace = namespace
		benchmark.Status.Queue = nil
		benchmark.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonTargetNotFound}}
		r.Line.Put(EntryOf(benchmark, r.Limits))
	}
	find := r.waitingFor(v1alpha1.ReasonTargetNotFound, v1alpha1.ReasonTargetChanged)
	for namespace, want := range map[string]int{"a": 2, "b": 1, "c": 0, "": 3} {
		found := find(&v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "disks"}})
		if len(found) != want {
			t.Errorf("an object in namespace %q wakes %v, want %d", namespace, found, want)
		}
	}
}

// TestNodesWakeTheirQueue: a benchmark that waits for a node changes to another one when the node is not usable for minutes, or is deleted.
// It has no turn when a node becomes usable again.
func TestNodesWakeTheirQueue(t *testing.T) {
	r := &Reconciler{Line: line.New(experiment.Limits{})}
	for i, node := range []string{"n1", "n2", "n1"} {
		benchmark := waiting(i)
		benchmark.Status.NodeName, benchmark.Status.NodeNames = node, []string{node}
		r.Line.Put(EntryOf(benchmark, r.Limits))
	}
	node := func(change func(*corev1.Node)) *corev1.Node {
		made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zfs": "yes"}},
			Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		change(made)
		return made
	}
	usable := node(func(n *corev1.Node) { n.ResourceVersion = "1" })
	for name, change := range map[string]func(*corev1.Node){
		"off":                 func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		"cordoned":            func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"labels":              func(n *corev1.Node) { n.Labels = nil },
		"dedicated to others": func(n *corev1.Node) { n.Spec.Taints[0].Value = "b" },
		"tainted": func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule})
		},
	} {
		worse, queue := node(change), &notes{}
		r.followNodes().Update(t.Context(), event.UpdateEvent{ObjectOld: usable, ObjectNew: worse}, queue)
		if want := []string{"b0 in 5m0s", "b2 in 5m0s"}; !slices.Equal(queue.later, want) || len(queue.now) > 0 {
			t.Errorf("%s wakes %v and %v, want %v", name, queue.now, queue.later, want)
		}
		queue = &notes{}
		r.followNodes().Update(t.Context(), event.UpdateEvent{ObjectOld: worse, ObjectNew: usable}, queue)
		if name != "labels" && name != "dedicated to others" && len(queue.now)+len(queue.later) != 0 {
			t.Errorf("the end of %s wakes %v and %v", name, queue.now, queue.later)
		}
	}
	queue := &notes{}
	r.followNodes().Delete(t.Context(), event.DeleteEvent{Object: usable}, queue)
	if len(queue.now)+len(queue.later) != 2 {
		t.Errorf("the deletion wakes %v and %v", queue.now, queue.later)
	}
}

func waiting(i int) *v1alpha1.StorageBenchmark {
	return &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("b", i), UID: types.UID(fmt.Sprint("u", i))},
		Status: v1alpha1.StorageBenchmarkStatus{NodeName: "n1", Queue: &v1alpha1.QueueStatus{Turn: int64(i), Since: metav1.NewMicroTime(noon)},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonQueued}}}}
}
