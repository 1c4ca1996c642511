package pool

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/zfs"
)

const diskA, diskB, diskC, diskD = "/dev/disk/by-id/a", "/dev/disk/by-id/b", "/dev/disk/by-id/c", "/dev/disk/by-id/d"

// world is an agent on a node, and an API server.
type world struct {
	t      *testing.T
	node   *fakeNode
	client client.Client
	agent  *Reconciler
	events chan string
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, node: newNode(t)}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.BenchmarkPool{}).WithObjects(objects...).
		WithIndex(&v1alpha1.BenchmarkPool{}, v1alpha1.FieldNodeName, func(object client.Object) []string {
			return []string{object.(*v1alpha1.BenchmarkPool).Spec.NodeName}
		}).
		WithIndex(&v1alpha1.PoolOperation{}, v1alpha1.FieldNodeName, func(object client.Object) []string {
			return []string{object.(*v1alpha1.PoolOperation).Spec.NodeName}
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object,
				options ...client.SubResourceUpdateOption) error {
				if w.node.dead {
					return errors.New("the dead write no status")
				}
				return c.SubResource(name).Update(ctx, object, options...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if w.node.dead {
					return errors.New("the dead write nothing")
				}
				return c.Patch(ctx, object, patch, options...)
			},
		}).Build()
	recorder := events.NewFakeRecorder(1000)
	w.events = recorder.Events
	w.agent = &Reconciler{Client: w.client, Live: w.client, Recorder: recorder, NodeName: "node-a",
		Policy: pools.DevicePolicy{{Pattern: "/dev/disk/by-id/*"}}, ZFS: zfs.New(w.node), Disks: w.node, Turns: &guard.Turns{},
		Attempts: &guard.Attempts{Root: w.node.root}, Releases: &guard.Releases{Root: w.node.root}}
	return w
}

func wanted(name string) *v1alpha1.BenchmarkPool {
	return &v1alpha1.BenchmarkPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Unix(1000, 0))},
		Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "node-a", DeletionPolicy: v1alpha1.DeletionDestroy,
			PoolTemplate: v1alpha1.PoolTemplate{Ashift: 12,
				Vdevs:          []v1alpha1.Vdev{{Type: "mirror", Devices: []v1alpha1.DevicePath{diskA, diskB}}},
				RootProperties: v1alpha1.Properties{"compression": "lz4"}},
			Datasets: []v1alpha1.PoolDataset{{Path: "parent", Mounted: true, Properties: v1alpha1.Properties{"logbias": "throughput"}}}},
	}
}

// settle reconciles until there is nothing left to do at once. It retries after temporary failures, and restarts a dead agent.
func (w *world) settle(name string) *v1alpha1.BenchmarkPool {
	w.t.Helper()
	return w.reconcile(name, w.node.restart)
}

// settleUntilDead is settle without restarting a dead agent.
func (w *world) settleUntilDead(name string) *v1alpha1.BenchmarkPool {
	w.t.Helper()
	return w.reconcile(name, func() {})
}

func (w *world) reconcile(name string, before func()) *v1alpha1.BenchmarkPool {
	w.t.Helper()
	for range 40 {
		before()
		result, err := w.agent.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		if err == nil && (result.RequeueAfter == 0 || result.RequeueAfter >= time.Second) {
			break
		}
	}
	var pool v1alpha1.BenchmarkPool
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Name: name}, &pool); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	return &pool
}

func (w *world) delete(pool *v1alpha1.BenchmarkPool) {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), pool); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) expectReady(pool *v1alpha1.BenchmarkPool, reason string) {
	w.t.Helper()
	if pool == nil {
		w.t.Fatal("the object is gone")
	}
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != reason {
		w.t.Fatalf("Ready is %+v, want reason %s; commands:\n%s", ready, reason, strings.Join(w.node.commands, "\n"))
	}
}

