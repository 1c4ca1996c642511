// Package controllers sets up the reconcilers, their caches and their clients. It is shared by the manager and by the tests that
// run the manager against a real API server.
package controllers

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/runs"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/kubernetes/scheme"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/benchmark"
	"github.com/storagebench/storagebench/controllers/bylabel"
	"github.com/storagebench/storagebench/controllers/fresh"
	"github.com/storagebench/storagebench/controllers/line"
	"github.com/storagebench/storagebench/controllers/lostnode"
	"github.com/storagebench/storagebench/controllers/metrics"
	"github.com/storagebench/storagebench/controllers/run"
	"github.com/storagebench/storagebench/controllers/trim"
	"github.com/storagebench/storagebench/internal/workload"
)

// Options are the options of the controllers.
type Options struct {
	// LeaseNamespace holds the Leases of nodes: the operator's own namespace.
	LeaseNamespace string
	// RunnerImage of the workload pods.
	RunnerImage string
	// PostgresImage of the workload pods of experiments with the workload postgres. Defaults to RunnerImage.
	PostgresImage string
	// Namespaces to watch. Empty means all.
	Namespaces []string
	// WithoutAgent is true if no agent is installed. The manager then has no permissions for pools, PersistentVolumes and related objects, and
	// neither watches nor reads them.
	WithoutAgent bool
	// WithoutClusterReads is true if the manager may read neither nodes nor StorageClasses.
	WithoutClusterReads bool
	Timings             runs.Timings
	// Limits of what a benchmark may request.
	Limits experiment.Limits
	// Concurrency of each controller.
	Concurrency int
	// BenchmarkClock is the clock for schedules. Nil means the real time.
	BenchmarkClock clock.PassiveClock
	// Metrics is where the metrics are registered. Nil means no metrics.
	Metrics prometheus.Registerer
	// BenchmarkMetrics is how many benchmarks have metrics of their own.
	BenchmarkMetrics int
	// Version of the program, for the metrics.
	Version string
}

// Scheme contains all kinds that the manager uses.
func Scheme() (*runtime.Scheme, error) {
	all := runtime.NewScheme()
	if err := scheme.AddToScheme(all); err != nil {
		return nil, err
	}
	return all, v1alpha1.AddToScheme(all)
}

