// The manager reconciles StorageBenchmarks and BenchmarkRuns. It is unprivileged and touches no disk.
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/flagenv"
	"github.com/storagebench/storagebench/internal/runs"

	_ "time/tzdata"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/validation"

	// time/tzdata is imported above because schedules have time zones, and the image may have no tzdata.

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/storagebench/storagebench/controllers"
)

// version is set by the linker.
var version = "dev"

type settings struct {
	options        controllers.Options
	metricsAddress string
	probeAddress   string
	leaderElection bool
	agent          bool
	clusterReads   bool
	logs           zap.Options
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run() error {
	var s settings
	s.options.Timings, s.options.Version = runs.DefaultTimings(), version
	s.logs.TimeEncoder = zapcore.ISO8601TimeEncoder
	flag.StringVar(&s.options.RunnerImage, "runner-image", "", "image of the workload pods (required)")
	flag.StringVar(&s.options.PostgresImage, "postgres-image", "",
		"image of the workload pods of experiments with the workload postgres (defaults to --runner-image)")
	flag.BoolVar(&s.agent, "agent", false,
		"the agent is installed, and the manager has the permissions for zfs targets; without it, benchmarks with zfs targets are Stalled")
	flag.Func("namespaces", "comma-separated list of namespaces to watch (defaults to all)", func(text string) (err error) {
		s.options.Namespaces, err = parseNamespaces(text)
		return err
	})
	flag.BoolVar(&s.clusterReads, "cluster-reads", true, "the manager may read nodes and StorageClasses; otherwise each benchmark must "+
		"name both")
	flag.StringVar(&s.options.LeaseNamespace, "lease-namespace", os.Getenv("POD_NAMESPACE"),
		"namespace of the node Leases of benchmarks (defaults to the manager's namespace)")
	flag.IntVar(&s.options.Concurrency, "concurrency", 4, "number of objects that each controller reconciles concurrently")
	flag.StringVar(&s.metricsAddress, "metrics-bind-address", ":8443", "address for metrics over HTTPS with authentication; 0 disables them")
	flag.IntVar(&s.options.BenchmarkMetrics, "benchmark-metrics", 200,
		"number of benchmarks with metrics of their own, the oldest ones; 0 means none")
	flag.StringVar(&s.probeAddress, "health-probe-bind-address", ":8081", "address for /healthz and /readyz")
	flag.BoolVar(&s.leaderElection, "leader-elect", false, "elect a leader among several managers")
	bindLimits(&s.options)
	s.logs.BindFlags(flag.CommandLine)
	flag.Parse()
	if err := flagenv.Apply(flag.CommandLine, os.Environ()); err != nil {
		return err
	}
	s.options.WithoutAgent, s.options.WithoutClusterReads = !s.agent, !s.clusterReads
	if s.metricsAddress != "0" {
		s.options.Metrics = metrics.Registry
	}

	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&s.logs)))
	if s.options.RunnerImage == "" {
		return errors.New("--runner-image is not set: set it, or FLAG_RUNNER_IMAGE, to the image of the workload pods")
	}
	if s.options.LeaseNamespace == "" {
		return errors.New("--lease-namespace is not set and there is no POD_NAMESPACE: set it to the manager's namespace")
	}
	if err := s.options.Limits.Validate(); err != nil {
		return err
	}
	if s.options.BenchmarkMetrics < 0 {
		return errors.New("--benchmark-metrics is negative: write 0 for none")
	}
	if s.options.Timings.TeardownGrace < 0 {
		return errors.New("--teardown-grace is negative: write 0 to wait forever")
	}
	manager, err := newManager(s)
	if err != nil {
		return err
	}
	if err := controllers.Setup(manager, s.options); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// parseNamespaces parses a comma-separated list of names.
func parseNamespaces(text string) ([]string, error) {
	names := strings.Split(text, ",")
	for _, name := range names {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is not the name of a namespace: %s", name, problems[0])
		}
	}
	return names, nil
}

