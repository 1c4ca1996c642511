//go:build linux

// Command scale measures the manager against a real kube-apiserver and etcd, with a simulated cluster around them: many benchmarks on some
// nodes, and for comparison the same work as bare claims and Jobs. `make bench-scale` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimeconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"

	"github.com/storagebench/storagebench/controllers"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/test/bench/machine"
	"github.com/storagebench/storagebench/test/cluster"
)

const leaseNamespace = "scale-system"

func main() {
	var asked settings
	flag.IntVar(&asked.n, "n", 30, "benchmarks, and bare claims with Jobs")
	flag.IntVar(&asked.nodes, "nodes", 0, "nodes (defaults to n/10)")
	flag.BoolVar(&asked.bare, "bare", true, "measure bare Jobs too")
	flag.BoolVar(&asked.queue, "queue", false, "let all benchmarks and one of another namespace queue before the first one ends, and count from then on")
	flag.BoolVar(&asked.restart, "restart", false, "at the end, start another manager")
	flag.IntVar(&asked.foreign, "foreign", 0, "create this many pods and events of others before the benchmarks")
	flag.IntVar(&asked.finish, "finish", 0, "stop after this many completions (defaults to n)")
	flag.DurationVar(&asked.timeout, "timeout", 10*time.Minute, "give up after this time")
	flag.StringVar(&asked.profile, "profile", "", "write a profile of this program's processor time with the manager to this file")
	flag.Parse()
	if asked.nodes == 0 {
		asked.nodes = max(1, asked.n/10)
	}
	if asked.finish == 0 {
		asked.finish = asked.n
	}
	ctrl.SetLogger(logr.Discard())
	if err := run(asked); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	n, nodes, finish, foreign int
	bare, queue, restart      bool
	timeout                   time.Duration
	profile                   string
}

func run(asked settings) error {
	ctx, cancel := context.WithTimeout(context.Background(), asked.timeout)
	defer cancel()
	config, stop, err := cluster.StartWithWatchCache()
	if err != nil {
		return err
	}
	defer func() { cancel(); stop() }() // watches keep the API server from stopping
	fmt.Printf("%s\n%d benchmarks of one run with two phases, %d nodes\n", machine.Describe(ctx), asked.n, asked.nodes)
	field, err := newField(ctx, config, asked.n, asked.nodes)
	if err != nil {
		return err
	}
	defer field.close()
	bareRate := 0.0
	if asked.bare {
		before := used()
		if bareRate, err = field.bareJobs(ctx); err != nil {
			return fmt.Errorf("measure bare Jobs: %w", err)
		}
		fmt.Printf("CPU of bare Jobs, each  %s\n", used().since(before, asked.n))
	}
	count := &counter{made: map[string]int{}}
	stopManager, err := startManager(ctx, config, count)
	if err != nil {
		return err
	}
	if asked.foreign > 0 {
		if err := field.foreign(ctx, asked.foreign); err != nil {
			return err
		}
	}
	if err := field.measure(ctx, asked, count, bareRate); err != nil || !asked.restart {
		return err
	}
	stopManager()
	return field.restart(ctx, config)
}

// measure lets the manager work, and prints the costs.
func (f *field) measure(ctx context.Context, asked settings, count *counter, bareRate float64) error {
	stopProfile, err := startProfile(asked.profile)
	if err != nil {
		return err
	}
	defer stopProfile()
	before, began := used(), time.Now()
	if asked.queue {
		err = f.queue(ctx, count)
		before, began = used(), time.Now()
	} else {
		err = f.create(ctx)
	}
	if err != nil {
		return err
	}
	if err := until(ctx, "enough have finished", func() bool { return f.done() >= asked.finish }); err != nil {
		return fmt.Errorf("%d of %d: %w", f.done(), asked.finish, err)
	}
	rate := float64(f.done()) / time.Since(began).Seconds()
	fmt.Printf("CPU of benchmarks, each %s\n", used().since(before, f.done()))
	fmt.Printf("completed per second  %8.2f\n", rate)
	if bareRate > 0 {
		fmt.Printf("bare Jobs per second  %8.2f, ratio %.2f\n", bareRate, rate/bareRate)
	}
	f.print(count)
	return nil
}

func (f *field) print(count *counter) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	done := len(f.finished)
	fmt.Printf("requests per completion %6.1f\n", float64(count.total())/float64(done))
	fmt.Printf("creation to Lease     %8s p50 %8s p99\n", quantile(f.toLease, 0.5), quantile(f.toLease, 0.99))
	fmt.Printf("node handover         %8s p50 %8s p99\n", quantile(f.handover, 0.5), quantile(f.handover, 0.99))
	if peak, err := machine.PeakBytes(); err == nil {
		fmt.Printf("peak memory           %8d MiB (manager, simulated cluster and this program together)\n", peak>>20)
	}
	fmt.Print(count.table(done))
}

// startProfile writes a profile until the returned function is called.
func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = file.Close() }, pprof.StartCPUProfile(file)
}

// startManager starts the real manager, without limits for namespaces, and waits for its caches. The returned function stops it, and waits
// until it has stopped.
func startManager(ctx context.Context, config *rest.Config, count *counter) (stop func(), err error) {
	config = controllers.ClientConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		count.next = next
		return count
	})
	options := controllers.Options{LeaseNamespace: leaseNamespace, RunnerImage: "registry.example/runner:v1", Concurrency: 4,
		Timings: runs.DefaultTimings(), WithoutAgent: true}
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	caches, err := controllers.Cache(options)
	if err != nil {
		return nil, err
	}
	skip := true // there may be a second one
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: runtimeconfig.Controller{SkipNameValidation: &skip}})
	if err != nil {
		return nil, err
	}
	if err := controllers.Setup(manager, options); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := manager.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the manager:", err)
		}
	}()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		err = errors.New("the caches of the manager are not filled")
	}
	return func() { cancel(); <-stopped }, err
}

// counter counts the requests of the manager, except its watches.
type counter struct {
	next  http.RoundTripper
	mutex sync.Mutex
	made  map[string]int
}

func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if query := request.URL.Query(); !query.Has("watch") && !query.Has("resourceVersion") {
		parts := strings.Split(request.URL.Path, "/")
		what := parts[len(parts)-1]
		if named := map[string]int{"api": 3, "apis": 4}[parts[1]]; named > 0 && len(parts) == named+2 { // such as /api/v1/nodes/n1
			what = parts[named]
		}
		if at := strings.Index(request.URL.Path, "/namespaces/"); at >= 0 {
			parts = strings.Split(request.URL.Path[at+1:], "/")
			what = strings.Join(append(parts[min(2, len(parts)-1):min(3, len(parts))], parts[min(4, len(parts)):]...), "/")
		}
		c.mutex.Lock()
		c.made[request.Method+" "+what]++
		c.mutex.Unlock()
	}
	return c.next.RoundTrip(request)
}

func newClients(config *rest.Config) (client.WithWatch, error) {
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}
