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

// AuditFolder is the environment variable that names the folder in which the audit logs of the test API servers are kept, each under the
// name of its package; test/audit reads them. Without it they are gone after the test.
const AuditFolder = "STORAGEBENCH_AUDIT"

// auditPolicy lets only the requests of service accounts be logged: those of the tests themselves do not count.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`

// auditLog is where the API server of this test writes.
var auditLog string

// configureAudit has the API server log what the manager and the agents ask of it. The returned function removes what is not kept.
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

// NothingForbidden returns an error that lists what the manager or an agent has asked for without having the right to it.
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
