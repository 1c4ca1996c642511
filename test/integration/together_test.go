package integration

import (
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// TestSeveralDatasetsOnOnePool: there is one pool, with one observation, and a claim for each dataset.
func TestSeveralDatasetsOnOnePool(t *testing.T) {
	var guard sync.Mutex
	var asked *workload.Request
	var pools v1alpha1.BenchmarkPoolList
	sources := map[string]string{}
	var l *lab
	l = startNodes(t, 1, func(request workload.Request, _ *corev1.Pod) sim.Script {
		guard.Lock()
		defer guard.Unlock()
		sources[string(request.Phase.Name)] = request.Source
		if request.Phase.Name == "busy" {
			asked = &request
			if err := l.live.List(t.Context(), &pools, client.MatchingLabels{v1alpha1.LabelNamespace: l.namespaces[0]}); err != nil {
				t.Error(err)
			}
		}
		return sim.Script{}
	})
	benchmark := l.submitOnDisks("bench", oneDisk+`
    volumes:
    - {name: log, poolOf: data, dataset: {provisioner: Local, size: 64Mi, properties: {recordsize: 128k}}}
matrix: {volumes.log.dataset.sync: [always, standard]}
phases:
- {name: fill, volume: log, fill: {to: 50%}}
- {name: fill-data, fill: {to: 50%}}
- name: busy
  measure:
    workloads:
    - {name: reads, oltp: {workers: 2, duration: 1m}}
    - {name: redo, volume: log, redo: {duration: 1m}}
repetitions: 1
`)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	g := gomega.NewWithT(t)
	guard.Lock()
	defer guard.Unlock()
	run := l.runs()[1]
	g.Expect(pools.Items).To(gomega.HaveLen(1))
	pool := pools.Items[0]
	g.Expect(pool.Name).To(gomega.Equal(naming.RunPoolName(&run, "data")))
	g.Expect(pool.Spec.Datasets).To(gomega.HaveLen(2))
	g.Expect(pool.Spec.Datasets[1].Path).To(gomega.BeEquivalentTo("log"))
	g.Expect(pool.Spec.Datasets[1].Properties).To(gomega.HaveKeyWithValue("recordsize", v1alpha1.PropertyValue("128k")))
	g.Expect(pool.Spec.Datasets[1].Properties).To(gomega.HaveKey("sync"))
	g.Expect(pool.Spec.Datasets[0].Properties).NotTo(gomega.HaveKey("sync"))
	g.Expect(sources["fill"]).To(gomega.Equal(pool.Name + "/log"))
	g.Expect(sources["fill-data"]).To(gomega.Equal(pool.Name + "/data"))
	g.Expect([]string{asked.Parts[0].Source, asked.Parts[1].Source}).To(gomega.Equal([]string{pool.Name + "/data", pool.Name + "/log"}))
	_, outcome := l.results(benchmark, naming.ResultsName("bench", design.ID(l.get(benchmark))))
	g.Expect(outcome.Runs).To(gomega.HaveLen(2))
	g.Expect(outcome.Runs[0].Volumes).To(gomega.HaveLen(2))
	g.Expect(outcome.Runs[0].Volumes[1].Pool).To(gomega.Equal(outcome.Runs[0].Volumes[0].Pool))
	l.poolsGone()
}

// observedPools records the pools of the operations of a phase, and whether the operations are observations.
func (l *lab) observedPools(phase string, guard *sync.Mutex, pools map[string]bool) {
	watchAll(l, &v1alpha1.PoolOperationList{}, func(change watch.EventType, operation *v1alpha1.PoolOperation) {
		guard.Lock()
		defer guard.Unlock()
		if change == watch.Added && operation.Labels[v1alpha1.LabelPhase] == phase {
			pools[operation.Spec.Pool] = operation.Spec.Action.Observe != nil
		}
	})
}

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
	l.observedPools("busy", &guard, pools)
	benchmark := l.submitOnDisks("bench", twoDisks+`
phases:
- {name: fill, fill: {to: 50%}}
- name: busy
  measure:
    workloads:
    - {name: reads, oltp: {workers: 2, duration: 1m}}
    - {name: redo, volume: other, redo: {duration: 1m}}
repetitions: 1
gates:
- {name: log-keeps-up, expression: "phase('busy').workload('redo').writeOperationsPerSecond > 1000.0"}
`)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	g := gomega.NewWithT(t)
	run := l.runs()[0]
	guard.Lock()
	defer guard.Unlock()
	g.Expect(asked.Parts).To(gomega.HaveLen(2))
	g.Expect([]string{asked.Parts[0].Path, asked.Parts[1].Path}).To(gomega.Equal([]string{"/data-data", "/data-other"}))
	g.Expect(asked.Parts[1].Source).To(gomega.HavePrefix(naming.RunPoolName(&run, "other") + "/"))
	g.Expect(claims).To(gomega.HaveLen(2))
	g.Expect(pools).To(gomega.Equal(map[string]bool{naming.RunPoolName(&run, "data"): true, naming.RunPoolName(&run, "other"): true}))
	_, outcome := l.results(benchmark, naming.ResultsName("bench", design.ID(l.get(benchmark))))
	g.Expect(outcome.Runs[0].Phases[1].Metrics).To(gomega.HaveKey("redo.writeLatencyP99Nanoseconds"))
	l.poolsGone()
}