// foreign is a pool that must not be touched.
func foreign(name string) *fakePool {
	return &fakePool{name: name, guid: "1", imported: true, properties: map[string]string{}, mirror: [][]string{{diskC, diskD}},
		datasets: map[string]map[string]string{name: {"storagebench.dev:name": name}}, labels: map[string]bool{diskC: true, diskD: true}}
}

func TestLife(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	status := pool.Status
	if status.GUID != "700" || status.Health != "ONLINE" || status.SizeBytes != 1000 || *status.FragmentationPercent != 3 ||
		len(status.Vdevs) != 3 || status.Vdevs[0].Ashift != 12 || status.Vdevs[1].Parent != "mirror-0" || status.Vdevs[1].Class != "data" ||
		len(status.Preflight) != 2 || status.Preflight[0].Number == "" || status.ZFSVersion != "zfs-2.3.9-1 zfs-kmod-2.3.9-1" {
		t.Errorf("status %+v", status)
	}
	compression := v1alpha1.EffectiveProperty{Dataset: "bench0", Name: "compression", Value: "lz4", Source: "local"}
	if len(status.Properties) == 0 || status.Properties[0] != compression {
		t.Errorf("effective properties %+v", status.Properties)
	}
	if made := w.node.pools[0].datasets["bench0/parent"]; made["logbias"] != "throughput" {
		t.Errorf("the parent dataset has %v", made)
	}
	if !w.node.pools[0].mounted["bench0/parent"] ||
		w.node.pools[0].datasets["bench0/parent"]["mountpoint"] != "/var/lib/storagebench/volumes/bench0/parent" {
		t.Errorf("mounted are %v", w.node.pools[0].mounted)
	}
	version := pool.ResourceVersion
	if again := w.settle("bench0"); again.ResourceVersion != version {
		t.Error("an unchanged world was written again")
	}
	w.node.reset()
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	if !w.node.pools[0].mounted["bench0/parent"] {
		t.Error("after a reset of the node the dataset is not mounted again")
	}
	w.delete(pool)
	if left := w.settle("bench0"); left != nil || !w.node.pools[0].destroyed || len(w.node.pools[0].labels) != 0 {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
	for _, command := range w.node.commands {
		if strings.Contains(command, " -f") {
			t.Errorf("force: %s", command)
		}
	}
}

// TestReportedDataset: the requested properties of a dataset of another component are reported, once it exists.
func TestReportedDataset(t *testing.T) {
	pool := wanted("bench0")
	pool.Annotations = map[string]string{v1alpha1.AnnotationReport: "parent/pvc-1"}
	w := newWorld(t, pool)
	reported := func() map[string]string {
		values := map[string]string{}
		for _, property := range w.settle("bench0").Status.Properties {
			if property.Dataset == "bench0/parent/pvc-1" {
				values[property.Name] = property.Value
			}
		}
		return values
	}
	if got := reported(); len(got) != 0 {
		t.Errorf("of what is not there are reported %v", got)
	}
	w.node.pools[0].datasets["bench0/parent/pvc-1"] = map[string]string{"logbias": "latency", "compression": "lz4", "refquota": "5",
		"used": "7"}
	if got, want := reported(), map[string]string{"logbias": "latency", "compression": "lz4", "refquota": "5"}; !maps.Equal(got, want) {
		t.Errorf("reported are %v, want %v", got, want)
	}
	w.delete(pool)
	if left := w.settle("bench0"); left == nil || meta.FindStatusCondition(left.Status.Conditions,
		"Ready").Reason != v1alpha1.ReasonPoolDatasetsRemain {
		t.Errorf("the pool went with a user's dataset on it: %+v", left)
	}
}

// TestProofIsTheLast: the command right before each destroy or export proves that the pool is ours.
func TestProofIsTheLast(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	w.delete(w.settle("bench0"))
	w.settle("bench0")
	for i, command := range w.node.all {
		if strings.HasPrefix(command, "zpool destroy") {
			if before := w.node.all[i-1]; !strings.HasPrefix(before, "zfs get") || !strings.Contains(before, naming.PropertyUID) {
				t.Errorf("before %q came %q", command, before)
			}
			return
		}
	}
	t.Error("nothing was destroyed")
}

// TestCrashes ends the agent, or the agent and the node, after each command that changes something, from the creation of the pool to the
// clearing of its labels.
func TestCrashes(t *testing.T) {
	for _, resets := range []bool{false, true} {
		const lifeHasAtLeast = 6 // create, two settings or more, dataset, destroy, two labels
		for at := 1; ; at++ {
			w := newWorld(t, wanted("bench0"))
			w.node.pools = []*fakePool{foreign("other")}
			w.node.diesAfter, w.node.resets = at, resets
			pool := w.settle("bench0")
			w.expectReady(pool, v1alpha1.ReasonPoolReady)
			w.delete(pool)
			if pool = w.settle("bench0"); pool != nil {
				w.expectReady(pool, "nothing: it should be gone")
			}
			w.expectClean(at)
			if w.node.changes < at {
				if at <= lifeHasAtLeast {
					t.Errorf("only %d crash points", at-1)
				}
				break
			}
		}
	}
}

func (w *world) expectClean(at int) {
	w.t.Helper()
	made := 0
	for _, pool := range w.node.pools[1:] {
		made++
		if !pool.destroyed || len(pool.labels) > 0 {
			w.t.Errorf("crash after change %d: pool %+v is left", at, pool)
		}
	}
	if made != 1 {
		w.t.Errorf("crash after change %d: %d pools were made", at, made)
	}
	for _, command := range w.node.commands {
		if strings.Contains(command, "other") || strings.Contains(command, diskC) || strings.Contains(command, diskD) ||
			strings.HasSuffix(command, " 1") {
			w.t.Errorf("crash after change %d: %s", at, command)
		}
	}
}

func TestForeignPoolsAreLeftAlone(t *testing.T) {
	for name, prepare := range map[string]func(*fakeNode){
		"imported": func(*fakeNode) {},
		"not imported": func(n *fakeNode) {
			n.pools[0].imported, n.pools[0].mirror = false, [][]string{{diskA, diskB}}
			n.pools[0].labels = map[string]bool{diskA: true} // on all disks, it could be ours
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("bench0"))
			w.node.pools = []*fakePool{foreign("bench0")}
			prepare(w.node)
			pool := w.settle("bench0")
			w.expectReady(pool, v1alpha1.ReasonPoolNameTaken)
			w.delete(pool)
			if w.settle("bench0") != nil || len(w.node.commands) > 0 {
				t.Errorf("commands %q", w.node.commands)
			}
		})
	}
}

