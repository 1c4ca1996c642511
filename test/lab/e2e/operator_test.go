package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Where docs/tasks/install.md installs the operator.
const (
	release         = "storagebench"
	systemNamespace = "storagebench-system"
	managerLease    = "leases.coordination.k8s.io " + systemNamespace + "/manager.storagebench.dev"
	managerName     = "storagebench-manager"
	managerImage    = "localhost/storagebench-manager:dev"
	runnerImage     = "localhost/storagebench-runner:dev"
	postgresImage   = "localhost/storagebench-postgres:dev"
)

// TestOperator installs the operator as docs/tasks/install.md says, puts it to use, and removes it without a trace.
func TestOperator(t *testing.T) {
	installOperator(t)
	for _, use := range []struct {
		name string
		test func(t *testing.T)
		long bool
		// turn of the short tests in which it runs; 0 means every turn.
		turn int
	}{
		{name: "default class", test: defaultClass},
		{name: "block volume", test: blockVolume, turn: 2},
		{name: "manager restarted", test: managerRestarted, long: true},
		{name: "two benchmarks", test: twoBenchmarks, long: true},
		{name: "failed gate", test: failedGate, long: true},
		{name: "volume too small", test: volumeTooSmall, long: true},
		{name: "disk full", test: diskFull},
		{name: "broken disk", test: brokenDisk, long: true},
		{name: "slow node", test: slowNode, long: true},
	} {
		part(t, use.name, func(t *testing.T) {
			if use.long {
				long(t)
			}
			inTurn(t, use.turn)
			once(t)
			use.test(t)
		})
	}
}

// installOperator installs the operator for a test, and removes it at the end of the test. Then nothing may be left of it.
func installOperator(t *testing.T, values ...string) {
	t.Helper()
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // an inventory lists deprecated kinds too
	removeRemains(t)
	before, err := inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return // leftovers are a consequence of the failure
		}
		ctx, cancel := afterwards(t)
		defer cancel()
		eventually(t, "nothing is left", func(g gomega.Gomega) {
			now, err := inventory(ctx)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(without(now, before)).To(gomega.BeEmpty())
		})
	})
	system := spaceOf(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}, levelRestricted)
	// Also if the test fails: it runs before the namespace is deleted.
	t.Cleanup(func() { uninstall(t, before) })
	helm(t.Context(), t, append([]string{"install", release, "charts/storagebench", "--take-ownership", "--set", "image.pullPolicy=Never"},
		values...)...)
	managerAvailable(system)
}

// removeRemains removes the leftovers of a killed run of this test. An operator installed by another user is left alone.
func removeRemains(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	err := cluster.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace)
	switch {
	case apierrors.IsNotFound(err):
		return
	case err != nil:
		t.Fatal(err)
	case namespace.Labels[spaceLabel] == "":
		t.Fatalf("lab %s has an operator that is not this test's: uninstall it (docs/tasks/install.md), or test in another lab with LAB=NAME",
			theLab.Name)
	}
	uninstall(t, nil)
	(&space{t: t}).stop(namespace)
}

// managerAvailable waits until the manager works, in a namespace that enforces the restricted level.
func managerAvailable(s *space) {
	s.t.Helper()
	started := time.Now()
	manager := &appsv1.Deployment{}
	eventually(s.t, "the manager is available", func(g gomega.Gomega) {
		g.Expect(cluster.Get(s.t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: managerName}, manager)).To(gomega.Succeed())
		g.Expect(manager.Status.AvailableReplicas).To(gomega.BeEquivalentTo(1), "is %s in the lab? 'make lab-load LAB=%s' brings it",
			managerImage, theLab.Name)
	})
	gomega.NewWithT(s.t).Expect(manager.Spec.Template.Spec.Containers[0].Image).To(gomega.Equal(managerImage))
	fmt.Printf("operator: the manager is available after %.0f s\n", time.Since(started).Seconds())
}

// helm runs the pinned Helm from the root of the checkout.
func helm(ctx context.Context, t *testing.T, words ...string) {
	t.Helper()
	kubeconfig, err := theLab.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	find := exec.CommandContext(ctx, "hack/tool", "helm")
	find.Dir, find.Stderr = root, os.Stderr // says when it builds Helm first, which takes a while
	program, err := find.Output()
	if err != nil {
		t.Fatalf("hack/tool helm: %v", err)
	}
	command := exec.CommandContext(ctx, strings.TrimSpace(string(program)), append(words, "--namespace", systemNamespace, "--kubeconfig",
		kubeconfig)...)
	var output bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = root, &output, &output
	if err := command.Run(); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(words, " "), err, output.String())
	}
}

// uninstall does what docs/tasks/install.md says: it removes first the benchmarks, because only the manager can finalize them, then the
// release, then the CRDs, which Helm keeps. CRDs that existed before the test stay.
func uninstall(t *testing.T, before []string) {
	ctx, cancel := afterwards(t)
	defer cancel()
	var benchmarks v1alpha1.StorageBenchmarkList
	if err := cluster.List(ctx, &benchmarks); err != nil && !meta.IsNoMatchError(err) {
		t.Error(err)
	}
	for i := range benchmarks.Items {
		if err := cluster.Delete(ctx, &benchmarks.Items[i]); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
		gone(ctx, t, &benchmarks.Items[i])
	}
	uninstallPools(t)
	helm(ctx, t, "uninstall", release, "--ignore-not-found", "--wait")
	crds := &unstructured.UnstructuredList{}
	crds.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := cluster.List(ctx, crds); err != nil {
		t.Fatal(err)
	}
	for i := range crds.Items {
		crd := &crds.Items[i]
		if !strings.HasSuffix(crd.GetName(), "."+v1alpha1.GroupVersion.Group) || slices.Contains(before, crdResource+" "+crd.GetName()) {
			continue
		}
		if err := cluster.Delete(ctx, crd); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
		gone(ctx, t, crd)
	}
}
