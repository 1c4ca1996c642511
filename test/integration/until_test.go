package integration

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// TestUntilOperationEnds: the pod is notified when its operation is over, and not before, and only once, although the manager is restarted.
// The times before, during and after the operation are in the results.
func TestUntilOperationEnds(t *testing.T) {
	t.Parallel()
	var guard sync.Mutex
	var from, to time.Time
	var files []corev1.Volume
	l := startNodes(t, 1, func(request workload.Request, pod *corev1.Pod) sim.Script {
		if request.Phase.Name != "busy" {
			return sim.Script{}
		}
		guard.Lock()
		defer guard.Unlock()
		files = pod.Spec.Volumes
		return sim.Script{Hold: true, Document: func(document *results.PhaseDocument) {
			guard.Lock()
			defer guard.Unlock()
			measureSteadily(t, document, from, to)
		}}
	})
	benchmark := l.submitOnDisks("bench", oneDisk+`
phases:
- {name: fill, fill: {to: 50%}}
- name: busy
  measure:
    workload: {oltp: {updatePercent: 25, duration: 1m}}
    operate: {scrub: {}}
    operateAfter: 3s
    until: OperationEnds
    afterOperation: 20s
repetitions: 1
gates:
- {name: as-before, expression: "phase('busy').workload('after').readBytesPerSecond >= phase('busy').workload('before').readBytesPerSecond"}
`)
	var run v1alpha1.BenchmarkRun
	operation := &v1alpha1.PoolOperation{}
	l.eventually("the scrub", func(g gomega.Gomega) {
		all := l.runs()
		g.Expect(all).To(gomega.HaveLen(1))
		run = all[0]
		key := client.ObjectKey{Name: runs.CompanionName(&run, run.Spec.Phases[1], runs.Beside)}
		g.Expect(l.live.Get(t.Context(), key, operation)).To(gomega.Succeed())
		g.Expect(operation.Status.StartedAt).NotTo(gomega.BeNil())
	})
	g := gomega.NewWithT(t)
	key := client.ObjectKey{Namespace: run.Namespace, Name: naming.PhaseEndName(run.Name, "busy")}
	var told, again corev1.ConfigMap
	g.Expect(apierrors.IsNotFound(l.live.Get(t.Context(), key, &told))).To(gomega.BeTrue(), "the scrub is still at work")
	l.stop() // the operation ends while no manager looks
	l.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := l.live.Get(t.Context(), client.ObjectKeyFromObject(operation), operation); err != nil {
			return err
		}
		operation.Status.FinishedAt, operation.Status.Outcome = ptr.To(metav1.NewTime(operation.Status.StartedAt.Add(30*time.Second))),
			v1alpha1.OutcomeSucceeded
		return l.live.Status().Update(t.Context(), operation)
	}))
	l.startManager(config)
	l.eventually("word for the pod", func(g gomega.Gomega) { g.Expect(l.live.Get(t.Context(), key, &told)).To(gomega.Succeed()) })
	end := operation.Status.FinishedAt.Add(21 * time.Second)
	g.Expect(told.Data).To(gomega.Equal(map[string]string{workload.EndKey: workload.EndText(string(run.UID), end)}))
	l.stop()
	l.startManager(config)
	guard.Lock()
	from, to = operation.Status.StartedAt.Add(-30*time.Second), end.Add(time.Second)
	g.Expect(files[len(files)-1].ConfigMap).NotTo(gomega.BeNil())
	g.Expect(files[len(files)-1].ConfigMap.Name).To(gomega.Equal(key.Name))
	guard.Unlock()
	l.cluster.Release(nil)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	l.must(l.live.Get(t.Context(), key, &again))
	g.Expect(again.UID).To(gomega.Equal(told.UID))
	l.poolsGone()
}

// measureSteadily fills a document with a workload that has the same rate in each second of a period.
func measureSteadily(t *testing.T, document *results.PhaseDocument, from, to time.Time) {
	t.Helper()
	long := to.Sub(from).Milliseconds()
	var points []map[string]int64
	for at := int64(0); at < long; at += 1000 {
		points = append(points, map[string]int64{"fromMilliseconds": at, "toMilliseconds": min(at+1000, long), "readBytes": 1 << 20,
			"writtenBytes": 1 << 18})
	}
	var err error
	document.Raw, err = json.Marshal(map[string]any{"series": map[string]any{"points": points,
		"measured": []map[string]int64{{"fromMilliseconds": 0, "toMilliseconds": long}}}})
	if err != nil {
		t.Error(err)
	}
	document.StartedAt, document.FinishedAt, document.Measured = from, to, []results.Interval{{From: from, To: to}}
	document.Metrics["readBytes"], document.Metrics["writtenBytes"] = int64(len(points))<<20, int64(len(points))<<18
}
