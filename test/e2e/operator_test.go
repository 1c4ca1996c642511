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
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/lab"
)

// Where docs/install.md installs the operator.
const (
	release         = "storagebench"
	systemNamespace = "storagebench-system"
	managerName     = "storagebench-manager"
	managerImage    = "localhost/storagebench-manager:dev"
	runnerImage     = "localhost/storagebench-runner:dev"
)

const smallBenchmark = `
apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: first}
spec:
  target: {storageClass: {name: ` + lab.PathClass + `, size: 64Mi}}
  repetitions: 1
  phases:
  - {name: fill, fill: {to: 50%}, startDeadline: 90s}
  - {name: read, measure: {workload: {oltp: {workers: 2, duration: 10s}}}}
  gates:
  - {name: reads, expression: "phase('read').readOperationsPerSecond > 1.0"}
`

// TestOperator installs the operator as docs/install.md says, lets it run a benchmark, and removes both without a trace.
func TestOperator(t *testing.T) {
	removeRemains(t)
	before, err := inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return // what is left over is a consequence
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
	helm(t.Context(), t, "install", release, "charts/storagebench", "--take-ownership", "--set", "image.pullPolicy=Never")
	managerAvailable(system)

	s := newSpace(t, levelRestricted)
	benchmark := &v1alpha1.StorageBenchmark{}
	if err := yaml.UnmarshalStrict([]byte(smallBenchmark), benchmark); err != nil {
		t.Fatal(err)
	}
	s.create(benchmark)
	endsWithoutRunner(s, benchmark)
	s.stop(benchmark)
	for _, list := range []client.ObjectList{&v1alpha1.BenchmarkRunList{}, &batchv1.JobList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}} {
		eventually(t, fmt.Sprintf("%T: nothing is left of the benchmark", list), func(g gomega.Gomega) {
			g.Expect(cluster.List(t.Context(), list, client.InNamespace(s.name))).To(gomega.Succeed())
			g.Expect(meta.LenList(list)).To(gomega.BeZero())
		})
	}
}

// removeRemains removes what a killed run of this test has left. An operator that somebody else installed is left alone.
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
		t.Fatalf("lab %s has an operator that is not this test's: uninstall it (docs/install.md), or test in another lab with LAB=NAME", theLab.Name)
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
		g.Expect(manager.Status.AvailableReplicas).To(gomega.BeEquivalentTo(1), "is %s in the lab? 'make lab-load LAB=%s' brings it", managerImage, theLab.Name)
	})
	gomega.NewWithT(s.t).Expect(manager.Spec.Template.Spec.Containers[0].Image).To(gomega.Equal(managerImage))
	fmt.Printf("operator: the manager is available %.0f s after its installation\n", time.Since(started).Seconds())
}

// endsWithoutRunner waits for the end of a benchmark whose workload has no image yet: Invalid, and the reason is told. Once there
// is a runner, a real verdict takes the place of this.
func endsWithoutRunner(s *space, benchmark *v1alpha1.StorageBenchmark) {
	s.t.Helper()
	g := gomega.NewWithT(s.t)
	started := time.Now()
	eventually(s.t, "the benchmark is complete", func(g gomega.Gomega) {
		g.Expect(cluster.Get(s.t.Context(), client.ObjectKeyFromObject(benchmark), benchmark)).To(gomega.Succeed())
		g.Expect(meta.IsStatusConditionTrue(benchmark.Status.Conditions, v1alpha1.ConditionComplete)).To(gomega.BeTrue(), "%v", benchmark.Status.Conditions)
	})
	g.Expect(benchmark.Status.Verdict).To(gomega.Equal(v1alpha1.VerdictInvalid))
	g.Expect(meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionPassed).Status).To(gomega.Equal(metav1.ConditionUnknown))
	g.Expect(benchmark.Status.StorageClass).To(gomega.Equal(lab.PathClass))
	g.Expect(nodes).To(gomega.ContainElement(benchmark.Status.NodeName))
	var runs v1alpha1.BenchmarkRunList
	g.Expect(cluster.List(s.t.Context(), &runs, client.InNamespace(s.name))).To(gomega.Succeed())
	g.Expect(runs.Items).To(gomega.HaveLen(1), "another attempt would meet the same")
	valid := meta.FindStatusCondition(runs.Items[0].Status.Conditions, v1alpha1.ConditionValid)
	g.Expect(valid).NotTo(gomega.BeNil())
	g.Expect(valid.Status).To(gomega.Equal(metav1.ConditionFalse))
	g.Expect(valid.Reason).To(gomega.Equal(v1alpha1.ReasonImagePullFailed), valid.Message)
	g.Expect(valid.Message).To(gomega.ContainSubstring(runnerImage))
	results := &corev1.ConfigMap{}
	g.Expect(cluster.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: benchmark.Status.Results.ConfigMap}, results)).To(gomega.Succeed())
	g.Expect(results.Data["report.md"]).To(gomega.ContainSubstring(string(v1alpha1.VerdictInvalid)))
	fmt.Printf("operator: benchmark on %s ended %s after %.0f s: %s\n", benchmark.Status.NodeName, benchmark.Status.Verdict, time.Since(started).Seconds(), valid.Reason)
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
	command := exec.CommandContext(ctx, strings.TrimSpace(string(program)), append(words, "--namespace", systemNamespace, "--kubeconfig", kubeconfig)...)
	var output bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = root, &output, &output
	if err := command.Run(); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(words, " "), err, output.String())
	}
}

// uninstall does what docs/install.md says: first the benchmarks, for only the manager can let them go, then the release, then
// the CRDs, which Helm keeps. CRDs that were there before the test stay.
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
	helm(ctx, t, "uninstall", release, "--ignore-not-found", "--wait")
	crds := &metav1.PartialObjectMetadataList{}
	crds.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := cluster.List(ctx, crds); err != nil {
		t.Fatal(err)
	}
	for i := range crds.Items {
		crd := &crds.Items[i]
		if !strings.HasSuffix(crd.Name, "."+v1alpha1.GroupVersion.Group) || slices.Contains(before, crdResource+" "+crd.Name) {
			continue
		}
		if err := cluster.Delete(ctx, crd); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
		gone(ctx, t, crd)
	}
}