// bindLimits defines the flags with which the admin limits what a benchmark may request.
func bindLimits(options *controllers.Options) {
	options.Limits = experiment.DefaultLimits()
	limits := &options.Limits
	flag.DurationVar(&limits.MaxHold, "max-hold", limits.MaxHold,
		"how long a benchmark may hold its nodes, and the longest deadline that it may request; 0 means no limit")
	flag.DurationVar(&limits.MaxStartDeadline, "max-start-deadline", limits.MaxStartDeadline,
		"the longest startDeadline that a phase may request; 0 means no limit")
	flag.DurationVar(&options.Timings.TeardownGrace, "teardown-grace", options.Timings.TeardownGrace,
		"how long a teardown without progress holds the node after the last pod of the run has stopped; 0 means forever")
	flag.IntVar(&limits.NodesPerNamespace, "nodes-per-namespace", limits.NodesPerNamespace,
		"nodes that the benchmarks of a namespace may hold and wait for at the same time; 0 means no limit")
	flag.IntVar(&limits.BenchmarksPerNamespace, "benchmarks-per-namespace", limits.BenchmarksPerNamespace,
		"benchmarks of a namespace that may hold nodes or be queued at the same time; 0 means no limit")
	flag.BoolFunc("keep-pools", "whether benchmarks may keep pools, and so hold their disks, from one scheduled experiment to the next "+
		"(target.zfs.keepFor) or after their runs (retain) (defaults to true)", func(text string) error {
		allowed, err := strconv.ParseBool(text)
		limits.ForbidKeeping = !allowed
		return err
	})
	flag.Func("max-priority", "comma-separated list of NAMESPACE=NUMBER, or *=NUMBER for all others: the highest spec.priority of the "+
		"benchmarks of a namespace (defaults to 0)", numbers(&limits.MaxPriority))
	flag.Func("queue-weights", "comma-separated list of NAMESPACE=NUMBER, or *=NUMBER for all others: weight of a namespace in the queue of "+
		"a node. With team-a=2, team-a gets two turns for each turn of another waiting namespace (defaults to 1)", numbers(&limits.QueueWeights))
	flag.Func("priority-classes", "comma-separated list of PriorityClasses that workload pods may use (defaults to none)",
		words(&limits.PriorityClasses))
	flag.Func("toleration-keys",
		"comma-separated list of taint keys that workload pods may tolerate; a trailing '*' matches a prefix "+
			"(defaults to all except those of Kubernetes itself)", words(&limits.TolerationKeys))
}

// numbers parses a comma-separated list of NAMESPACE=NUMBER.
func numbers(into *map[string]int32) func(string) error {
	return func(text string) error {
		for _, word := range strings.Split(text, ",") {
			namespace, number, found := strings.Cut(strings.TrimSpace(word), "=")
			value, err := strconv.ParseInt(number, 10, 32)
			if !found || err != nil {
				return fmt.Errorf("%q: write NAMESPACE=NUMBER, or *=NUMBER for all others", word)
			}
			if *into == nil {
				*into = map[string]int32{}
			}
			(*into)[namespace] = int32(value)
		}
		return nil
	}
}

// words parses a comma-separated list.
func words(list *[]string) func(string) error {
	return func(text string) error {
		for _, word := range strings.Split(text, ",") {
			*list = append(*list, strings.TrimSpace(word))
		}
		return nil
	}
}

func newManager(s settings) (ctrl.Manager, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	caches, err := controllers.Cache(s.options)
	if err != nil {
		return nil, err
	}
	// An API server that is unavailable for half a minute must not cost the manager its leadership: the next leader would have to wait as
	// well.
	lease, renew, retry := time.Minute, 45*time.Second, 5*time.Second
	manager, err := ctrl.NewManager(controllers.ClientConfig(config), ctrl.Options{
		Scheme: scheme,
		Cache:  caches,
		Metrics: metricsserver.Options{
			BindAddress: s.metricsAddress, SecureServing: true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
			// HTTP/2 has a history of cheap denial-of-service attacks, and a scraper does not need it.
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
		},
		HealthProbeBindAddress:        s.probeAddress,
		LeaderElection:                s.leaderElection,
		LeaderElectionID:              "manager.storagebench.dev",
		LeaderElectionNamespace:       s.options.LeaseNamespace,
		LeaderElectionReleaseOnCancel: true, // run ends the process right after Start returns
		LeaseDuration:                 &lease, RenewDeadline: &renew, RetryPeriod: &retry,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return manager, errors.Join(manager.AddHealthzCheck("ping", healthz.Ping), manager.AddReadyzCheck("ping", healthz.Ping))
}