// Cache restricts the manager's caches to the objects that it created itself, the documents for its gates, and Warnings about its objects.
// Of these, only the fields that it reads are cached: tenants can write many such objects, with the manager's labels.
func Cache(options Options) (cache.Options, error) {
	made, err := labels.NewRequirement(v1alpha1.LabelBenchmarkUID, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	// Baselines and calibrations that are stored in Git have the label with the name of a benchmark, but not the one with its UID.
	speaks, err := labels.NewRequirement(v1alpha1.LabelBenchmark, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	lease, err := labels.NewRequirement(v1alpha1.LabelNodeLease, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	ours := func(transform toolscache.TransformFunc) cache.ByObject {
		return cache.ByObject{Label: labels.NewSelector().Add(*made), Transform: transform}
	}
	// Most Warnings are about pods and nodes, and the manager does not need those.
	concerning := fields.AndSelectors(fields.OneTermEqualSelector("type", corev1.EventTypeWarning),
		fields.OneTermNotEqualSelector("involvedObject.kind", "Pod"), fields.OneTermNotEqualSelector("involvedObject.kind", "Node"))
	settings := cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   ours(trim.Pod),
			&corev1.PersistentVolumeClaim{}: ours(trim.Claim),
			&corev1.PersistentVolume{}:      ours(trim.Metadata),
			&corev1.ConfigMap{}:             {Label: labels.NewSelector().Add(*speaks), Transform: trim.Metadata},
			&batchv1.Job{}:                  ours(trim.Job),
			&corev1.Node{}:                  {Transform: trim.Node},
			&v1alpha1.StorageBenchmark{}:    {Transform: trim.Benchmark},
			&v1alpha1.BenchmarkRun{}:        {Transform: trim.Run},
			&v1alpha1.StorageTarget{}:       {Transform: trim.Metadata},
			&v1alpha1.PoolOperation{}:       {Transform: trim.Operation},
			&corev1.Event{}:                 {Field: concerning, Transform: trim.Event},
			&coordinationv1.Lease{}: {
				Namespaces: map[string]cache.Config{options.LeaseNamespace: {LabelSelector: labels.NewSelector().Add(*lease)}},
			},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
	if len(options.Namespaces) > 0 {
		settings.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range options.Namespaces {
			settings.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return settings, nil
}

// Setup registers the controllers with a manager.
func Setup(manager ctrl.Manager, options Options) error {
	clients, err := corev1client.NewForConfigAndClient(manager.GetConfig(), manager.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create a client for pod logs: %w", err)
	}
	if err := bylabel.Setup(context.Background(), manager.GetFieldIndexer(), options.WithoutAgent); err != nil {
		return err
	}
	cached := bylabel.Client{Client: manager.GetClient()}
	settings := controller.Options{MaxConcurrentReconciles: max(1, options.Concurrency), ReconciliationTimeout: 2 * time.Minute}
	memory, stored := &fresh.Memory[*v1alpha1.BenchmarkRun]{}, &fresh.Stored{}
	reconciler := &run.Reconciler{
		Memory: memory, Stored: stored,
		Client: cached, Live: manager.GetAPIReader(), Logs: PodLogs{clients},
		Recorder: manager.GetEventRecorder("storagebench"), Clock: clock.RealClock{},
		LeaseNamespace: options.LeaseNamespace, Timings: options.Timings,
		WithoutAgent: options.WithoutAgent, WithoutClusterReads: options.WithoutClusterReads,
	}
	if err := reconciler.SetupWithManager(manager, settings); err != nil {
		return fmt.Errorf("set up the run controller: %w", err)
	}
	if options.BenchmarkClock == nil {
		options.BenchmarkClock = clock.RealClock{}
	}
	documents, err := documentReader(manager)
	if err != nil {
		return fmt.Errorf("create a client for the results of phases: %w", err)
	}
	benchmarks := &benchmark.Reconciler{
		Client: cached, Live: manager.GetAPIReader(), Documents: stored.Reader(cached, documents),
		Recorder: manager.GetEventRecorder("storagebench"), Clock: options.BenchmarkClock,
		LeaseNamespace: options.LeaseNamespace,
		Images:         experiment.Images{Runner: options.RunnerImage, Postgres: options.PostgresImage},
		WithoutAgent:   options.WithoutAgent, WithoutClusterReads: options.WithoutClusterReads,
		Runs: memory, Line: line.New(options.Limits), Limits: options.Limits, TeardownGrace: options.Timings.TeardownGrace,
	}
	// Its reconciles have a deadline of their own, which reading thousands of documents extends.
	if err := benchmarks.SetupWithManager(manager, controller.Options{MaxConcurrentReconciles: settings.MaxConcurrentReconciles}); err != nil {
		return fmt.Errorf("set up the benchmark controller: %w", err)
	}
	if options.Metrics != nil {
		shown := metrics.Manager{Version: options.Version, PhaseKind: workload.KindOf, Invalidating: runs.Invalidating(),
			Lines: benchmarks.Line.Lengths, MaxBenchmarks: options.BenchmarkMetrics, WithoutAgent: options.WithoutAgent}
		if err := shown.SetupWithManager(manager, options.Metrics); err != nil {
			return fmt.Errorf("set up the metrics: %w", err)
		}
	}
	if options.WithoutAgent {
		return nil
	}
	lost := &lostnode.Reconciler{Client: cached, Live: manager.GetAPIReader(), Recorder: manager.GetEventRecorder("storagebench")}
	if err := lost.SetupWithManager(manager, settings); err != nil {
		return fmt.Errorf("set up the controllers for lost nodes: %w", err)
	}
	return nil
}

// documentReader returns a reader from the API server without a client-side throttle. The callers limit the load by making only a few reads
// at a time.
func documentReader(manager ctrl.Manager) (client.Reader, error) {
	config := rest.CopyConfig(manager.GetConfig())
	config.QPS = -1
	return client.New(config, client.Options{HTTPClient: manager.GetHTTPClient(), Scheme: manager.GetScheme(),
		Mapper: manager.GetRESTMapper()})
}

// PodLogs reads container logs from the API server.
type PodLogs struct{ Clients corev1client.PodsGetter }

// maxLogBytes limits how much of a log is read. Progress lines and a result document need far less.
const maxLogBytes = 64 << 20

// ReadLog opens the log of a container.
func (p PodLogs) ReadLog(ctx context.Context, namespace, pod, container string) (io.ReadCloser, error) {
	return p.Clients.Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, LimitBytes: new(int64(maxLogBytes))}).Stream(ctx)
}

// ClientConfig raises the client-side throttle, which is meant for command-line tools. The API server has its own fairness.
func ClientConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400
	return config
}
