package audit_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/storagebench/storagebench/test/audit"
	"github.com/storagebench/storagebench/test/cluster"
)

// TestRights compares the roles with the logs of the test API servers: make audit-rights
func TestRights(t *testing.T) {
	folder := os.Getenv(cluster.AuditFolder)
	if folder == "" {
		t.Skip("needs the audit logs of test/delivery and test/integration: make audit-rights")
	}
	log, err := audit.Read(filepath.Join(folder, "delivery.log"), filepath.Join(folder, "integration.log"))
	if err != nil {
		t.Fatalf("%v: make audit-rights", err)
	}
	roles, err := cluster.Rules("rbac/manager", "rbac/leases", "rbac/metrics", "agent/manager", "agent/rbac")
	if err != nil {
		t.Fatal(err)
	}
	delete(roles, "storagebench-metrics-reader") // for people and Prometheus
	rows := audit.Table(roles, log)
	if len(rows) < 60 {
		t.Errorf("the roles grant only %d rights: has the test read them?", len(rows))
	}
	t.Logf("\n%s", audit.Text(rows))
	if err := log.Missing(); err != nil {
		t.Error(err)
	}
	for _, problem := range audit.Problems(rows, log) {
		t.Error(problem)
	}
}

// TestTable: the table shows a right that nothing needs, a missing right and an unnecessary reason.
func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	line := func(user, verb, ref, decision string) string {
		return `{"user":{"username":"system:serviceaccount:x:` + user + `"},"verb":"` + verb + `","requestURI":"/somewhere","objectRef":` + ref +
			`,"annotations":{"authorization.k8s.io/decision":"` + decision + `"}}` + "\n"
	}
	jobs, logs := `{"resource":"jobs","apiGroup":"batch"}`, `{"resource":"pods","subresource":"log"}`
	text := line("storagebench-manager", "create", jobs, "allow") + line("storagebench-manager", "create", jobs, "allow") +
		line("storagebench-manager", "get", logs, "forbid") + line("storagebench-agent", "list", jobs, "allow") + line("other", "delete", jobs,
		"forbid")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := audit.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := audit.Table(map[string][]rbacv1.PolicyRule{"storagebench-manager": {{APIGroups: []string{"batch"}, Resources: []string{"jobs"},
		Verbs: []string{"create", "delete"}}}}, log)
	if len(rows) != 2 || rows[0].Requests != 2 || rows[1].Requests != 0 {
		t.Errorf("rows %+v", rows)
	}
	if err := log.Missing(); err == nil || !strings.Contains(err.Error(), "manager get pods/log (/somewhere)") ||
		strings.Contains(err.Error(), "delete") {
		t.Errorf("what is missing: %v", err)
	}
	problems := audit.Problems(rows, log)
	for _, want := range []string{"manager delete jobs.batch is granted by storagebench-manager, and no test needs it",
		"agent list jobs.batch was allowed, but none of our roles grants it",
		"manager patch events has a reason"} {
		if !slices.ContainsFunc(problems, func(problem string) bool { return strings.HasPrefix(problem, want) }) {
			t.Errorf("not found: %s, in %q", want, problems)
		}
	}
	if _, err := audit.Read(filepath.Join(t.TempDir(), "none.log")); err == nil {
		t.Error("a log that is not there is read")
	}
}
