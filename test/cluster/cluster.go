// Package cluster starts a real kube-apiserver and etcd for tests, with this project's CRDs in it.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Root returns the root of the checkout.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Main runs the tests of a package with its own control plane, and stores the client configuration for it in config.
func Main(m *testing.M, config **rest.Config) {
	started, stop, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer stop()
	*config = started
	m.Run() // the exit code of the test program is its result
}

// Start starts a control plane. The caller must call stop at the end.
func Start() (config *rest.Config, stop func(), err error) { return start(false) }

// StartWithWatchCache is like Start, but the API server answers watches and lists from memory, as it does by default.
func StartWithWatchCache() (config *rest.Config, stop func(), err error) { return start(true) }

func start(watchCache bool) (config *rest.Config, stop func(), err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, nil, fmt.Errorf("KUBEBUILDER_ASSETS is not set: run the tests with 'make test', " +
			"or set it with: export KUBEBUILDER_ASSETS=$(hack/envtest-assets)")
	}
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return nil, nil, err
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join(Root(), "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	audit, err := configureAudit(environment)
	if err != nil {
		return nil, nil, err
	}
	environment.ControlPlane.GetAPIServer().Configure().
		Append("disable-admission-plugins", "ServiceAccount").
		// With the watch cache, a List just after a write of another kind waits up to 100 ms for the cache to catch up.
		Append("watch-cache", strconv.FormatBool(watchCache)).
		Append("enable-priority-and-fairness", "false")
	// A test's data may be lost with the machine: no need to wait for the disk.
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	environment.ControlPlane.Etcd.Configure().Append("unsafe-no-fsync", "true")
	// The servers inherit this: on two cores, they would spend half of their time on garbage collection.
	if err := os.Setenv("GOGC", "800"); err != nil {
		return nil, nil, err
	}
	config, err = environment.Start()
	if err != nil {
		return nil, nil, fmt.Errorf("start the test control plane: %w", err)
	}
	config.QPS = -1 // no limit: the managers of the tests have their own
	started = environment
	return config, func() {
		if err := errors.Join(environment.Stop(), audit()); err != nil {
			fmt.Fprintln(os.Stderr, "stop the test control plane:", err)
		}
	}, nil
}
