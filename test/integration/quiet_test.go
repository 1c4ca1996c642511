package integration

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
)

// meter records the requests of a manager.
type meter struct {
	mutex sync.Mutex
	// reads of single benchmarks and runs, by path: every reconcile begins with one.
	reads  map[string]int
	writes []string
	of     *lab
}

// pass records a request and passes it on. It ignores events, which only announce a change, and dry runs, which change nothing.
func (m *meter) pass(request *http.Request, next http.RoundTripper) (*http.Response, error) {
	m.mutex.Lock()
	path := request.URL.Path
	switch {
	case request.Method == http.MethodGet:
		m.reads[path]++
	case strings.Contains(path, "/events") || request.URL.Query().Has("dryRun"):
	case m.of.others(path):
	default:
		m.writes = append(m.writes, request.Method+" "+path)
	}
	m.mutex.Unlock()
	return next.RoundTrip(request)
}

// reconciles returns how often an object was reconciled.
func (m *meter) reconciles(object client.Object, resource string) int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.reads[fmt.Sprintf("/apis/%s/namespaces/%s/%s/%s", v1alpha1.GroupVersion, object.GetNamespace(), resource, object.GetName())]
}

func (m *meter) written() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return append([]string{}, m.writes...)
}

// metered starts the manager with a meter.
func (l *lab) metered() *meter {
	l.t.Helper()
	m := &meter{reads: map[string]int{}, of: l}
	l.startManagerThrough(m.pass)
	return m
}

// touch changes an annotation without a meaning, and waits until the manager has looked at the object, several times.
func (l *lab) touch(m *meter, object client.Object, resource string) {
	l.t.Helper()
	for i := range 3 {
		looked := m.reconciles(object, resource)
		l.must(l.live.Get(l.t.Context(), client.ObjectKeyFromObject(object), object))
		before := object.DeepCopyObject().(client.Object)
		object.SetAnnotations(map[string]string{"storagebench.dev/irrelevant": fmt.Sprint(i)}) // others are not even watched
		l.must(l.live.Patch(l.t.Context(), object, client.MergeFrom(before)))
		l.eventually("a reconcile", func(g gomega.Gomega) { g.Expect(m.reconciles(object, resource)).To(gomega.BeNumerically(">", looked)) })
	}
}

// TestQuiet expects no writes for objects that have come to rest: finished, waiting, queued, suspended and stalled.
func TestQuiet(t *testing.T) {
	t.Parallel()
	l := newLab(t, holdRun("000", "read"))
	m := l.metered()
	holder := l.submit("holder", small)
	l.running("read", 1)
	queued := l.submit("queued", small)
	l.queued(queued, 1, holder)
	l.cluster.SetBehaviour(nil)
	l.finished(holder, v1alpha1.VerdictPassed)
	l.finished(queued, v1alpha1.VerdictPassed)
	l.cluster.SetBehaviour(holdRun("000", "read"))
	atWork := l.submit("at-work", small)
	l.running("read", 1)
	inLine := l.submit("in-line", small)
	l.queued(inLine, 1, atWork)
	waiting := l.submit("waiting", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.PodTemplate.NodeSelector["disk"] = "none" })
	l.waits(waiting, v1alpha1.ReasonNoNode)
	stalled := l.submit("stalled", small, gates("phase('read').readOperationsPerSecond >"))
	l.waits(stalled, v1alpha1.ReasonGateInvalid)
	suspended := l.submit("suspended", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = true })
	l.waits(suspended, v1alpha1.ReasonSuspended)
	l.eventually("rest", func(g gomega.Gomega) {
		before := len(m.written())
		g.Consistently(func() int { return len(m.written()) }).WithTimeout(soon / 3).WithPolling(polling).Should(gomega.Equal(before))
	})

	before := m.written()
	for _, benchmark := range []*v1alpha1.StorageBenchmark{holder, atWork, inLine, waiting, stalled, suspended} {
		l.touch(m, benchmark, "storagebenchmarks")
	}
	settled, working := 0, 0
	for _, run := range l.runs() {
		if runs.Settled(&run) { // it is not even read
			looked, changed := m.reconciles(&run, "benchmarkruns"), run.DeepCopy()
			changed.Annotations = map[string]string{"example.com/irrelevant": "yes"}
			l.must(l.live.Patch(t.Context(), changed, client.MergeFrom(&run)))
			defer func() {
				gomega.NewWithT(t).Expect(m.reconciles(&run, "benchmarkruns")).To(gomega.Equal(looked), "reads of a run at rest")
			}()
			settled++
			continue
		}
		l.touch(m, &run, "benchmarkruns")
		working++
	}
	if settled == 0 || working == 0 {
		t.Errorf("%d runs are settled and %d are not: one of each is to be looked at", settled, working)
	}
	node := &corev1.Node{}
	l.must(l.live.Get(t.Context(), client.ObjectKey{Name: l.node}, node))
	l.must(l.live.Update(t.Context(), node))
	gomega.NewWithT(t).Consistently(func() []string { return m.written()[len(before):] }).WithTimeout(soon/3).WithPolling(polling).
		Should(gomega.BeEmpty(), "writes for objects that have not changed")
}
