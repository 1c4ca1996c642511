package openebs

import (
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/volume"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestSpecs: the benchmarks have only fields of the API.
func TestSpecs(t *testing.T) {
	for _, row := range Rows {
		for _, provisioner := range []string{volume.ProvisionerLocal, volume.ProvisionerOpenEBS} {
			var spec v1alpha1.StorageBenchmarkSpec
			if err := yaml.UnmarshalStrict([]byte(row.Spec(provisioner, "/dev/disk/by-id/a")), &spec); err != nil ||
				spec.Target.ZFS.Dataset.Provisioner != provisioner {
				t.Errorf("%s: %v", row.Name, err)
			}
		}
	}
}

// TestInstalled runs the benchmarks in the cluster of the kubeconfig, which has storagebench with an agent, and the real driver
// (docs/tasks/openebs.md): make e2e-openebs DRIVER=installed DISK=/dev/disk/by-id/NAME
func TestInstalled(t *testing.T) {
	if os.Getenv("E2E_OPENEBS") != "installed" {
		t.Skip("needs a cluster with the real driver: make e2e-openebs DRIVER=installed DISK=/dev/disk/by-id/NAME")
	}
	disk := os.Getenv("DISK")
	if disk == "" {
		t.Fatal("DISK is not set: name an empty disk that the agent may use for namespace storagebench-openebs, such as /dev/disk/by-id/NAME")
	}
	cluster := connect(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "storagebench-openebs",
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := cluster.Create(t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	for _, row := range Rows {
		t.Run(row.Name, func(t *testing.T) { measure(t, cluster, namespace.Name, row, disk) })
	}
	if err := cluster.Delete(t.Context(), namespace); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T) client.Client {
	t.Helper()
	config, err := ctrl.GetConfig()
	if err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	cluster, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// measure runs the benchmark of a row to its verdict, and deletes it.
func measure(t *testing.T, cluster client.Client, namespace string, row Row, disk string) {
	const patience, polling = 15 * time.Minute, 2 * time.Second
	g := gomega.NewWithT(t)
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: row.Name}}
	g.Expect(yaml.UnmarshalStrict([]byte(row.Spec(volume.ProvisionerOpenEBS, disk)), &benchmark.Spec)).To(gomega.Succeed())
	g.Expect(cluster.Create(t.Context(), benchmark)).To(gomega.Succeed())
	g.Eventually(func(g gomega.Gomega) {
		g.Expect(cluster.Get(t.Context(), client.ObjectKeyFromObject(benchmark), benchmark)).To(gomega.Succeed())
		condition := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(condition).NotTo(gomega.BeNil())
		if condition.Reason == v1alpha1.ReasonDriverNotInstalled || condition.Reason == v1alpha1.ReasonNotSupported {
			gomega.StopTrying(condition.Message).Now()
		}
		g.Expect(condition.Status).To(gomega.Equal(metav1.ConditionTrue), condition.Message)
	}).WithTimeout(patience).WithPolling(polling).Should(gomega.Succeed(), "benchmark "+row.Name+" ends")
	g.Expect(benchmark.Status.Verdict).To(gomega.Equal(v1alpha1.VerdictPassed), "%v", benchmark.Status.Conditions)
	var runs v1alpha1.BenchmarkRunList
	g.Expect(cluster.List(t.Context(), &runs, client.InNamespace(namespace),
		client.MatchingLabels{v1alpha1.LabelBenchmarkUID: string(benchmark.UID)})).To(gomega.Succeed())
	g.Expect(runs.Items).To(gomega.HaveLen(1))
	for _, property := range runs.Items[0].Status.Volumes[0].Properties {
		t.Logf("%s %s=%s (%s)", property.Dataset, property.Name, property.Value, property.Source)
	}
	g.Expect(cluster.Delete(t.Context(), benchmark)).To(gomega.Succeed())
	g.Eventually(func(g gomega.Gomega) {
		left, err := Left(t.Context(), cluster)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(left).To(gomega.BeEmpty())
	}).WithTimeout(patience).WithPolling(polling).Should(gomega.Succeed(), "nothing is left")
}
