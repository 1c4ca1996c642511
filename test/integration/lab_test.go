package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/runs"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimeconfig "sigs.k8s.io/controller-runtime/pkg/config"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/cluster"
	"github.com/storagebench/storagebench/test/sim"
)

const (
	runnerImage = "registry.example/storagebench/runner:v1"
	// patience is for machines that are busy with something else.
	patience = 3 * time.Minute
	polling  = 30 * time.Millisecond
)

// lab is a test's own part of the cluster: namespaces, a node, a storage class, a simulated cluster and a manager. All its
// namespaces refuse pods that do not pass the restricted Pod Security level.
type lab struct {
	t    *testing.T
	live client.WithWatch
	// namespaces of the benchmarks; the Leases are in the first.
	namespaces  []string
	node, class string
	nodes       []string
	cluster     *sim.Cluster
	journal     *journal
	clock       *movedClock
	// limits of the admin, none unless a test sets them; grace is how long a stuck teardown holds its node.
	limits experiment.Limits
	grace  time.Duration
	// metrics of the manager, if a test sets it.
	metrics prometheus.Registerer
	stop    func()
}

// newLab makes a lab without a manager.
func newLab(t *testing.T, behaviour sim.Behaviour, moreNamespaces ...string) *lab {
	t.Helper()
	return newLabOn(t, 1, behaviour, moreNamespaces...)
}

// newLabOn makes a lab of several nodes. The names of the others are that of the first with -2 and so on behind it.
func newLabOn(t *testing.T, count int, behaviour sim.Behaviour, moreNamespaces ...string) *lab {
	t.Helper()
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, strings.TrimPrefix(t.Name(), "Test")), "-")
	name = strings.Trim(name[:min(len(name), 50)], "-")
	// weather_test names a PriorityClass that does not exist. The limits allow it, because otherwise it is refused before its absence is
	// found.
	l := &lab{t: t, limits: experiment.Limits{PriorityClasses: []string{"not-there"}}, namespaces: append([]string{name}, moreNamespaces...),
		node: "node-" + name, class: "class-" + name, stop: func() {}, clock: &movedClock{}}
	scheme, err := controllers.Scheme()
	l.must(err)
	l.live, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	l.must(err)
	for _, namespace := range l.namespaces {
		l.must(l.live.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}))
	}
	l.nodes = []string{l.node}
	for i := 2; i <= count; i++ {
		l.nodes = append(l.nodes, fmt.Sprintf("%s-%d", l.node, i))
	}
	l.cluster, err = sim.New(config, sim.Options{Namespaces: l.namespaces, Nodes: l.nodes, Behaviour: behaviour})
	l.must(err)
	t.Cleanup(l.cluster.Close)
	l.must(l.cluster.CreateNodes(t.Context()))
	l.must(l.cluster.CreateStorageClass(t.Context(), l.class, false))
	l.journal = l.keepJournal()
	l.background("the simulated cluster", l.cluster.Run)
	t.Cleanup(func() {
		if t.Failed() {
			l.dump()
		}
	})
	return l
}

// start makes a lab whose manager runs.
func start(t *testing.T, behaviour sim.Behaviour, moreNamespaces ...string) *lab {
	t.Helper()
	l := newLab(t, behaviour, moreNamespaces...)
	l.startManager(config)
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// background runs a function in parallel with the test until the end of the test, or until the returned function is called. It is an error
// if the function ends earlier.
func (l *lab) background(what string, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := run(ctx)
		if ctx.Err() == nil {
			l.t.Errorf("%s ended before the test did: %v", what, err)
		} else if err != nil {
			l.t.Errorf("%s ended badly: %v", what, err)
		}
	}()
	stop = func() { cancel(); <-done }
	l.t.Cleanup(stop)
	return stop
}

// startManager starts the real manager, as cmd/manager does.
func (l *lab) startManager(config *rest.Config) {
	l.t.Helper()
	l.must(cluster.GrantLeases(l.t.Context(), l.live, l.namespaces[0]))
	// With the rights of the installation: a missing right shows as a benchmark that does not end.
	config = cluster.WithCredentials(config, managerConfig)
	options := controllers.Options{
		LeaseNamespace: l.namespaces[0], Namespaces: l.namespaces, RunnerImage: runnerImage, Concurrency: 2, BenchmarkClock: l.clock,
		Timings: runs.Timings{CollectGrace: 500 * time.Millisecond, UnreadableGrace: 3 * time.Second, CompanionGrace: 10 * time.Second,
			TeardownGrace: l.grace},
		Limits: l.limits, Metrics: l.metrics, BenchmarkMetrics: 200,
	}
	scheme, err := controllers.Scheme()
	l.must(err)
	caches, err := controllers.Cache(options)
	l.must(err)
	skip := true
	manager, err := ctrl.NewManager(controllers.ClientConfig(config), ctrl.Options{
		Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: runtimeconfig.Controller{SkipNameValidation: &skip},
	})
	l.must(err)
	l.must(controllers.Setup(manager, options))
	l.stop = l.background("the manager", manager.Start)
}

