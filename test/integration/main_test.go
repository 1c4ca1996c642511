// Package integration runs the real manager against a real API server; test/sim plays the rest of the cluster.
package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/storagebench/storagebench/test/cluster"
)

// config has the rights of an admin, managerConfig those that the installation grants to the manager.
var config, managerConfig *rest.Config

func TestMain(m *testing.M) {
	flag.Parse()
	logger := logr.Discard()
	if os.Getenv("STORAGEBENCH_TEST_LOG") != "" { // the manager's log, for debugging
		logger = zap.New(zap.UseDevMode(true))
	}
	log.SetLogger(logger)
	// These tests wait more than they work.
	if err := flag.Set("test.parallel", "5"); err != nil {
		panic(err)
	}
	var stop func()
	var err error
	config, stop, err = cluster.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if managerConfig, err = cluster.Install(context.Background(), config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
	code := m.Run()
	if err := cluster.NothingForbidden(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	stop()
	os.Exit(code)
}
