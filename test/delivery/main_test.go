// Package delivery checks what users install: the kustomize tree, the Helm chart, the rights they grant, and the image.
package delivery

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/test/cluster"
)

// The namespace, the release and the account of an installation unless a user chooses others.
const (
	namespace      = cluster.ManagerNamespace
	release        = "storagebench"
	serviceAccount = cluster.ManagerAccount
)

var (
	config *rest.Config
	admin  client.Client
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if err := noteInputs(); err != nil {
		return 0, err
	}
	started, stop, err := cluster.Start()
	if err != nil {
		return 0, err
	}
	defer stop()
	config = started
	if admin, err = client.New(config, client.Options{}); err != nil {
		return 0, err
	}
	code := m.Run()
	return code, cluster.NothingForbidden()
}

// noteInputs opens every file that helm and kustomize will read. `go test` repeats a cached pass unless a file that the test itself opened
// has changed, and it does not see the files that the programs we start open.
func noteInputs() error {
	for _, folder := range []string{"config", "charts", "tools/helm", "tools/kustomize"} {
		err := filepath.WalkDir(filepath.Join(cluster.Root(), folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			_, err = os.ReadFile(path)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
