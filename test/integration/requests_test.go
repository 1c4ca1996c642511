package integration

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/test/sim"
)

// counter counts the requests of a manager by verb and resource, except its watches and the lists that begin them.
type counter struct {
	mutex sync.Mutex
	made  map[string]int
	of    *lab
}

func (c *counter) pass(request *http.Request, next http.RoundTripper) (*http.Response, error) {
	response, err := next.RoundTrip(request)
	path, query := request.URL.Path, request.URL.Query()
	if !c.of.others(path) && !query.Has("watch") && !query.Has("resourceVersion") && (strings.Contains(path, "/namespaces/") || strings.Contains(path, "/nodes/")) {
		what := request.Method + " nodes"
		if _, namespaced, is := strings.Cut(path, "/namespaces/"); is {
			parts := strings.Split(namespaced, "/")
			what = request.Method + " " + strings.Join(append(parts[1:2], parts[min(3, len(parts)):]...), "/")
		}
		if query.Has("dryRun") {
			what += " (dry run)"
		}
		if err == nil && response.StatusCode == http.StatusNotFound {
			what += " (not found)"
		}
		c.mutex.Lock()
		c.made[what]++
		c.mutex.Unlock()
	}
	return response, err
}

// others reports whether a path is in the namespace or about the node of another lab. PoolOperations are in no namespace, and those of
// other labs wake the manager of this one for their runs too.
func (l *lab) others(path string) bool {
	for kind, own := range map[string][]string{"/namespaces/": l.namespaces, "/nodes/": l.nodes} {
		if _, named, is := strings.Cut(path, kind); is {
			name, _, _ := strings.Cut(named, "/")
			return !slices.Contains(own, name)
		}
	}
	return false
}

// take returns what was counted since the last time, and in total.
func (c *counter) take() (made map[string]int, total int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	made, c.made = c.made, map[string]int{}
	for _, count := range made {
		total += count
	}
	return made, total
}

func table(made map[string]int, runs int) (text string) {
	for _, what := range slices.Sorted(maps.Keys(made)) {
		text += fmt.Sprintf("  %6.2f %s\n", float64(made[what])/float64(runs), what)
	}
	return text
}

// counted starts the manager with a counter.
func (l *lab) counted() *counter {
	l.t.Helper()
	c := &counter{made: map[string]int{}, of: l}
	l.startManagerThrough(c.pass)
	return c
}

// TestRequestsPerRun counts all requests of a run with two phases, from the creation of a benchmark with few and with many runs.
func TestRequestsPerRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.limits = experiment.Limits{}
	c := l.counted()
	measure := func(name string, repetitions int32) (map[string]int, int) {
		c.take()
		l.finished(l.submit(name, small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = repetitions }), v1alpha1.VerdictPassed)
		l.nothingLeft(&coordinationv1.LeaseList{})
		return c.take()
	}
	single, alone := measure("single", 1)
	t.Logf("%d requests of a benchmark with one run of two phases:\n%s", alone, table(single, 1))
	// 40 are usual. There were 58 before a reconcile continued with the objects that it had written.
	if alone > 46 || alone < 30 {
		t.Errorf("%d requests of a benchmark with one run, want 30 to 46", alone)
	}
	_, few := measure("few", 2)
	made, many := measure("many", 6)
	perRun := float64(many-few) / 4
	t.Logf("%.1f requests per run of two phases; a benchmark of 6 runs makes, per run:\n%s", perRun, table(made, 6))
	// 24 are intended, and 23 usual. On a busy machine a watch is late, and now and then a read is repeated.
	if limit := 12.0 + 6*2 + 2; perRun > limit || perRun < 16 {
		t.Errorf("%.1f requests per run, want 16 to %.0f", perRun, limit)
	}
	if made["POST events"] > 5 {
		t.Errorf("%d events of a benchmark with 6 runs, want a handful", made["POST events"])
	}
}

// TestRequestsPerCompletion counts the requests of a completion with 40 benchmarks behind one node, until the first ten show their new
// places: the number of the others must not matter.
func TestRequestsPerCompletion(t *testing.T) {
	t.Parallel()
	const queued, completions = 40, 3
	l := newLab(t, nil)
	l.limits = experiment.Limits{}
	c := l.counted()
	l.cluster.SetBehaviour(inPhase("read", sim.Script{Hold: true}))
	l.submit("first", small)
	l.running("read", 1)
	for i := range queued {
		l.submit(fmt.Sprintf("q-%02d", i), small)
	}
	settled := func(done int) {
		l.running("read", 1)
		l.eventually("all stand in the queue, and the first ten know their places", func(g gomega.Gomega) {
			var all v1alpha1.StorageBenchmarkList
			g.Expect(l.live.List(t.Context(), &all, client.InNamespace(l.namespaces[0]))).To(gomega.Succeed())
			waiting, finished, places := 0, 0, map[int32]bool{}
			for _, one := range all.Items {
				if one.Status.Verdict != "" {
					finished++
				}
				if queue := one.Status.Queue; queue != nil {
					waiting++
					places[queue.Position] = true
				}
			}
			g.Expect(finished).To(gomega.Equal(done))
			g.Expect(waiting).To(gomega.Equal(queued - done))
			g.Expect(places).To(gomega.HaveLen(experiment.PlacesShown+1), "the places that are shown, and 0 for the others")
		})
	}
	settled(0)
	c.take()
	for i := range completions {
		l.cluster.Release(nil)
		settled(i + 1)
	}
	made, total := c.take()
	perCompletion := float64(total) / completions
	t.Logf("%.1f requests per completion with about %d queued:\n%s", perCompletion, queued, table(made, completions))
	if perCompletion > 50 || perCompletion < 35 {
		t.Errorf("%.1f requests per completion, want 35 to 50", perCompletion)
	}
	if writes := made["PATCH storagebenchmarks/status"]; writes < completions*(experiment.PlacesShown-1) {
		t.Errorf("%d new places were written in %d completions: the places were not counted", writes, completions)
	}
}
