package operation

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/zfs"
)

// startManager runs the agent's controller with a real API server and a fake node.
func startManager(t *testing.T, node *fakeNode) client.Client {
	t.Helper()
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"../../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := newScheme(t)
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.PoolOperation{}: Cached("node-a"),
			&v1alpha1.BenchmarkPool{}: {Field: fields.OneTermEqualSelector(v1alpha1.FieldNodeName, "node-a")},
		}}})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("agent"), NodeName: "node-a",
		Agent:      "life-1",
		Policy:     pools.DevicePolicy{{Pattern: "/dev/disk/by-id/*"}},
		Parameters: operations.ParameterAllowlist{{Name: "zfs_txg_timeout", Values: []operations.ParameterValues{{Min: 1, Max: 60}}}},
		ZFS:        zfs.New(node), Disks: node,
		Root: node.root, Turns: &guard.Turns{}, Clock: clock.RealClock{}}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return direct
}

// TestOnAnAPIServer: the API server accepts what the controller writes, the end of an operation wakes those that wait for it, and jobs wake
// the reconciler.
func TestOnAnAPIServer(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no kube-apiserver: export KUBEBUILDER_ASSETS=$(hack/envtest-assets)")
	}
	g := gomega.NewWithT(t)
	node := newNode(t)
	server := startManager(t, node)
	create := func(object client.Object) {
		object.SetUID("")
		object.SetCreationTimestamp(metav1.Time{})
		object.SetGeneration(0)
		g.Expect(server.Create(t.Context(), object)).To(gomega.Succeed())
	}
	status := func(name string) func(g gomega.Gomega) v1alpha1.PoolOperationStatus {
		return func(g gomega.Gomega) v1alpha1.PoolOperationStatus {
			var operation v1alpha1.PoolOperation
			g.Expect(server.Get(t.Context(), client.ObjectKey{Name: name}, &operation)).To(gomega.Succeed())
			return operation.Status
		}
	}
	outcome := func(name, want string) {
		t.Helper()
		g.Eventually(func(g gomega.Gomega) { g.Expect(status(name)(g).Outcome).To(gomega.Equal(want)) }, 30*time.Second).Should(gomega.Succeed(),
			name)
	}
	// All wait for their pools, which come later.
	actions := acts()
	for _, name := range []string{"snapshot", "replicate", "moduleParameter", "metaslabMap", "layoutScore"} {
		operation := wanted("op-"+map[string]string{"snapshot": "snapshot", "replicate": "replicate", "moduleParameter": "parameter",
			"metaslabMap": "map", "layoutScore": "score"}[name], actions[name].action)
		if operation.Spec.Action.ModuleParameter != nil {
			operation.Spec.Action.ModuleParameter.Duration = nil
		}
		create(operation)
	}
	watching := wanted("op-observe", v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{}})
	create(watching)
	g.Eventually(func(g gomega.Gomega) { g.Expect(status("op-snapshot")(g).Conditions).NotTo(gomega.BeEmpty()) },
		30*time.Second).Should(gomega.Succeed())
	for at, name := range []string{"bench0", "bench1"} {
		pool := readyPool(name)
		conditions := pool.Status.Conditions
		create(pool)
		node.mutex.Lock()
		node.pools[at].datasets[0].properties[naming.PropertyUID] = string(pool.UID)
		node.mutex.Unlock()
		conditions[0].LastTransitionTime = metav1.Now()
		pool.Status.Conditions = conditions
		g.Expect(server.Status().Update(t.Context(), pool)).To(gomega.Succeed())
	}
	for _, name := range []string{"op-snapshot", "op-replicate", "op-map", "op-score"} {
		outcome(name, "Succeeded")
	}
	for _, name := range []string{"op-observe", "op-parameter"} {
		g.Eventually(func(g gomega.Gomega) { g.Expect(status(name)(g).StartedAt).NotTo(gomega.BeNil()) }, 30*time.Second).Should(gomega.Succeed())
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"cancel":true}}`))
		g.Expect(server.Patch(t.Context(), &v1alpha1.PoolOperation{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch)).To(gomega.Succeed())
		outcome(name, "Succeeded")
	}
	// A released object can be deleted at once.
	g.Expect(server.DeleteAllOf(t.Context(), &v1alpha1.PoolOperation{})).To(gomega.Succeed())
	g.Eventually(func(g gomega.Gomega) {
		var left v1alpha1.PoolOperationList
		g.Expect(server.List(t.Context(), &left)).To(gomega.Succeed())
		g.Expect(left.Items).To(gomega.BeEmpty())
	}, 30*time.Second).Should(gomega.Succeed())
	checkParameter(t, &world{t: t, node: node}, nil)
}
