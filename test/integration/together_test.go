package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// TestTogether: one pod runs the workloads of all volumes, both pools are observed meanwhile, and gates read the figures of each workload.
func TestTogether(t *testing.T) {
	t.Parallel()
	var guard sync.Mutex
	var asked *workload.Request
	claims, pools := map[string]bool{}, map[string]bool{}
	l := startNodes(t, 1, func(request workload.Request, pod *corev1.Pod) sim.Script {
		guard.Lock()
		defer guard.Unlock()
		if request.Phase.Name == "busy" {
			asked = &request
			for _, one := range pod.Spec.Volumes {
				if one.PersistentVolumeClaim != nil {
					claims[one.PersistentVolumeClaim.ClaimName] = true
				}
			}
		}
		return sim.Script{}
	})
	l.background("a look at the operations", func(ctx context.Context) error {
		operations, err := l.live.Watch(ctx, &v1alpha1.PoolOperationList{})
		if err != nil {
			return err
		}
		defer operations.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case event := <-operations.ResultChan():
				operation, is := event.Object.(*v1alpha1.PoolOperation)
				if is && event.Type == watch.Added && operation.Labels[v1alpha1.LabelPhase] == "busy" &&
					operation.Labels[v1alpha1.LabelNamespace] == l.namespaces[0] {
					guard.Lock()
					pools[operation.Spec.Pool] = operation.Spec.Action.Observe != nil
					guard.Unlock()
				}
			}
		}
		return nil
	})
	benchmark := l.submit("bench", fmt.Sprintf(`
target:
  zfs:
    nodes: {matchLabels: {lab-of: %s}}
    pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}
    dataset: {provisioner: Local, size: 64Mi}
    volumes:
    - {name: log, pool: {vdevs: [{devices: [/dev/disk/by-id/b]}]}, dataset: {provisioner: Local, size: 64Mi}}
phases:
- {name: fill, fill: {to: 50%%}}
- name: busy
  measure:
    workloads:
    - {name: reads, oltp: {workers: 2, duration: 1m}}
    - {name: redo, volume: log, redo: {duration: 1m}}
repetitions: 1
gates:
- {name: log-keeps-up, expression: "phase('busy').workload('redo').writeOperationsPerSecond > 1000.0"}
`, l.namespaces[0]), func(b *v1alpha1.StorageBenchmark) { b.Spec.PodTemplate.NodeSelector = nil })
	l.finished(benchmark, v1alpha1.VerdictPassed)
	g := gomega.NewWithT(t)
	run := l.runs()[0]
	guard.Lock()
	defer guard.Unlock()
	g.Expect(asked.Parts).To(gomega.HaveLen(2))
	g.Expect([]string{asked.Parts[0].Path, asked.Parts[1].Path}).To(gomega.Equal([]string{"/data-data", "/data-log"}))
	g.Expect(asked.Parts[1].Source).To(gomega.HavePrefix(naming.RunPoolName(&run, "log") + "/"))
	g.Expect(claims).To(gomega.HaveLen(2))
	g.Expect(pools).To(gomega.Equal(map[string]bool{naming.RunPoolName(&run, "data"): true, naming.RunPoolName(&run, "log"): true}))
	_, outcome := l.results(benchmark, naming.ResultsName("bench", experiment.ID(l.get(benchmark))))
	g.Expect(outcome.Runs[0].Phases[1].Metrics).To(gomega.HaveKey("redo.writeLatencyP99Nanoseconds"))
	l.poolsGone()
}
