// Command scale measures the manager against a real kube-apiserver and etcd, with a simulated cluster around them: many benchmarks on
// some nodes, and beside them the same work as bare claims and Jobs. `make bench-scale` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"

	"github.com/storagebench/storagebench/controllers"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/test/cluster"
)

const leaseNamespace = "scale-system"

func main() {
	n := flag.Int("n", 30, "benchmarks, and bare claims with Jobs")
	nodes := flag.Int("nodes", 0, "nodes (defaults to n/10)")
	bare := flag.Bool("bare", true, "measure bare Jobs too")
	finish := flag.Int("finish", 0, "stop after this many completions (defaults to n)")
	timeout := flag.Duration("timeout", 10*time.Minute, "give up after this time")
	flag.Parse()
	if *nodes == 0 {
		*nodes = max(1, *n/10)
	}
	if *finish == 0 {
		*finish = *n
	}
	ctrl.SetLogger(logr.Discard())
	if err := run(*n, *nodes, *finish, *bare, *timeout); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(n, nodes, finish int, bare bool, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	config, stop, err := cluster.Start()
	if err != nil {
		return err
	}
	defer func() { cancel(); stop() }() // watches keep the API server from stopping
	commit, _ := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	fmt.Printf("commit %s, %s/%s, %d CPUs; %d benchmarks of one run with two phases, %d nodes\n", strings.TrimSpace(string(commit)),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), n, nodes)
	field, err := newField(ctx, config, n, nodes)
	if err != nil {
		return err
	}
	defer field.close()
	bareRate := 0.0
	if bare {
		if bareRate, err = field.bareJobs(ctx); err != nil {
			return fmt.Errorf("bare Jobs: %w", err)
		}
	}
	count := &counter{made: map[string]int{}}
	if err := startManager(ctx, config, count); err != nil {
		return err
	}
	rate, err := field.benchmarks(ctx, finish)
	if err != nil {
		return err
	}
	made := count.total()
	fmt.Printf("completed per second  %8.2f (bare Jobs: %.2f, ratio %.2f)\n", rate, bareRate, rate/max(bareRate, 1e-9))
	fmt.Printf("requests per run      %8.1f\n", float64(made)/float64(field.done()))
	fmt.Printf("creation to Lease     %8s p50 %8s p99\n", quantile(field.toLease, 0.5), quantile(field.toLease, 0.99))
	fmt.Printf("node handover         %8s p50 %8s p99\n", quantile(field.handover, 0.5), quantile(field.handover, 0.99))
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err == nil {
		seconds := float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
		fmt.Printf("CPU                   %8.2f s, peak memory %d MiB (manager, simulated cluster and this program together)\n", seconds,
			usage.Maxrss>>10)
	}
	fmt.Print(count.table(field.done()))
	return nil
}

// startManager starts the real manager, without limits for namespaces.
func startManager(ctx context.Context, config *rest.Config, count *counter) error {
	config = controllers.ClientConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		count.next = next
		return count
	})
	options := controllers.Options{LeaseNamespace: leaseNamespace, RunnerImage: "registry.example/runner:v1", Concurrency: 4,
		Timings: runs.DefaultTimings(), WithoutAgent: true}
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	caches, err := controllers.Cache(options)
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := controllers.Setup(manager, options); err != nil {
		return err
	}
	go func() {
		if err := manager.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the manager:", err)
		}
	}()
	return nil
}

// counter counts the requests of the manager, but for its watches.
type counter struct {
	next  http.RoundTripper
	mutex sync.Mutex
	made  map[string]int
}

func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if query := request.URL.Query(); !query.Has("watch") && !query.Has("resourceVersion") {
		parts := strings.Split(request.URL.Path, "/")
		what := parts[len(parts)-1]
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
