package pool

import (
	"os"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/agent/pools"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/zfs"
)

// TestDeletingTheCRD: the API server deletes all objects, but only the pools of those with the policy Destroy are destroyed.
func TestDeletingTheCRD(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no kube-apiserver: export KUBEBUILDER_ASSETS=$(hack/envtest-assets)")
	}
	g := gomega.NewWithT(t)
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"../../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	config, err := environment.Start()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(func() { g.Expect(environment.Stop()).To(gomega.Succeed()) })
	scheme, err := Scheme()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(gomega.Succeed())
	server, err := client.New(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	node := newNode(t)
	agent := &Reconciler{Client: server, Live: server, Recorder: events.NewFakeRecorder(1000), NodeName: "node-a",
		Policy: pools.DevicePolicy{{Pattern: "/dev/disk/by-id/*"}}, ZFS: zfs.New(node), Disks: node, Turns: &guard.Turns{},
		Attempts: &guard.Attempts{Root: node.root}, Releases: &guard.Releases{Root: node.root}}

	ofAdmin, ofRun := wanted("of-admin"), wanted("of-run")
	ofAdmin.Spec.DeletionPolicy = "" // if an admin omits the policy, it is Retain
	ofRun.Spec.Vdevs[0].Devices = []v1alpha1.DevicePath{diskC, diskD}
	all := []*v1alpha1.BenchmarkPool{ofAdmin, ofRun}
	turn := func() {
		for _, pool := range all {
			_, err := agent.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !meta.IsNoMatchError(err) {
				t.Log(err)
			}
		}
	}
	for _, pool := range all {
		pool.ObjectMeta = metav1.ObjectMeta{Name: pool.Name}
		g.Expect(server.Create(t.Context(), pool)).To(gomega.Succeed())
	}
	g.Eventually(func(g gomega.Gomega) {
		turn()
		for _, pool := range all {
			g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(pool), pool)).To(gomega.Succeed())
			g.Expect(meta.IsStatusConditionTrue(pool.Status.Conditions, v1alpha1.ConditionReady)).To(gomega.BeTrue(), "%+v", pool.Status.Conditions)
		}
	}, "20s").Should(gomega.Succeed())
	g.Expect(ofAdmin.Spec.DeletionPolicy).To(gomega.Equal(v1alpha1.DeletionRetain), "the default is in the object")

	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "benchmarkpools.storagebench.dev"}}
	g.Expect(server.Delete(t.Context(), crd)).To(gomega.Succeed())
	g.Eventually(func(g gomega.Gomega) {
		turn()
		g.Expect(apierrors.IsNotFound(server.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))).To(gomega.BeTrue())
	}, "60s").Should(gomega.Succeed())
	g.Expect(node.pools).To(gomega.HaveLen(2))
	for _, pool := range node.pools {
		g.Expect(pool.destroyed).To(gomega.Equal(pool.name == "of-run"), pool.name)
		g.Expect(pool.imported).To(gomega.Equal(pool.name == "of-admin"), pool.name)
	}
}
