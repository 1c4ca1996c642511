// The agent reconciles the BenchmarkPools and PoolOperations of its node. It is the only privileged program of storagebench: it
// runs the node's zpool and zfs. It reads no objects of other kinds, not even Secrets.
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/agent/pools"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/controllers/metrics"
	"github.com/storagebench/storagebench/controllers/operation"
	"github.com/storagebench/storagebench/controllers/pool"
	"github.com/storagebench/storagebench/internal/flagenv"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

// version is set by the linker.
var version = "dev"

type settings struct {
	nodeName       string
	policy         pools.DevicePolicy
	parameters     operations.ParameterAllowlist
	multihost      bool
	metricsAddress string
	probeAddress   string
	logs           zap.Options
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run() error {
	var s settings
	s.logs.TimeEncoder = zapcore.ISO8601TimeEncoder
	flag.StringVar(&s.nodeName, "node-name", os.Getenv("NODE_NAME"), "node that the agent runs on")
	flag.Func("allow-device", "device that pools may use, as PATTERN for pools without a namespace or NAMESPACE=PATTERN, such as "+
		"lab=/dev/disk/by-id/nvme-bench-*; may be repeated; none by default", func(text string) error {
		grant, err := pools.ParseDeviceGrant(text)
		s.policy = append(s.policy, grant)
		return err
	})
	flag.Func("allow-parameter",
		"OpenZFS module parameter that operations may set temporarily, with the allowed values, such as zfs_txg_timeout=1..60, "+
			"zfs_arc_max=0|1073741824..8589934592 or, for every value, zfs_txg_timeout=*; may be repeated; none by default",
		func(text string) error {
			grant, err := operations.ParseParameterGrant(text)
			s.parameters = append(s.parameters, grant)
			return err
		})
	flag.BoolVar(&s.multihost, "multihost", false,
		"set multihost=on on new pools, for disks that other hosts can access too; the node needs a host ID "+
			"that no other host has (zgenhostid), and each disk is written about once a second")
	flag.StringVar(&s.metricsAddress, "metrics-bind-address", "0",
		"address for metrics over HTTPS with authentication, such as :8443; 0 disables them")
	flag.StringVar(&s.probeAddress, "health-probe-bind-address", ":8081", "address for /healthz and /readyz")
	s.logs.BindFlags(flag.CommandLine)
	flag.Parse()
	if err := flagenv.Apply(flag.CommandLine, os.Environ(), "allow-device", "allow-parameter"); err != nil {
		return err
	}

	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&s.logs)))
	if s.nodeName == "" {
		return errors.New("--node-name is not set and there is no NODE_NAME: set it to the node that the agent runs on")
	}
	manager, err := newManager(s)
	if err != nil {
		return err
	}
	if err := addControllers(manager, s); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// addControllers adds both controllers. They share the turns, so that neither changes a pool between the other's check of it and the action
// that follows.
func addControllers(manager ctrl.Manager, s settings) error {
	programs, disks, turns := zfs.FromPod(), &guard.Bounded{Disks: host.NewNode(host.NodeRoot)}, &guard.Turns{}
	client, watch := zfs.New(programs), &stuck{turns: turns, disks: disks, programs: programs}
	attempts := &guard.Attempts{Root: host.NodeRoot}
	if err := errors.Join(manager.Add(watch), manager.Add(attempts), manager.AddHealthzCheck("turns", watch.check)); err != nil {
		return fmt.Errorf("watch for stuck work: %w", err)
	}
	if s.metricsAddress != "0" {
		shown := metrics.Agent{Node: s.nodeName, Version: version,
			Hanging: func() (int, int) { return len(programs.Hanging()), len(disks.Hanging()) }}
		if err := shown.SetupWithManager(manager, registry.Registry); err != nil {
			return fmt.Errorf("set up the metrics: %w", err)
		}
	}
	recorder := manager.GetEventRecorder("storagebench-agent")
	pools := &pool.Reconciler{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Recorder: recorder,
		NodeName: s.nodeName, Policy: s.policy, Multihost: s.multihost, ZFS: client, Disks: disks, Turns: turns,
		Attempts: attempts, Releases: &guard.Releases{Root: host.NodeRoot},
	}
	if err := pools.SetupWithManager(manager); err != nil {
		return fmt.Errorf("set up the pool controller: %w", err)
	}
	operations := &operation.Reconciler{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Recorder: recorder,
		NodeName: s.nodeName, Agent: string(uuid.NewUUID()), Policy: s.policy, Parameters: s.parameters,
		ZFS: client, Disks: disks, Root: host.NodeRoot, Turns: turns, Attempts: attempts, Clock: clock.RealClock{},
	}
	if err := operations.SetupWithManager(manager); err != nil {
		return fmt.Errorf("set up the operation controller: %w", err)
	}
	return nil
}

func newManager(s settings) (ctrl.Manager, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	scheme, err := pool.Scheme()
	if err != nil {
		return nil, err
	}
	memory := pool.Cache(s.nodeName)
	memory.ByObject[&v1alpha1.PoolOperation{}] = operation.Cached(s.nodeName)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache:  memory,
		Metrics: metricsserver.Options{BindAddress: s.metricsAddress, SecureServing: true, FilterProvider: metrics.Access,
			// HTTP/2 has a history of cheap denial-of-service attacks, and a scraper does not need it.
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}},
		HealthProbeBindAddress: s.probeAddress,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return manager, errors.Join(manager.AddHealthzCheck("ping", healthz.Ping), manager.AddReadyzCheck("ping", healthz.Ping))
}
