package delivery

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These would let the holder of the manager's token get more rights than the manager has.
var (
	forbiddenVerbs  = []string{"*", "bind", "escalate", "impersonate", "approve", "sign", "attest"}
	forbiddenGroups = []string{"*", "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io",
		"certificates.k8s.io"}
	forbiddenResources = []string{"*", "*/*", "*/status", "*/scale", "secrets", "pods/exec", "pods/attach", "pods/portforward", "pods/proxy",
		"pods/ephemeralcontainers", "nodes/proxy", "services/proxy", "serviceaccounts", "serviceaccounts/token"}
)

func TestRulesGrantNothingDangerous(t *testing.T) {
	rendered := overlay(t, []string{"default"}, []string{"agent"})
	roles := rendered.ofKind("ClusterRole", "Role")
	if len(roles) != 10 {
		t.Errorf("%d roles are rendered, want 10: a new one belongs in this test's thoughts too", len(roles))
	}
	for _, object := range roles {
		for _, rule := range convert[rbacv1.ClusterRole](t, object).Rules {
			for _, list := range []struct {
				what        string
				has, hasNot []string
			}{
				{"verb", rule.Verbs, forbiddenVerbs},
				{"group", rule.APIGroups, forbiddenGroups},
				{"resource", rule.Resources, forbiddenResources},
				{"URL", rule.NonResourceURLs, []string{"*", "/*"}},
			} {
				for _, item := range list.has {
					if slices.Contains(list.hasNot, item) {
						t.Errorf("%s %s grants the %s %q", object.GetKind(), object.GetName(), list.what, item)
					}
				}
			}
		}
	}
}

// Only the accounts of the manager and the agent are bound, and only to roles that come with them.
func TestBindings(t *testing.T) {
	rendered := overlay(t, []string{"default"}, []string{"agent"})
	got := map[string]string{}
	for _, object := range rendered.ofKind("ClusterRoleBinding", "RoleBinding") {
		binding := convert[rbacv1.RoleBinding](t, object)
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "storagebench-manager", Namespace: namespace}}
		if strings.HasPrefix(object.GetName(), "storagebench-agent") {
			want = []rbacv1.Subject{{Kind: "ServiceAccount", Name: "storagebench-agent", Namespace: "storagebench-agent"}}
		}
		if diff := cmp.Diff(want, binding.Subjects); diff != "" {
			t.Errorf("%s: subjects (-want +got):\n%s", object.GetName(), diff)
		}
		got[object.GetKind()+" "+object.GetName()] = binding.RoleRef.Kind + " " + binding.RoleRef.Name
	}
	want := map[string]string{
		"ClusterRoleBinding storagebench-agent":         "ClusterRole storagebench-agent",
		"ClusterRoleBinding storagebench-manager":       "ClusterRole storagebench-manager",
		"ClusterRoleBinding storagebench-manager-reads": "ClusterRole storagebench-manager-reads",
		"ClusterRoleBinding storagebench-manager-pools": "ClusterRole storagebench-manager-pools",
		"RoleBinding storagebench-agent-events":         "Role storagebench-agent-events",
		"ClusterRoleBinding storagebench-metrics-auth":  "ClusterRole storagebench-metrics-auth",
		"RoleBinding storagebench-manager-leases":       "Role storagebench-manager-leases",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
}

// The user roles reach people through the cluster's own edit and view roles.
func TestUserRolesAggregate(t *testing.T) {
	rendered := kustomize(t, "config/default")
	for name, label := range map[string]string{
		"storagebench-editor": "rbac.authorization.k8s.io/aggregate-to-edit",
		"storagebench-viewer": "rbac.authorization.k8s.io/aggregate-to-view",
	} {
		role := get[rbacv1.ClusterRole](t, rendered, "ClusterRole /"+name)
		if role.Labels[label] != "true" {
			t.Errorf("%s has no label %s=true: %v", name, label, role.Labels)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if resource != "storagebenchmarks" && resource != "benchmarkruns" && resource != "storagetargets" {
					t.Errorf("%s reaches %s, which is for cluster admins", name, resource)
				}
			}
		}
	}
}

// The API server does what config/rbac/users.yaml says about `admin`: it includes the rules of edit.
func TestEditFlowsIntoAdmin(t *testing.T) {
	edit := &rbacv1.ClusterRole{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "edit"}, edit); err != nil {
		t.Fatal(err)
	}
	if edit.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] != "true" {
		t.Errorf("edit has the labels %v", edit.Labels)
	}
}
