package delivery

import (
	"context"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// access is one question to the API server: may this user do these verbs on group/resource in this namespace?
type access struct {
	verbs     string // separated by spaces
	group     string
	resource  string // may carry a subresource: pods/log
	namespace string // empty: in all namespaces, or cluster-wide
}

const (
	team  = "team-a" // any namespace that is not the operator's
	all   = ""
	bench = "storagebench.dev"
)

var managerMay = []access{
	{"get list watch patch delete", bench, "storagebenchmarks", all},
	{"update patch", bench, "storagebenchmarks/status", all},
	{"list watch", bench, "storagetargets", all},
	{"update", bench, "storagebenchmarks/finalizers", all},
	{"get list watch create patch delete", bench, "benchmarkruns", all},
	{"update", bench, "benchmarkruns/status", all},
	{"update", bench, "benchmarkruns/finalizers", all},
	{"get list watch create deletecollection", "batch", "jobs", all},
	{"list watch", "", "pods", all},
	{"get", "", "pods/log", team},
	{"get list watch create delete", "", "persistentvolumeclaims", all},
	{"get list watch create update delete", "", "configmaps", all},
	{"list watch", "", "events", all},
	{"create patch", "", "events", namespace},
	{"create patch", "events.k8s.io", "events", all},
	{"get list watch", "", "nodes", all},
	{"list watch", "storage.k8s.io", "storageclasses", all},
	{"get list watch create update delete", "coordination.k8s.io", "leases", namespace},
	{"create", "authentication.k8s.io", "tokenreviews", all},
	{"create", "authorization.k8s.io", "subjectaccessreviews", all},
}

// managerMayWithAgent is granted only with the agent.
var managerMayWithAgent = []access{
	{"get list watch create patch delete", bench, "benchmarkpools", all},
	{"update", bench, "benchmarkpools/status", all},
	{"get list watch create patch delete", bench, "pooloperations", all},
	{"update", bench, "pooloperations/status", all},
	{"get list watch create delete", "", "persistentvolumes", all},
	{"get create delete", "storage.k8s.io", "storageclasses", all},
	{"list watch", "storage.k8s.io", "csidrivers", all},
	{"list", "zfs.openebs.io", "zfsvolumes", all},
	{"list patch", "zfs.openebs.io", "zfsnodes", all},
}

var managerMayNot = []access{
	{"get list watch create update patch delete deletecollection", "", "secrets", team},
	{"get list watch create update patch delete deletecollection", "", "secrets", namespace},
	{"create get", "", "pods/exec", team},
	{"create get", "", "pods/attach", team},
	{"create get", "", "pods/portforward", team},
	{"update patch", "", "pods/ephemeralcontainers", team},
	{"create update patch delete deletecollection", "", "pods", team},
	{"create", "", "pods/eviction", team},
	{"update patch delete", "batch", "jobs", team},
	{"update patch deletecollection", "", "persistentvolumeclaims", team},
	{"update patch deletecollection", "", "persistentvolumes", all},
	{"patch deletecollection", "", "configmaps", team},
	{"get create update patch delete", "", "events", team},
	{"get", "", "pods", team},
	{"create update patch delete", "", "nodes", all},
	{"get create", "", "nodes/proxy", all},
	{"update patch deletecollection", "storage.k8s.io", "storageclasses", all},
	{"create update patch delete", "storage.k8s.io", "csidrivers", all},
	{"create update patch delete", "zfs.openebs.io", "zfsvolumes", all},
	{"create update delete", "zfs.openebs.io", "zfsnodes", all},
	{"get list watch create update delete", "coordination.k8s.io", "leases", team},
	{"get update", "coordination.k8s.io", "leases", "kube-node-lease"},
	{"create update deletecollection", bench, "storagebenchmarks", team},
	{"update deletecollection", bench, "benchmarkruns", team},
	{"update deletecollection", bench, "benchmarkpools", all},
	{"update deletecollection", bench, "pooloperations", all},
	{"get list create update delete", "", "namespaces", all},
	{"create update", "", "serviceaccounts", team},
	{"create", "", "serviceaccounts/token", team},
	{"impersonate", "", "users", all},
	{"impersonate", "", "serviceaccounts", team},
	{"get list create update patch delete bind escalate", "rbac.authorization.k8s.io", "clusterroles", all},
	{"create update patch", "rbac.authorization.k8s.io", "rolebindings", team},
	{"create update patch", "admissionregistration.k8s.io", "validatingwebhookconfigurations", all},
	{"create update patch delete", "apiextensions.k8s.io", "customresourcedefinitions", all},
	{"create update patch delete", "apps", "daemonsets", team},
	{"*", "*", "*", all},
}

// The power of an agent is limited to its node. In the cluster, it can only report what it found.
func testAgentAccess(t *testing.T) {
	checkAccess(t, agentAccount, []access{
		{"get list watch patch", bench, "benchmarkpools", all},
		{"update", bench, "benchmarkpools/status", all},
		{"get list watch patch", bench, "pooloperations", all},
		{"update", bench, "pooloperations/status", all},
		{"create patch", "events.k8s.io", "events", "default"},
	}, []access{
		{"create patch update delete", "events.k8s.io", "events", team},
		{"create patch update delete", "", "events", "default"},
		{"create update delete deletecollection", bench, "benchmarkpools", all},
		{"create update delete deletecollection", bench, "pooloperations", all},
		{"get list watch create update patch delete", bench, "storagebenchmarks", team},
		{"get list watch create update patch delete", bench, "benchmarkruns", team},
		{"get list watch create update patch delete", "", "secrets", all},
		{"get list watch create update patch delete", "", "configmaps", agents},
		{"get list watch create update patch delete", "", "pods", agents},
		{"create get", "", "pods/exec", agents},
		{"get list update patch", "", "nodes", all},
		{"get list create update patch delete", "", "persistentvolumes", all},
		{"create", "", "serviceaccounts/token", agents},
		{"*", "*", "*", all},
	})
}

// Without the agent, the manager has none of the rights that targets on pools need.
func testManagerAccess(t *testing.T) {
	checkAccess(t, serviceAccount, managerMay, append(managerMayNot[:len(managerMayNot):len(managerMayNot)], managerMayWithAgent...))
}

func testManagerAccessWithAgent(t *testing.T) {
	apply(t, overlay(t, nil, []string{"agent"}).ofKind("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
		"RoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"))
	checkAccess(t, serviceAccount, append(managerMay[:len(managerMay):len(managerMay)], managerMayWithAgent...), managerMayNot)
}

// Users bound to the two user roles in one namespace, as edit and view would bind them.
func testUserAccess(t *testing.T) {
	for user, role := range map[string]string{"edith": "storagebench-editor", "victor": "storagebench-viewer"} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role, Namespace: team},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		}
		if err := admin.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	reads := []access{{"get list watch", bench, "storagebenchmarks", team}, {"get list watch", bench, "benchmarkruns", team},
		{"get list watch", bench, "storagetargets", team}}
	never := []access{
		{"create update patch delete deletecollection", bench, "benchmarkruns", team},
		{"update patch", bench, "storagebenchmarks/status", team},
		{"get list create delete", bench, "storagebenchmarks", "team-b"},
		{"get list create update patch delete", bench, "benchmarkpools", all},
		{"get list create update patch delete", bench, "pooloperations", all},
	}
	write := access{"create update patch delete deletecollection", bench, "storagebenchmarks", team}
	checkAccess(t, "edith", append(reads[:2:2], write), never)
	checkAccess(t, "victor", reads, append(never[:5:5], write))
}