// TestAForeignPoolInDisguise: the pool has the name and the disks of ours, but not its mark, which only a read-only import shows.
func TestAForeignPoolInDisguise(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	stranger := foreign("bench0")
	stranger.imported, stranger.mirror, stranger.labels = false, [][]string{{diskA, diskB}}, map[string]bool{diskA: true, diskB: true}
	w.node.pools = []*fakePool{stranger}
	request := ctrl.Request{NamespacedName: types.NamespacedName{Name: "bench0"}}
	if _, err := w.agent.Reconcile(t.Context(), request); !errors.Is(err, guard.ErrNotOurs) {
		t.Fatalf("the error is %v", err)
	}
	if len(w.node.commands) != 2 || !strings.Contains(w.node.commands[0], "-N -o readonly=on -o altroot="+zfs.LookRoot+" 1") ||
		w.node.commands[1] != "zpool export bench0" {
		t.Errorf("commands %q", w.node.commands)
	}
}

func TestOwnershipIsReadAgain(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	pool := w.settle("bench0")
	state, err := w.agent.observe(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	before := len(w.node.commands)
	// Another pool takes its place between the check and the action.
	w.node.pools[0].datasets["bench0"][naming.PropertyUID] = "uid-other"
	for _, action := range []pools.Action{
		{Kind: pools.DestroyPool, GUID: "700"}, {Kind: pools.ReimportPool, GUID: "700"},
		{Kind: pools.SetPoolProperties, GUID: "700", Settings: []naming.Setting{{Name: "autotrim", Value: "on"}}},
		{Kind: pools.CreateDataset, GUID: "700", Dataset: zfs.DatasetSpec{Name: "bench0/x"}},
		{Kind: pools.GrowPool, GUID: "700", Create: zfs.PoolSpec{Name: "bench0", Layout: zfs.Layout{Cache: []string{diskC}}}},
		{Kind: pools.AttachDisk, GUID: "700", Member: diskA, Device: diskC}, {Kind: pools.DetachDisk, GUID: "700", Member: diskA},
	} {
		if err := w.agent.act(t.Context(), &state, []pools.Action{action}); !errors.Is(err, guard.ErrNotOurs) {
			t.Errorf("%s: %v", action.Kind, err)
		}
	}
	w.node.pools[0].datasets["bench0"][naming.PropertyUID] = "uid-bench0"
	if err := w.agent.act(t.Context(), &state, []pools.Action{{Kind: pools.DestroyPool, GUID: "701"}}); !errors.Is(err, guard.ErrNotOurs) {
		t.Errorf("another guid: %v", err)
	}
	if len(w.node.commands) != before {
		t.Errorf("commands %q", w.node.commands[before:])
	}
}

func TestTwoClaims(t *testing.T) {
	older, younger := wanted("older"), wanted("younger")
	younger.CreationTimestamp = metav1.NewTime(time.Unix(2000, 0))
	w := newWorld(t, older, younger)
	w.expectReady(w.settle("younger"), v1alpha1.ReasonPoolConflict)
	w.expectReady(w.settle("older"), v1alpha1.ReasonPoolReady)
	w.expectReady(w.settle("younger"), v1alpha1.ReasonPoolConflict)
	w.delete(older)
	if w.settle("older") != nil {
		t.Fatal("the older is still there")
	}
	w.expectReady(w.settle("younger"), v1alpha1.ReasonPoolReady)
}

func TestNothingIsDoneOnOtherNodes(t *testing.T) {
	pool := wanted("bench0")
	pool.Spec.NodeName = "node-b"
	w := newWorld(t, pool)
	if got := w.settle("bench0"); len(got.Status.Conditions) > 0 || len(got.Finalizers) > 0 || len(w.node.commands) > 0 {
		t.Errorf("%+v, commands %q", got, w.node.commands)
	}
}

func TestSwappedDisksAreNotTaken(t *testing.T) {
	for name, change := range map[string]func(n *fakeNode){
		"swapped":              func(n *fakeNode) { n.swapped = true },
		"used since the check": func(n *fakeNode) { n.usedSince = true },
	} {
		w := newWorld(t, wanted("bench0"))
		change(w.node)
		w.expectReady(w.settle("bench0"), v1alpha1.ReasonActionFailed)
		if len(w.node.commands) > 0 {
			t.Errorf("%s: commands %q", name, w.node.commands)
		}
	}
}

func TestDisksSwappedDuringTheCommandAreReported(t *testing.T) {
	for _, command := range []string{"zpool create", "zpool labelclear"} {
		t.Run(command, func(t *testing.T) {
			w := newWorld(t, wanted("bench0"))
			w.node.swapAfter = command
			got := w.settle("bench0")
			if command == "zpool labelclear" {
				w.expectReady(got, v1alpha1.ReasonPoolReady)
				w.delete(got)
				w.settle("bench0")
			}
			var told []string
			for range len(w.events) {
				told = append(told, <-w.events)
			}
			if !strings.Contains(strings.Join(told, "\n"), "Warning ActionFailed") || !strings.Contains(strings.Join(told, "\n"),
				"a path changed meanwhile") {
				t.Errorf("events %q", told)
			}
		})
	}
}
