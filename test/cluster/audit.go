package cluster

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/storagebench/storagebench/test/audit"
)

// AuditFolder is the environment variable that names the folder for the audit logs of the test API servers, each named after its package;
// test/audit reads them. If it is not set, the logs are deleted after the test.
const AuditFolder = "STORAGEBENCH_AUDIT"

// auditPolicy logs only the requests of service accounts: the requests of the tests themselves do not count.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`

// auditLog is the path of the audit log of this test's API server.
var auditLog string

// configureAudit makes the API server log the requests of the manager and the agents. The returned function removes the files that are not
// kept.
func configureAudit(environment *envtest.Environment) (remove func() error, err error) {
	folder, err := os.MkdirTemp("", "storagebench-audit-")
	if err != nil {
		return nil, err
	}
	policy := filepath.Join(folder, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	auditLog = filepath.Join(folder, "audit.log")
	if kept := os.Getenv(AuditFolder); kept != "" {
		folderOfPackage, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		auditLog = filepath.Join(kept, filepath.Base(folderOfPackage)+".log")
		if err := errors.Join(os.MkdirAll(kept, 0o755), os.WriteFile(auditLog, nil, 0o600)); err != nil {
			return nil, err
		}
	}
	environment.ControlPlane.GetAPIServer().Configure().Append("audit-policy-file", policy).Append("audit-log-path", auditLog)
	return func() error { return os.RemoveAll(folder) }, nil
}

// NothingForbidden returns an error that lists the rights that the manager or an agent needed and did not have.
func NothingForbidden() error {
	log, err := audit.Read(auditLog)
	if err != nil {
		return err
	}
	if filter := flag.Lookup("test.run"); len(log.Used) == 0 && filter.Value.String() == "" {
		return fmt.Errorf("the audit log %s of the test API server shows no request of the manager or an agent", auditLog)
	}
	return log.Missing()
}