// startManagerThrough starts the manager with all its requests going through a function that passes them on.
func (l *lab) startManagerThrough(pass func(request *http.Request, next http.RoundTripper) (*http.Response, error)) {
	l.t.Helper()
	wrapped := rest.CopyConfig(config)
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return pass(request, next) })
	})
	l.startManager(wrapped)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// small is an experiment of one run with two phases.
const small = `
phases:
- {name: fill, fill: {to: 50%}}
- {name: read, measure: {workload: {oltp: {workers: 2}}}}
repetitions: 1
`

// submit creates a benchmark on the lab's node and, if it names no target, on its storage class.
func (l *lab) submit(name, spec string, change ...func(*v1alpha1.StorageBenchmark)) *v1alpha1.StorageBenchmark {
	l.t.Helper()
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespaces[0], Name: name}}
	l.must(yaml.UnmarshalStrict([]byte(spec), &benchmark.Spec))
	if benchmark.Spec.Target == (v1alpha1.Target{}) {
		l.must(yaml.UnmarshalStrict(fmt.Appendf(nil, "storageClass: {name: %s, size: 64Mi}", l.class), &benchmark.Spec.Target))
	}
	benchmark.Spec.PodTemplate.NodeSelector = map[string]string{corev1.LabelHostname: l.node}
	for _, do := range change {
		do(benchmark)
	}
	l.must(l.live.Create(l.t.Context(), benchmark))
	return benchmark
}

// change patches a benchmark.
func (l *lab) change(benchmark *v1alpha1.StorageBenchmark, do func(*v1alpha1.StorageBenchmark)) {
	l.t.Helper()
	var current v1alpha1.StorageBenchmark
	l.must(l.live.Get(l.t.Context(), client.ObjectKeyFromObject(benchmark), &current))
	before := current.DeepCopy()
	do(&current)
	l.must(l.live.Patch(l.t.Context(), &current, client.MergeFrom(before)))
}

// get reads a benchmark.
func (l *lab) get(benchmark *v1alpha1.StorageBenchmark) *v1alpha1.StorageBenchmark {
	l.t.Helper()
	var current v1alpha1.StorageBenchmark
	l.must(l.live.Get(l.t.Context(), client.ObjectKeyFromObject(benchmark), &current))
	return &current
}

// eventually repeats the assertions until all hold.
func (l *lab) eventually(what string, assert func(g gomega.Gomega)) {
	l.t.Helper()
	gomega.NewWithT(l.t).Eventually(assert).WithTimeout(patience).WithPolling(polling).Should(gomega.Succeed(), what)
}

// runs lists the runs of all namespaces of the lab by name.
func (l *lab) runs() []v1alpha1.BenchmarkRun {
	l.t.Helper()
	var all []v1alpha1.BenchmarkRun
	for _, namespace := range l.namespaces {
		var runs v1alpha1.BenchmarkRunList
		l.must(l.live.List(l.t.Context(), &runs, client.InNamespace(namespace)))
		all = append(all, runs.Items...)
	}
	slices.SortFunc(all, func(a, b v1alpha1.BenchmarkRun) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// firstAttempt gives a script to the first attempt at each run, and success to further ones.
func firstAttempt(script sim.Script) sim.Behaviour {
	return func(request workload.Request, _ *corev1.Pod) sim.Script {
		if request.Run.Name[len(request.Run.Name)-4] != '-' { // BENCHMARK-HASH-000-2
			return sim.Script{}
		}
		return script
	}
}

// inPhase gives a script to one phase of every run, and success to the others.
func inPhase(phase string, script sim.Script) sim.Behaviour {
	return func(request workload.Request, _ *corev1.Pod) sim.Script {
		if string(request.Phase.Name) != phase {
			return sim.Script{}
		}
		return script
	}
}

// dump logs the state of the lab's objects, to help to find out why a test failed.
func (l *lab) dump() {
	ctx := context.Background()
	for _, namespace := range l.namespaces {
		for _, list := range []client.ObjectList{&v1alpha1.StorageBenchmarkList{}, &v1alpha1.BenchmarkRunList{}, &corev1.PodList{}} {
			if err := l.live.List(ctx, list, client.InNamespace(namespace)); err != nil {
				l.t.Log(err)
			}
			switch list := list.(type) {
			case *v1alpha1.StorageBenchmarkList:
				for _, item := range list.Items {
					l.tell("benchmark", &item, item.Status.State, item.Status.Conditions)
				}
			case *v1alpha1.BenchmarkRunList:
				for _, item := range list.Items {
					l.tell("run", &item, item.Status.State, item.Status.Conditions)
				}
			case *corev1.PodList:
				for _, item := range list.Items {
					l.tell("pod", &item, string(item.Status.Phase), nil)
				}
			}
		}
	}
	for _, execution := range l.cluster.Executions() {
		l.t.Logf("execution %s %s, ended %t (%d)", execution.Pod, execution.Phase, execution.Ended, execution.ExitCode)
	}
}

func (l *lab) tell(kind string, object client.Object, state string, conditions []metav1.Condition) {
	l.t.Logf("%s %s/%s: %s (generation %d, deleted %v, finalizers %v)", kind, object.GetNamespace(), object.GetName(), state,
		object.GetGeneration(), object.GetDeletionTimestamp(), object.GetFinalizers())
	for _, condition := range conditions {
		l.t.Logf("    %s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
}
