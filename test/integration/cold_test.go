package integration

import (
	"sync"
	"testing"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// TestColdAndArchive: the pool of a phase with a cold cache is exported and imported before its pod and its observation, once; and the pod of
// a log with an archiver has both volumes.
func TestColdAndArchive(t *testing.T) {
	t.Parallel()
	var guard sync.Mutex
	var order []string
	var asked *workload.Request
	l := startNodes(t, 1, func(request workload.Request, _ *corev1.Pod) sim.Script {
		guard.Lock()
		defer guard.Unlock()
		switch request.Phase.Name {
		case "scan":
			order = append(order, "pod")
		case "switch":
			asked = &request
		}
		return sim.Script{}
	})
	watchAll(l, &v1alpha1.PoolOperationList{}, func(change watch.EventType, operation *v1alpha1.PoolOperation) {
		guard.Lock()
		defer guard.Unlock()
		action := operation.Spec.Action
		switch {
		case operation.Labels[v1alpha1.LabelPhase] != "scan":
		case change == watch.Added && action.Observe != nil:
			order = append(order, "observe")
		case change == watch.Added && action.ExportImport != nil:
			order = append(order, "export")
		case change == watch.Modified && action.ExportImport != nil && operation.Status.Outcome != "" && operation.DeletionTimestamp == nil:
			order = append(order, "imported")
		}
	})
	benchmark := l.submitOnDisks("bench", twoDisks+`
phases:
- {name: fill, fill: {to: 50%}}
- {name: scan, measure: {cache: Cold, workload: {scan: {streams: 4}}}}
- {name: less, free: {share: 30%}}
- {name: switch, measure: {workload: {redo: {duration: 1m, archive: {volume: other}}}}}
repetitions: 1
gates:
- {name: log-keeps-up, expression: "phase('switch').workload('redo').writeOperationsPerSecond > 1000.0"}
- {name: archive-keeps-up, expression: "phase('switch').workload('archive').writeBytesPerSecond > 1000.0"}
`)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	g := gomega.NewWithT(t)
	guard.Lock()
	defer guard.Unlock()
	g.Expect(order).To(gomega.HaveExactElements("export", "imported", "observe", "pod"))
	g.Expect(asked.Parts).To(gomega.HaveLen(2))
	g.Expect([]string{asked.Parts[0].Name, asked.Parts[1].Name, asked.Parts[1].Archives, asked.Parts[1].Path}).To(
		gomega.Equal([]string{"redo", "archive", "redo", "/data-other"}))
	_, outcome := l.results(benchmark, naming.ResultsName("bench", design.ID(l.get(benchmark))))
	g.Expect(outcome.Runs[0].Phases[2].Kind).To(gomega.Equal("free"))
	l.poolsGone()
}