// checkAccess asks the API server. It asks for the allowed verbs first and waits for them, because new rules take a moment to arrive.
func checkAccess(t *testing.T, user string, may, mayNot []access) {
	t.Helper()
	for _, row := range may {
		for verb := range strings.FieldsSeq(row.verbs) {
			err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
				return allowed(t, user, row, verb), nil
			})
			if err != nil {
				t.Errorf("%s may not %s %s/%s in %q, but has to", user, verb, row.group, row.resource, row.namespace)
			}
		}
	}
	for _, row := range mayNot {
		for verb := range strings.FieldsSeq(row.verbs) {
			if allowed(t, user, row, verb) {
				t.Errorf("%s may %s %s/%s in %q, but must not", user, verb, row.group, row.resource, row.namespace)
			}
		}
	}
}

func allowed(t *testing.T, user string, row access, verb string) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(row.resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: groupsOf(user),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: row.group, Resource: resource, Subresource: subresource, Namespace: row.namespace,
		},
	}}
	if err := admin.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// groupsOf returns the groups in which the API server puts a user or a ServiceAccount.
func groupsOf(user string) []string {
	groups := []string{"system:authenticated"}
	if account, is := strings.CutPrefix(user, "system:serviceaccount:"); is {
		of, _, _ := strings.Cut(account, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+of)
	}
	return groups
}
