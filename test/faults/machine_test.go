package faults

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers"
	"github.com/storagebench/storagebench/controllers/benchmark"
	"github.com/storagebench/storagebench/controllers/fresh"
	"github.com/storagebench/storagebench/controllers/run"
	planner "github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/test/sim"
)

// crash is the value with which a manager panics.
type crash struct{ write string }

// moment says when a manager dies: before or after its nth write; never if n is 0.
type moment struct {
	n      int64
	before bool
}

func (m moment) String() string {
	if m.before {
		return fmt.Sprintf("before write %d", m.n)
	}
	return fmt.Sprintf("after write %d", m.n)
}

// machine is one namespace with one node, a simulated cluster and a manager that can die.
type machine struct {
	namespace, node string
	config          *rest.Config
	live            client.WithWatch
	cluster         *sim.Cluster
	agents          sim.Agents
	experiment      experiment
	writes          atomic.Int64
	// journal lists the writes, for sample and for error messages.
	journal []string
	// deleted is set once something was deleted: before that there is no garbage.
	deleted bool
	// deleting is set while the experiment is deleted: then the simulated garbage collector touches everything.
	deleting bool
	// died is the write at which the manager died.
	died string
}

// ahead is how far the clock of the manager is ahead of the node's clock: an operation that begins some time after its pod then begins at
// once.
const ahead = 10 * time.Second

