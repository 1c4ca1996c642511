package delivery

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// namespacedValues install for one team, without any cluster-wide right or object.
var namespacedValues = []string{"--set", "namespaces={" + team + "}", "--set", "metrics.enabled=false", "--set", "crds.install=false",
	"--set", "policies.install=false", "--set", "userRoles.install=false", "--set", "clusterReads=false"}

// The manager has the same rights, but only in the team's namespace, and none in the whole cluster.
func TestHelmNamespaced(t *testing.T) {
	rendered, whole := helm(t, namespacedValues...), helm(t)
	if len(rendered) < 6 {
		t.Errorf("only %d objects", len(rendered))
	}
	for key, object := range rendered {
		if object.GetNamespace() == "" {
			t.Errorf("%s is in no namespace", key)
		}
	}
	want := get[rbacv1.ClusterRole](t, whole, "ClusterRole /storagebench-manager").Rules
	if diff := cmp.Diff(want, get[rbacv1.Role](t, rendered, "Role "+team+"/storagebench-manager").Rules); diff != "" || len(want) < 8 {
		t.Errorf("the Role differs from the ClusterRole:\n%s", diff)
	}
	container := get[appsv1.Deployment](t, rendered, deployment).Spec.Template.Spec.Containers[0]
	flags := flagsOf(container)
	for flag, value := range map[string]string{"namespaces": team, "cluster-reads": "false", "metrics-bind-address": "0"} {
		if flags[flag] != value {
			t.Errorf("no --%s=%s in %v", flag, value, flags)
		}
	}
	several := helm(t, "--set", "namespaces={a,b}", "--set", "metrics.enabled=false")
	for _, name := range []string{"a", "b"} {
		if several["Role "+name+"/storagebench-manager"] == nil || several["RoleBinding "+name+"/storagebench-manager"] == nil {
			t.Errorf("no Role in namespace %s", name)
		}
	}
	if several["ClusterRole /storagebench-manager"] != nil || several["ClusterRole /storagebench-manager-reads"] == nil {
		t.Error("with clusterReads the manager reads nodes and classes, and no more")
	}
}

// testNamespaced lets the real program work with no right outside two namespaces.
func testNamespaced(t *testing.T) {
	for _, object := range overlay(t, []string{"default"}, []string{"agent"}).ofKind("ClusterRoleBinding") {
		if err := admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, helm(t, namespacedValues...).ofKind("Role", "RoleBinding"))
	checkAccess(t, serviceAccount, []access{{"get list watch create deletecollection", "batch", "jobs", team},
		{"list watch", bench, "storagebenchmarks", team}},
		[]access{{"list", "batch", "jobs", "team-b"}, {"list watch", bench, "storagebenchmarks", all}, {"get list watch", "", "nodes", all},
			{"list watch", "storage.k8s.io", "storageclasses", all}, {"list", "", "configmaps", all},
			{"create", "authentication.k8s.io", "tokenreviews", all}})
	playCluster(t)
	program, log := startManager(t, "--namespaces="+team, "--cluster-reads=false", "--metrics-bind-address=0")
	anywhere := teamBenchmark(t)
	anywhere.Name = "anywhere"
	create(t, anywhere)
	until(t, log, "a benchmark without a node says what to write", func(ctx context.Context) bool {
		err := admin.Get(ctx, client.ObjectKeyFromObject(anywhere), anywhere)
		ready := meta.FindStatusCondition(anywhere.Status.Conditions, v1alpha1.ConditionReady)
		return err == nil && ready != nil && ready.Reason == v1alpha1.ReasonNoNode && strings.Contains(ready.Message, "podTemplate.nodeSelector")
	})
	benchmark := teamBenchmark(t)
	benchmark.Spec.PodTemplate.NodeSelector = map[string]string{corev1.LabelHostname: "delivery-node"}
	runBenchmark(t, log, benchmark)
	if err := admin.Delete(t.Context(), anywhere); err != nil {
		t.Error(err)
	}
	stopManager(t, program, log)
}
