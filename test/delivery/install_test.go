package delivery

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/test/cluster"
)

// TestInstall tries the ways to install one after the other, because there is only one API server.
func TestInstall(t *testing.T) {
	create(t, namespaceObject(team))
	t.Run("Helm", testHelmLifecycle)
	t.Run("Kustomize", testKustomizeApply)
	t.Run("AllValues", testAllValuesAreValid)
	t.Run("PodSecurity", testPodSecurity)
	t.Run("ManagerAccess", testManagerAccess)
	t.Run("ManagerObjects", testManagerObjects)
	t.Run("ManagerJobs", testManagerJobs)
	t.Run("Owned", testOwned)
	t.Run("ManagerAtWork", testManagerAtWork)
	t.Run("ManagerAccessWithAgent", testManagerAccessWithAgent)
	t.Run("ManagerVolumes", testManagerVolumes)
	t.Run("ManagerClasses", testManagerClasses)
	t.Run("Claims", testClaims)
	t.Run("ManagerPools", testManagerPools)
	t.Run("AgentAccess", testAgentAccess)
	t.Run("AgentNode", testAgentNode)
	t.Run("UserAccess", testUserAccess)
	t.Run("Namespaced", testNamespaced)
}

// Install, change, uninstall: the deployment goes, the CRDs and with them people's results stay.
func testHelmLifecycle(t *testing.T) {
	kubeconfig := cluster.Kubeconfig(t, config)
	steps := [][]string{
		// The test API server came with the CRDs already in it, as after an installation by kubectl.
		{"install", release, "charts/storagebench", "--create-namespace", "--take-ownership"},
		{"upgrade", release, "charts/storagebench", "--set", "replicas=2"},
	}
	for _, step := range steps {
		helmRun(t, kubeconfig, step...)
	}
	manager := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: namespace, Name: "storagebench-manager"}
	if err := admin.Get(t.Context(), key, manager); err != nil || *manager.Spec.Replicas != 2 {
		t.Errorf("after the upgrade: %v, %v", err, manager.Spec.Replicas)
	}
	checkReleaseSize(t)
	// Two managers would fight over the same benchmarks.
	_, err := tool("helm", "install", "second", "charts/storagebench", "--namespace", "elsewhere", "--create-namespace",
		"--kubeconfig", kubeconfig)
	if err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("a second release in another namespace is not refused: %v", err)
	}
	helmRun(t, kubeconfig, "uninstall", release)
	if err := admin.Get(t.Context(), key, manager); !apierrors.IsNotFound(err) {
		t.Errorf("after the uninstallation the Deployment is still there: %v", err)
	}
	crds := &unstructured.UnstructuredList{}
	crds.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := admin.List(t.Context(), crds); err != nil || len(crds.Items) != 5 {
		t.Errorf("after the uninstallation there are %d CRDs, want all 5 kept: %v", len(crds.Items), err)
	}
	for _, crd := range crds.Items {
		if crd.GetDeletionTimestamp() != nil {
			t.Errorf("%s is being deleted", crd.GetName())
		}
	}
}

// Helm stores the chart and the manifest in a Secret, which etcd and the API server limit to 1 MiB. It contains the CRDs, which are large,
// twice.
func checkReleaseSize(t *testing.T) {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := admin.List(t.Context(), secrets, client.InNamespace(namespace)); err != nil || len(secrets.Items) == 0 {
		t.Fatalf("no release Secret: %v", err)
	}
	for _, secret := range secrets.Items {
		size := len(secret.Data["release"])
		t.Logf("%s: %d KiB of 1024", secret.Name, size>>10)
		if size > 600<<10 {
			t.Errorf("%s has %d KiB: over 600 of the 1024 that fit", secret.Name, size>>10)
		}
	}
}

func helmRun(t *testing.T, kubeconfig string, args ...string) {
	t.Helper()
	if _, err := tool("helm", append(args, "--namespace", namespace, "--kubeconfig", kubeconfig)...); err != nil {
		t.Fatal(err)
	}
}

// Every object is accepted without a warning, and applying it again changes nothing: otherwise GitOps tools would apply it forever.
func testKustomizeApply(t *testing.T) {
	rendered := kustomize(t, "config/install")
	warnings := &collector{}
	warned := rest.CopyConfig(config)
	warned.WarningHandlerWithContext = warnings
	kubectl, err := client.New(warned, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, round := range []string{"first", "second"} {
		// The namespace comes before the objects in it; the rest in any order.
		for _, object := range append(rendered.ofKind("Namespace"), rendered.others("Namespace")...) {
			applied := object.DeepCopy()
			err := kubectl.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied),
				client.FieldOwner("kubectl"), client.ForceOwnership)
			if err != nil {
				t.Errorf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
				continue
			}
			key := object.GetKind() + " " + object.GetName()
			if round == "second" && versions[key] != applied.GetResourceVersion() {
				t.Errorf("%s: applied again without a change, it was written again", key)
			}
			versions[key] = applied.GetResourceVersion()
		}
	}
	if len(warnings.messages) != 0 {
		t.Errorf("the API server warns: %q", warnings.messages)
	}
}

// A namespace that enforces the restricted level accepts the manager's pod, and only because of the pod's settings.
func testPodSecurity(t *testing.T) {
	restricted := namespaceObject("restricted")
	restricted.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	create(t, restricted)
	template := get[appsv1.Deployment](t, kustomize(t, "config/default"), deployment).Spec.Template
	pod := func() *corev1.Pod {
		meta := metav1.ObjectMeta{GenerateName: "manager-", Namespace: "restricted", Labels: template.Labels}
		return &corev1.Pod{ObjectMeta: meta, Spec: *template.Spec.DeepCopy()}
	}
	if err := admin.Create(t.Context(), pod(), client.DryRunAll); err != nil {
		t.Errorf("the manager's pod is refused: %v", err)
	}
	for name, weaken := range map[string]func(*corev1.PodSpec){
		"runs as root":     func(s *corev1.PodSpec) { s.SecurityContext.RunAsUser = new(int64(0)) },
		"may be root":      func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
		"no seccomp":       func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil },
		"escalation":       func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
		"has capabilities": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil },
	} {
		weaker := pod()
		weaken(&weaker.Spec)
		if err := admin.Create(t.Context(), weaker, client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("a pod that %s is not refused, so this test proves nothing: %v", name, err)
		}
	}
	// More than the level requires.
	context := template.Spec.Containers[0].SecurityContext
	if !*context.ReadOnlyRootFilesystem || !slices.Contains(context.Capabilities.Drop, "ALL") {
		t.Errorf("the container's security context is too weak: %+v", context)
	}
}

// collector keeps the API server's warnings.
type collector struct {
	mutex    sync.Mutex
	messages []string
}

func (c *collector) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.messages = append(c.messages, text)
}

// others returns the objects that are not of a kind.
func (o objects) others(kind string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range o {
		if object.GetKind() != kind {
			found = append(found, object)
		}
	}
	return found
}

func namespaceObject(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// apply writes objects as kubectl does.
func apply(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		err := admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)
		if err != nil {
			t.Fatal(err)
		}
	}
}
