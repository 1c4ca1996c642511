package integration

import (
	"context"
	"errors"
	"testing"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimeconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/controllers/metrics"
	"github.com/storagebench/storagebench/controllers/operation"
	"github.com/storagebench/storagebench/controllers/pool"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
	"github.com/storagebench/storagebench/test/cluster"
)

// noZFS is a node on which every command fails.
type noZFS struct{}

func (noZFS) Run(_ context.Context, command zfs.Command) ([]byte, error) {
	return nil, &zfs.Error{Kind: zfs.Unknown, Command: command.String(), ExitCode: 1, Err: errors.New("there is no ZFS here")}
}

// startAgent starts the agent of a node, as cmd/agent does, with the rights that the installation grants it and a token of that node.
func startAgent(l *lab, config *rest.Config, node string) {
	l.t.Helper()
	scheme, err := pool.Scheme()
	l.must(err)
	memory := pool.Cache(node)
	memory.ByObject[&v1alpha1.PoolOperation{}] = operation.Cached(node)
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Cache: memory, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: runtimeconfig.Controller{SkipNameValidation: new(true)}})
	l.must(err)
	host, disks, turns := zfs.New(noZFS{}), &guard.Bounded{Disks: host.NewNode(l.t.TempDir())}, &guard.Turns{}
	recorder := manager.GetEventRecorder("storagebench-agent")
	pools := &pool.Reconciler{Client: manager.GetClient(), Live: manager.GetAPIReader(), Recorder: recorder, NodeName: node, ZFS: host,
		Disks: disks, Turns: turns, Attempts: &guard.Attempts{Root: l.t.TempDir()}, Releases: &guard.Releases{Root: l.t.TempDir()}}
	l.must(pools.SetupWithManager(manager))
	operations := &operation.Reconciler{Client: manager.GetClient(), Live: manager.GetAPIReader(), Recorder: recorder, NodeName: node,
		Agent: "life-1",
		ZFS:   host, Disks: disks, Root: l.t.TempDir(), Turns: turns, Attempts: pools.Attempts, Clock: clock.RealClock{}}
	l.must(operations.SetupWithManager(manager))
	if l.metrics != nil {
		shown := metrics.Agent{Node: node, Hanging: func() (int, int) { return 1, len(disks.Hanging()) }}
		l.must(shown.SetupWithManager(manager, l.metrics))
	}
	l.background("the agent", manager.Start)
}

// TestAgentRights: with its token and its rights, an agent reports what it has found, and removes the finalizer of released objects.
func TestAgentRights(t *testing.T) {
	l := newLab(t, nil)
	const node = "node-of-agent"
	config, err := cluster.Agent(t.Context(), config, node)
	l.must(err)
	startAgent(l, config, node)
	finalizers := []string{v1alpha1.FinalizerTeardown}
	objects := []client.Object{
		&v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: "of-agent", Finalizers: finalizers},
			Spec: v1alpha1.BenchmarkPoolSpec{NodeName: node,
				PoolTemplate: v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/nvme-LAB_A"}}}}}},
		&v1alpha1.PoolOperation{ObjectMeta: metav1.ObjectMeta{Name: "of-agent", Finalizers: finalizers},
			Spec: v1alpha1.PoolOperationSpec{NodeName: node, Pool: "of-agent",
				Action: v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{Name: "zfs_txg_timeout", Value: "7"}}}},
	}
	for _, object := range objects {
		l.must(l.live.Create(t.Context(), object))
	}
	for _, object := range objects {
		l.eventually("the agent says what it has found", func(g gomega.Gomega) {
			g.Expect(l.live.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
			switch object := object.(type) {
			case *v1alpha1.BenchmarkPool:
				g.Expect(object.Status.Conditions).NotTo(gomega.BeEmpty())
			case *v1alpha1.PoolOperation:
				g.Expect(object.Status.Conditions).NotTo(gomega.BeEmpty())
			}
		})
		released := object.DeepCopyObject().(client.Object)
		released.SetAnnotations(map[string]string{v1alpha1.AnnotationReleasePool: node})
		l.must(l.live.Patch(t.Context(), released, client.MergeFrom(object)))
		l.must(l.live.Delete(t.Context(), object))
		l.eventually("the object is released", func(g gomega.Gomega) {
			g.Expect(apierrors.IsNotFound(l.live.Get(t.Context(), client.ObjectKeyFromObject(object), object))).To(gomega.BeTrue())
		})
	}
}
