package integration

import (
	"sync"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// TestMadeVolumes: volumes that operations make are measured like any others, each with its own claim, and nothing of them is left. This is
// also true if the manager is restarted again and again, at random moments.
func TestMadeVolumes(t *testing.T) {
	for name, restarts := range map[string]int{"undisturbed": 0, "restarts": 8} {
		t.Run(name, func(t *testing.T) { madeVolumes(t, restarts) })
	}
}

func madeVolumes(t *testing.T, restarts int) {
	t.Helper()
	var guard sync.Mutex
	sources, claims, executed := map[string]string{}, map[string]string{}, map[string]int{}
	var pool v1alpha1.BenchmarkPool
	var l *lab
	l = startNodes(t, 1, func(request workload.Request, pod *corev1.Pod) sim.Script {
		guard.Lock()
		defer guard.Unlock()
		phase := string(request.Phase.Name)
		executed[phase]++
		sources[phase], claims[phase] = request.Source, pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName
		if run := l.runs()[0]; phase == "cloned" {
			if err := l.live.Get(t.Context(), client.ObjectKey{Name: naming.RunPoolName(&run, "data")}, &pool); err != nil {
				t.Error(err)
			}
		}
		return sim.Script{}
	})
	benchmark := l.submitOnDisks("bench", twoDisks+`
phases:
- {name: fill, fill: {to: 50%}}
- {name: snapshot, operate: {snapshot: {dataset: data, name: aged}}}
- {name: clone, operate: {clone: {dataset: data, snapshot: aged, as: fresh}}}
- {name: original, measure: {workload: {scan: {}}}}
- {name: cloned, volume: fresh, measure: {workload: {scan: {}}}}
- {name: send, operate: {replicate: {dataset: data, toVolume: other, as: sent}}}
- {name: destroy, volume: fresh, operate: {destroyDataset: {dataset: fresh}}}
- {name: forget, operate: {destroySnapshot: {dataset: data, name: aged}}}
- {name: replica, volume: sent, measure: {workload: {scan: {}}}}
repetitions: 1
gates:
- {name: a-clone-is-as-fast, expression: "phase('cloned').readBytesPerSecond > 0.1 * phase('original').readBytesPerSecond"}
`)
	l.restartOften(benchmark, restarts, 16) // a run of nine phases is some 110 changes
	l.finished(benchmark, v1alpha1.VerdictPassed)
	guard.Lock()
	defer guard.Unlock()
	g, run := gomega.NewWithT(t), l.runs()[0]
	g.Expect(sources).To(gomega.Equal(map[string]string{"fill": pool.Name + "/data", "original": pool.Name + "/data",
		"cloned": pool.Name + "/fresh", "replica": naming.RunPoolName(&run, "other") + "/sent"}))
	g.Expect(claims).To(gomega.Equal(map[string]string{"fill": run.Name, "original": run.Name, "cloned": run.Name + "-fresh",
		"replica": run.Name + "-sent"}))
	g.Expect(executed).To(gomega.Equal(map[string]int{"fill": 1, "original": 1, "cloned": 1, "replica": 1}))
	g.Expect(pool.Spec.Datasets).To(gomega.HaveLen(2))
	g.Expect(pool.Spec.Datasets[1].Awaited).To(gomega.BeTrue())
	g.Expect(pool.Generation).To(gomega.BeEquivalentTo(1), "its spec did not change")
	_, outcome := l.results(benchmark, naming.ResultsName("bench", design.ID(l.get(benchmark))))
	g.Expect(outcome.Runs).To(gomega.HaveLen(1))
	g.Expect(outcome.Runs[0].Volumes).To(gomega.HaveLen(4))
	l.poolsGone()
	var left corev1.PersistentVolumeList
	var leftClaims corev1.PersistentVolumeClaimList
	l.must(l.live.List(t.Context(), &left, client.MatchingLabels{v1alpha1.LabelNamespace: l.namespaces[0]}))
	l.must(l.live.List(t.Context(), &leftClaims, client.InNamespace(l.namespaces[0])))
	g.Expect(len(left.Items) + len(leftClaims.Items)).To(gomega.BeZero())
}
