package operation

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/agent/pools"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	clocktesting "k8s.io/utils/clock/testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/zfs"
)

// world is an agent on a node, and an API server.
type world struct {
	t      *testing.T
	node   *fakeNode
	client client.Client
	agent  *Reconciler
	lives  int
	writes int
	// resets says that the node goes down with the agent.
	resets bool
}

func readyPool(name string) *v1alpha1.BenchmarkPool {
	pool := &v1alpha1.BenchmarkPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "node-a", PoolTemplate: v1alpha1.PoolTemplate{Ashift: 12,
			Vdevs: []v1alpha1.Vdev{{Type: "mirror", Devices: []v1alpha1.DevicePath{diskA, diskB}}}}},
	}
	if name == "bench1" {
		pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{diskC}}}
	}
	kstatus.SetReady(&pool.Status.Conditions, 1, v1alpha1.ReasonPoolReady, "ready")
	return pool
}

func wanted(name string, action v1alpha1.PoolAction) *v1alpha1.PoolOperation {
	return &v1alpha1.PoolOperation{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("12345678-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Unix(1_800_000_000, 0))},
		Spec: v1alpha1.PoolOperationSpec{NodeName: "node-a", Pool: "bench0", Action: action},
	}
}

func newScheme(t *testing.T) *k8sruntime.Scheme {
	t.Helper()
	scheme := k8sruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := newScheme(t)
	w := &world{t: t, node: newNode(t)}
	objects = append(objects, readyPool("bench0"), readyPool("bench1"))
	written := func(err error) error {
		if err != nil {
			return err
		}
		w.writes++
		if !w.node.event() {
			return errDied
		}
		return nil
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.BenchmarkPool{},
		&v1alpha1.PoolOperation{}).WithObjects(objects...).
		WithIndex(&v1alpha1.BenchmarkPool{}, v1alpha1.FieldNodeName, func(object client.Object) []string {
			return []string{object.(*v1alpha1.BenchmarkPool).Spec.NodeName}
		}).
		WithIndex(&v1alpha1.PoolOperation{}, v1alpha1.FieldNodeName, func(object client.Object) []string {
			return []string{object.(*v1alpha1.PoolOperation).Spec.NodeName}
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object,
				options ...client.SubResourceUpdateOption) error {
				if w.node.isDead() {
					return errDied
				}
				return written(c.SubResource(name).Update(ctx, object, options...))
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if w.node.isDead() {
					return errDied
				}
				return written(c.Patch(ctx, object, patch, options...))
			},
		}).Build()
	w.start()
	return w
}

// start starts a new agent process, which remembers nothing.
func (w *world) start() {
	if w.agent != nil {
		w.agent.jobs.stopAll()
	}
	w.node.mutex.Lock()
	w.node.dead = false
	w.node.mutex.Unlock()
	w.lives++
	w.agent = &Reconciler{Client: w.client, Live: w.client, Recorder: events.NewFakeRecorder(1000), NodeName: "node-a",
		Agent:      fmt.Sprint("life-", w.lives),
		Policy:     pools.DevicePolicy{{Pattern: "/dev/disk/by-id/*"}},
		Parameters: operations.ParameterAllowlist{{Name: "zfs_txg_timeout", Values: []operations.ParameterValues{{Min: 1, Max: 60}}}},
		ZFS:        zfs.New(w.node), Disks: w.node,
		Root: w.node.root, Turns: &guard.Turns{}, Attempts: &guard.Attempts{Root: w.node.root}, Clock: sampleClock{w.node.clock, w.node}}
}

// sampleClock is the node's clock. It tells the node when the time of a sample was taken: until then, time must not pass.
type sampleClock struct {
	*clocktesting.FakeClock
	node *fakeNode
}

func (c sampleClock) Since(before time.Time) time.Duration {
	spent := c.FakeClock.Since(before)
	c.node.mutex.Lock()
	defer c.node.mutex.Unlock()
	c.node.sampled = c.Now()
	return spent
}

// turn reconciles once.
func (w *world) turn(name string) (ctrl.Result, error) {
	w.t.Helper()
	return w.agent.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
}

func (w *world) get(name string) *v1alpha1.PoolOperation {
	w.t.Helper()
	var operation v1alpha1.PoolOperation
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Name: name}, &operation); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	return &operation
}

// settle reconciles, lets time pass, and restarts the agent when it has died, until the operation has ended and its finalizer is removed.
func (w *world) settle(name string) *v1alpha1.PoolOperation {
	w.t.Helper()
	for range 400 {
		if w.node.isDead() {
			if w.resets {
				w.node.reset(w.t)
			}
			w.start()
		}
		w.node.poolController()
		result, err := w.turn(name)
		w.rest(name)
		operation := w.get(name)
		if operation == nil || err == nil && operation.Status.Outcome != "" && len(operation.Finalizers) == 0 && !w.node.isDead() &&
			result.RequeueAfter == 0 {
			return operation
		}
		w.node.clock.Step(time.Second)
	}
	w.t.Fatalf("operation %s does not end: %+v\n%s", name, w.get(name), strings.Join(w.node.commands, "\n"))
	return nil
}

// rest waits until the job of the operation has ended, or waits for the clock.
func (w *world) rest(name string) {
	w.t.Helper()
	operation := w.get(name)
	if operation == nil {
		return
	}
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		job := w.agent.jobs.look(operation.UID)
		if job == nil || !job.Running || operation.Spec.Action.Observe != nil && w.sampled() ||
			operation.Spec.Action.OfflineDevice != nil && w.node.clock.HasWaiters() {
			return
		}
		runtime.Gosched()
	}
	w.t.Fatal("the job does not end")
}

// sampled reports whether an observation has taken the sample of this moment.
func (w *world) sampled() bool {
	w.node.mutex.Lock()
	defer w.node.mutex.Unlock()
	return w.node.sampled.Equal(w.node.clock.Now())
}

func expect(t *testing.T, operation *v1alpha1.PoolOperation, outcome, reason string) {
	t.Helper()
	if operation == nil {
		t.Fatal("the object is gone")
	}
	ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
	if operation.Status.Outcome != outcome || ready == nil || ready.Reason != reason {
		t.Fatalf("outcome %q with %+v, want %s and %s", operation.Status.Outcome, ready, outcome, reason)
	}
	if outcome != "" && (!meta.IsStatusConditionTrue(operation.Status.Conditions, v1alpha1.ConditionComplete) ||
		operation.Status.FinishedAt == nil) {
		t.Fatalf("ended, but the status is %+v", operation.Status)
	}
}

func metricOf(operation *v1alpha1.PoolOperation, name string) int64 {
	for _, metric := range operation.Status.Metrics {
		if metric.Name == name {
			return metric.Value
		}
	}
	return -1
}

func cancel(t *testing.T, w *world, name string) {
	t.Helper()
	operation := w.get(name)
	operation.Spec.Cancel = true
	operation.Generation++
	if err := w.client.Update(t.Context(), operation); err != nil {
		t.Fatal(err)
	}
}

func seconds(count int) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Duration(count) * time.Second}}
}

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

func planned(state operations.State) operations.Decision { return operations.Plan(state) }
