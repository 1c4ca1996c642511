package api

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/cli"
)

// plugin runs the plugin with the rights of a config.
func plugin(t *testing.T, as *rest.Config, namespace string, arguments ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &out, Now: time.Now, Version: "v0.0.0",
		Connect: func(cli.Connection) (*cli.Cluster, error) { return cli.ConnectTo(as, namespace, &out) }}
	code = app.Main(t.Context(), arguments)
	return code, out.String()
}

// TestPluginChangesBenchmarks: the API server stores what suspend, resume and rerun write, and nothing else changes.
func TestPluginChangesBenchmarks(t *testing.T) {
	const namespace = "plugin"
	objects := pluginNamespace(t, namespace)
	key := client.ObjectKey{Namespace: namespace, Name: "quickstart"}
	read := func() (one v1alpha1.StorageBenchmark) {
		if err := objects.Get(t.Context(), key, &one); err != nil {
			t.Fatal(err)
		}
		return one
	}
	for _, step := range []struct {
		arguments []string
		says      string
		is        func(v1alpha1.StorageBenchmark) bool
	}{
		{[]string{"run", "../../config/samples/quickstart.yaml"}, "created", func(one v1alpha1.StorageBenchmark) bool { return !one.Spec.Suspend }},
		{[]string{"list"}, "quickstart   -         Applied", nil},
		{[]string{"list", "-o", "yaml"}, "kind: StorageBenchmarkList", nil},
		{[]string{"show", "quickstart"}, "waiting for the operator to observe it", nil},
		{[]string{"suspend", "quickstart"}, "is suspended", func(one v1alpha1.StorageBenchmark) bool { return one.Spec.Suspend }},
		{[]string{"run", "../../config/samples/quickstart.yaml"}, "unchanged", func(one v1alpha1.StorageBenchmark) bool { return one.Spec.Suspend }},
		{[]string{"resume", "quickstart"}, "continues", func(one v1alpha1.StorageBenchmark) bool { return !one.Spec.Suspend }},
		{[]string{"rerun", "quickstart"}, "starts over", func(one v1alpha1.StorageBenchmark) bool {
			return one.Annotations[v1alpha1.AnnotationRerun] != "" && one.Generation == 3 && one.Spec.Repetitions == 2
		}},
	} {
		if code, said := plugin(t, config, namespace, step.arguments...); code != 0 || !strings.Contains(said, step.says) {
			t.Errorf("%v: exit code %d, %s", step.arguments, code, said)
		}
		if step.is != nil && !step.is(read()) {
			t.Errorf("%v: %+v", step.arguments, read())
		}
	}
}

// TestDoctorOnAnAPIServer: doctor finds that the CRDs in the API server are those of the plugin; a user of a namespace sees less, without
// an error.
func TestDoctorOnAnAPIServer(t *testing.T) {
	const namespace = "plugin-doctor"
	pluginNamespace(t, namespace)
	code, said := plugin(t, config, namespace, "doctor")
	for _, says := range []string{"ok        api", "ok        rights", "ok        crds", "problem   manager", "ok        clock"} {
		if code != cli.ExitFailed || !strings.Contains(said, says) {
			t.Errorf("as an admin: %d, not %q:\n%s", code, says, said)
		}
	}
	user := rest.CopyConfig(config)
	user.Impersonate = rest.ImpersonationConfig{UserName: "ann"}
	code, said = plugin(t, user, namespace, "doctor")
	for _, says := range []string{"not seen  api", "warning   rights    you may not: create storagebenchmarks", "not seen  crds", "not seen  manager",
		"not seen  disks"} {
		if code != 0 || !strings.Contains(said, says) {
			t.Errorf("as a user without rights: %d, not %q:\n%s", code, says, said)
		}
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	editor := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "editor"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"storagebenchmarks", "benchmarkruns"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "pods", "pods/log"}, Verbs: []string{"get", "list", "watch"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "editor"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role",
		Name: "editor"}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ann"}}}
	if _, err := clients.RbacV1().Roles(namespace).Create(t.Context(), editor, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(func() string { // the authorizer learns of a binding a moment later
		_, said = plugin(t, user, namespace, "doctor")
		return said
	}, time.Minute, 100*time.Millisecond).Should(gomega.ContainSubstring("ok        rights"))
	if code, said = plugin(t, user, namespace, "doctor"); code != 0 || !strings.Contains(said, "ok        api") {
		t.Errorf("as an editor: %d\n%s", code, said)
	}
	if code, said = plugin(t, user, namespace, "run", "../../config/samples/quickstart.yaml"); code != 0 {
		t.Errorf("as an editor: %d\n%s", code, said)
	}
	for _, arguments := range [][]string{{"show", "quickstart"}, {"suspend", "quickstart"}, {"resume", "quickstart"}, {"rerun", "quickstart"}, {"list"}} {
		if code, said := plugin(t, user, namespace, arguments...); code != 0 {
			t.Errorf("%v as an editor: %d\n%s", arguments, code, said)
		}
	}
}

func pluginNamespace(t *testing.T, name string) client.Client {
	t.Helper()
	cluster, err := cli.ConnectTo(config, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	return cluster.Client
}