func newMachine(ctx context.Context, config *rest.Config, name string, tried experiment) (*machine, error) {
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	live, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	m := &machine{namespace: name, node: "node-" + name, config: config, live: live, experiment: tried}
	m.agents = sim.Agents{Client: live, Nodes: []string{m.node}}
	if err := live.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return nil, err
	}
	m.cluster, err = sim.New(config, sim.Options{Namespaces: []string{name}, Nodes: []string{m.node},
		Collects: func() bool { return m.deleted }, Now: func() time.Time { return time.Now().Add(-ahead) }})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(m.cluster.CreateNodes(ctx), m.cluster.CreateStorageClass(ctx, "faults", false)); err != nil {
		return nil, err
	}
	agent := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"`+v1alpha1.LabelLabNode+`": "true"}}}`))
	return m, live.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node}}, agent)
}

// manager is one life of the manager: its clients and reconcilers.
type manager struct {
	view       *view
	benchmarks *benchmark.Reconciler
	runs       *run.Reconciler
	// seen is what the watches showed when an object was last reconciled.
	seen map[string]string
}

// The kinds whose changes wake each reconciler, as registered in SetupWithManager. The integration tests find a watch that is missing
// there; an unneeded one here would hide it.
var (
	benchmarkWatches = []reflect.Type{
		reflect.TypeFor[*v1alpha1.StorageBenchmarkList](), reflect.TypeFor[*v1alpha1.BenchmarkRunList](),
		reflect.TypeFor[*corev1.ConfigMapList](), reflect.TypeFor[*coordinationv1.LeaseList](),
		reflect.TypeFor[*v1alpha1.BenchmarkPoolList](),
	}
	runWatches = []reflect.Type{
		reflect.TypeFor[*v1alpha1.BenchmarkRunList](), reflect.TypeFor[*batchv1.JobList](), reflect.TypeFor[*corev1.PodList](),
		reflect.TypeFor[*corev1.PersistentVolumeClaimList](), reflect.TypeFor[*corev1.ConfigMapList](),
		reflect.TypeFor[*corev1.EventList](), reflect.TypeFor[*coordinationv1.LeaseList](),
		reflect.TypeFor[*corev1.PersistentVolumeList](), reflect.TypeFor[*v1alpha1.BenchmarkPoolList](),
		reflect.TypeFor[*v1alpha1.PoolOperationList](),
	}
)

// wake reconciles an object if a watch has shown something new since the last time. It reports whether a queue would retry by itself.
func (m *manager) wake(ctx context.Context, object client.Object, watches []reflect.Type,
	reconciler reconcile.Reconciler) (again bool, err error) {
	key := fmt.Sprintf("%T %s", object, object.GetUID())
	shown := m.view.shown(watches)
	if m.seen[key] == shown {
		return false, nil
	}
	result, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	if err == nil && (result.RequeueAfter == 0 || result.RequeueAfter > time.Minute) {
		m.seen[key] = shown
		return false, nil
	}
	return true, unexpected(err)
}

func (m *machine) startManager(when moment, lag int, seed uint64) (*manager, error) {
	clients, err := kubernetes.NewForConfig(m.config)
	if err != nil {
		return nil, err
	}
	v := newView(m.live, m.namespace, m.node, lag, seed)
	writer := m.watchWrites(when, v)
	recorder := &events.FakeRecorder{}
	timings := runs.DefaultTimings()
	memory, stored := &fresh.Memory[*v1alpha1.BenchmarkRun]{}, &fresh.Stored{}
	return &manager{
		view: v, seen: map[string]string{},
		benchmarks: &benchmark.Reconciler{Client: writer, Live: m.live, Documents: stored.Reader(writer, m.live), Recorder: recorder,
			Clock: clock.RealClock{}, LeaseNamespace: m.namespace, Images: planner.Images{Runner: "runner:test"},
			Runs: memory},
		runs: &run.Reconciler{Memory: memory, Stored: stored, Client: writer, Live: m.live, Recorder: recorder,
			Logs: controllers.PodLogs{Clients: clients.CoreV1()}, Clock: clock.RealClock{}, LeaseNamespace: m.namespace, Timings: timings},
	}, nil
}

// watchWrites returns a client that reads from a view, counts its writes and dies at the given moment.
func (m *machine) watchWrites(when moment, v *view) client.Client {
	write := func(verb string, object client.Object, do func() error) error {
		n := m.writes.Add(1)
		what := fmt.Sprintf("%s %T %s", verb, object, object.GetName())
		m.journal = append(m.journal, what)
		m.deleted = m.deleted || verb == "delete"
		if n == when.n && when.before {
			panic(crash{what})
		}
		err := do()
		v.touch(listTypes[reflect.TypeOf(object)])
		if n == when.n {
			panic(crash{what})
		}
		return err
	}
	return interceptor.NewClient(m.live, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return v.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return v.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			var settings client.CreateOptions
			settings.ApplyOptions(options)
			if len(settings.DryRun) > 0 {
				return c.Create(ctx, object, options...)
			}
			return write("create", object, func() error { return c.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return write("update", object, func() error { return c.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return write("patch", object, func() error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return write("delete", object, func() error { return c.Delete(ctx, object, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, subresource string, object client.Object,
			options ...client.SubResourceUpdateOption) error {
			return write("update "+subresource+" of", object, func() error { return c.SubResource(subresource).Update(ctx, object, options...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteAllOfOption) error {
			return write("delete", object, func() error { return c.DeleteAllOf(ctx, object, options...) })
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return errors.New("Apply is not counted by this harness: teach it")
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("a patch of a subresource is not counted by this harness: teach it")
		},
	})
}

// pass reconciles everything once and reports whether anything was written. It ignores conflicts and similar errors, which a work queue
// would retry.
func (m *machine) pass(ctx context.Context, manager *manager) (busy bool, err error) {
	defer func() {
		if died := recover(); died != nil {
			at, ours := died.(crash)
			if !ours {
				panic(died)
			}
			m.died = at.write
			err = errCrashed
		}
	}()
	behind, err := manager.view.refresh(ctx)
	if err != nil {
		return false, err
	}
	manager.benchmarks.Line = manager.view.line()
	before := m.writes.Load()
	retried := false
	for _, object := range manager.view.newest(reflect.TypeFor[*v1alpha1.StorageBenchmarkList]()) {
		again, err := manager.wake(ctx, object, benchmarkWatches, manager.benchmarks)
		if err != nil {
			return false, err
		}
		retried = retried || again
	}
	for _, object := range manager.view.newest(reflect.TypeFor[*v1alpha1.BenchmarkRunList]()) {
		again, err := manager.wake(ctx, object, runWatches, manager.runs)
		if err != nil {
			return false, err
		}
		retried = retried || again
	}
	return behind || retried || m.writes.Load() != before, nil
}

var errCrashed = errors.New("the manager has crashed")

// unexpected returns nil for errors that a queue would simply retry: conflicts, and the effects of a stale cache.
func unexpected(err error) error {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// drive runs managers, one after another as they die, until nothing happens any more.
func (m *machine) drive(t *testing.T, when moment, lag int) {
	t.Helper()
	ctx := t.Context()
	manager, err := m.startManager(when, lag, uint64(when.n))
	if err != nil {
		t.Fatal(err)
	}
	for round := 0; ; round++ {
		if round > 400 {
			t.Fatalf("%s: nothing comes to an end after %d rounds; last writes: %q", when, round, m.journal[max(0, len(m.journal)-20):])
		}
		busy, err := m.pass(ctx, manager)
		if errors.Is(err, errCrashed) {
			if manager, err = m.startManager(moment{}, lag, uint64(when.n)+1000); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if busy && lag == 0 {
			continue // the manager first, as long as it finds something to do by itself
		}
		changed := false
		if lag > 0 { // one thing at a time, so that the caches see every state
			changed, err = m.step(ctx)
		} else {
			changed, err = m.settle(ctx)
		}
		if err != nil {
			t.Fatalf("%s: the simulated cluster: %v", when, err)
		}
		if changed && !m.deleting {
			manager.view.touch(playedKinds...)
		} else if changed {
			manager.view.touch()
		}
		if !busy && !changed {
			return
		}
	}
}

// playedKinds are the kinds that the simulated cluster writes.
var playedKinds = []reflect.Type{
	reflect.TypeFor[*batchv1.JobList](), reflect.TypeFor[*corev1.PodList](),
	reflect.TypeFor[*corev1.PersistentVolumeClaimList](), reflect.TypeFor[*corev1.EventList](),
	reflect.TypeFor[*corev1.PersistentVolumeList](), reflect.TypeFor[*v1alpha1.BenchmarkPoolList](),
	reflect.TypeFor[*v1alpha1.PoolOperationList](),
}

// step lets the cluster and the agent do one thing.
func (m *machine) step(ctx context.Context) (changed bool, err error) {
	if changed, err = m.cluster.Step(ctx); changed || err != nil {
		return changed, err
	}
	if changed, err = m.agents.Step(ctx); changed || err != nil {
		return changed, err
	}
	return m.showEnds(ctx)
}

// showEnds plays the kubelet, which shows a pod that the operation next to it has ended.
func (m *machine) showEnds(ctx context.Context) (shown bool, err error) {
	for _, pod := range m.cluster.Executions() {
		if pod.Ended {
			continue
		}
		key := client.ObjectKey{Namespace: m.namespace, Name: naming.PhaseEndName(pod.Run, v1alpha1.PhaseName(pod.Phase))}
		if err := m.live.Get(ctx, key, &corev1.ConfigMap{}); err == nil {
			same := func(other sim.Execution) bool { return other.PodUID == pod.PodUID }
			shown = m.cluster.Release(same) > 0 || shown
		} else if !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	return shown, nil
}

func (m *machine) settle(ctx context.Context) (changed bool, err error) {
	for {
		more, err := m.step(ctx)
		if err != nil || !more {
			return changed, err
		}
		changed = true
	}
}