// TestWALOnAVolume: the pod of a database with its log on another volume has both volumes, and both pools are observed meanwhile.
func TestWALOnAVolume(t *testing.T) {
	t.Parallel()
	var guard sync.Mutex
	var asked *workload.Request
	mounted, pools := map[string]string{}, map[string]bool{}
	l := startNodes(t, 1, func(request workload.Request, pod *corev1.Pod) sim.Script {
		guard.Lock()
		defer guard.Unlock()
		asked = &request
		claims := map[string]string{}
		for _, one := range pod.Spec.Volumes {
			if one.PersistentVolumeClaim != nil {
				claims[one.Name] = one.PersistentVolumeClaim.ClaimName
			}
		}
		for _, one := range pod.Spec.Containers[0].VolumeMounts {
			if claims[one.Name] != "" {
				mounted[one.MountPath] = claims[one.Name]
			}
		}
		return sim.Script{Metrics: map[string]int64{"transactionsPerSecond": 900, "wal.diskWrittenBytesPerSecond": 5}}
	})
	l.observedPools("tx", &guard, pools)
	benchmark := l.submitOnDisks("bench", strings.ReplaceAll(twoDisks, "64Mi", "1Gi")+`
phases:
- name: tx
  measure: {workload: {postgres: {databaseSize: 16Mi, walVolume: other, duration: 1m, settings: {max_wal_size: 512MB}}}}
repetitions: 1
gates:
- {name: transactions, expression: "phase('tx').transactionsPerSecond > 100.0"}
- {name: log-works, expression: "phase('tx').workload('wal').diskWrittenBytesPerSecond > 1.0"}
`)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	g := gomega.NewWithT(t)
	guard.Lock()
	defer guard.Unlock()
	run := l.runs()[0]
	data, other := naming.RunPoolName(&run, "data"), naming.RunPoolName(&run, "other")
	g.Expect(mounted).To(gomega.Equal(map[string]string{"/data-data": naming.ClaimName(&run, "data"),
		"/data-other": naming.ClaimName(&run, "other")}))
	g.Expect(pools).To(gomega.Equal(map[string]bool{data: true, other: true}))
	g.Expect(asked.Parts).To(gomega.BeEmpty())
	g.Expect([]string{asked.Path, asked.Source}).To(gomega.Equal([]string{"/data-data", data + "/data"}))
	g.Expect([]string{asked.WAL.Path, asked.WAL.Source}).To(gomega.Equal([]string{"/data-other", other + "/other"}))
	l.poolsGone()
}
