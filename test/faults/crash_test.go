// Package faults stops the manager at every moment that matters, lets its caches lag behind, and counts its writes.
package faults

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/cluster"
	"github.com/storagebench/storagebench/test/sim"
)

var config *rest.Config

func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	cluster.Main(m, &config)
}

// experiment is an experiment for a machine to run, with its expected end.
type experiment struct {
	name, text string
	behaviour  sim.Behaviour
	// runs and executions are the expected numbers.
	runs, executions int
	// Only one in sampled crash points is tried, unless CRASH_POINTS=all, which tries the rest of a long experiment too.
	sampleEvery int
	// reruns is how often the experiment is repeated, each time on the pool of the time before. leaves is the number of objects that stay
	// until its deletion.
	reruns, leaves int
}

// experiments are complete: one has several variants and phases, and a run that fails at first and is repeated; one has operations that
// make volumes to measure, or end a workload, next to a database with its log on its own volume; one passes its pool on.
var experiments = []experiment{
	{name: "class", text: classText, behaviour: failFirst, runs: 3, executions: 6, sampleEvery: 1},
	{name: "pools", text: poolsText, behaviour: holdBeside, runs: 1, executions: 5, sampleEvery: 13},
	{name: "lineage", text: lineageText, runs: 1, executions: 4, sampleEvery: 13, reruns: 1, leaves: 1},
}

const classText = `
apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: bench}
spec:
  target: {storageClass: {name: faults, size: 64Mi}}
  seed: 7
  repetitions: 1
  maxAttempts: 2
  variants:
  - {name: small, storageClass: {size: 32Mi}}
  - {name: large, storageClass: {size: 96Mi}}
  phases:
  - {name: fill, fill: {to: 50%}}
  - {name: read, measure: {workload: {oltp: {workers: 2}}}}
  gates:
  - {name: fast, expression: "phase('read').readOperationsPerSecond > 1000.0"}
`

const poolsText = `
apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: bench}
spec:
  target:
    zfs:
      nodes: {matchLabels: {storagebench.dev/lab: "true"}}
      pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}
      dataset: {provisioner: Local, size: 1Gi}
      volumes:
      - {name: log, pool: {vdevs: [{devices: [/dev/disk/by-id/b]}]}, dataset: {provisioner: Local, size: 1Gi}}
  seed: 7
  repetitions: 1
  phases:
  - {name: fill, fill: {to: 50%}}
  - name: beside
    measure:
      workload: {oltp: {workers: 2, duration: 5m}}
      operate: {snapshot: {dataset: data, name: meanwhile}}
      operateAfter: 5s
      until: OperationEnds
      afterOperation: 20s
  - {name: snapshot, operate: {snapshot: {dataset: data, name: aged}}}
  - {name: clone, operate: {clone: {dataset: data, snapshot: aged, as: fresh}}}
  - {name: cloned, volume: fresh, measure: {workload: {scan: {}}}}
  - {name: copy, operate: {copy: {dataset: data, toVolume: log, as: copied}}}
  - {name: copied, volume: copied, measure: {workload: {scan: {}}}}
  - {name: destroy, volume: fresh, operate: {destroyDataset: {dataset: fresh}}}
  - name: tx
    measure: {workload: {postgres: {databaseSize: 16Mi, walVolume: log, duration: 1m, settings: {max_wal_size: 512MB}}}}
  gates:
  - {name: fast, expression: "phase('cloned').readBytesPerSecond > 1000.0"}
`

// lineageText passes its pool on to the next experiment.
const lineageText = `
apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: bench}
spec:
  target:
    zfs:
      nodes: {matchLabels: {storagebench.dev/lab: "true"}}
      pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}
      dataset: {provisioner: Local, size: 1Gi}
      reset: None
      keepFor: Schedule
  schedule: {cron: "0 0 29 2 *"}
  seed: 7
  repetitions: 1
  phases:
  - {name: fill, fill: {to: 50%}}
  - {name: read, measure: {workload: {oltp: {workers: 2}}}}
`

// failFirst lets the first attempt of the first run fail in its second phase.
func failFirst(request workload.Request, _ *corev1.Pod) sim.Script {
	if request.Phase.Name == "read" && strings.HasSuffix(request.Run.Name, "-000") {
		return sim.Script{Outcome: sim.Fail, ExitCode: 3, Message: "disk on fire"}
	}
	return sim.Script{}
}

// holdBeside makes the pod of a phase with an operation measure until it learns that the operation is over, see showEnds.
func holdBeside(request workload.Request, _ *corev1.Pod) sim.Script {
	if request.Phase.Name != "beside" {
		return sim.Script{}
	}
	return sim.Script{Hold: true, Document: func(document *results.PhaseDocument) {
		now := time.Now()
		document.StartedAt, document.FinishedAt = now.Add(-time.Minute), now.Add(time.Minute)
		document.Measured = []results.Interval{{From: document.StartedAt, To: document.FinishedAt}}
	}}
}

func (m *machine) parse(t *testing.T) *v1alpha1.StorageBenchmark {
	t.Helper()
	var wanted v1alpha1.StorageBenchmark
	if err := yaml.UnmarshalStrict([]byte(m.experiment.text), &wanted); err != nil {
		t.Fatal(err)
	}
	wanted.Namespace = m.namespace
	return &wanted
}

// ending is the state at the end of an experiment, without the parts that differ each time: times, UIDs and hashes.
type ending struct {
	Verdict    v1alpha1.Verdict
	Conditions []string
	Gates      []v1alpha1.GateStatus
	Summary    []v1alpha1.PhaseSummary
	Progress   v1alpha1.ProgressStatus
	Runs       []string
	ConfigMaps []string
	Executions []string
	Leftovers  []string
}

// differing matches hashes and times.
var differing = regexp.MustCompile(`\b([0-9a-f]{16}|[0-9a-f]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z)\b`)

func (m *machine) inspect(t *testing.T, executions []sim.Execution) ending {
	t.Helper()
	ctx := t.Context()
	var benchmark v1alpha1.StorageBenchmark
	if err := m.live.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: "bench"}, &benchmark); err != nil {
		t.Fatal(err)
	}
	plain := func(text string) string { return differing.ReplaceAllString(text, "DIFFERS") }
	end := ending{
		Verdict: benchmark.Status.Verdict, Gates: benchmark.Status.Gates, Summary: benchmark.Status.Summary,
		Progress: *benchmark.Status.Progress, Leftovers: m.leftovers(t),
	}
	for _, condition := range benchmark.Status.Conditions {
		end.Conditions = append(end.Conditions,
			plain(fmt.Sprintf("%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)))
	}
	slices.Sort(end.Conditions)
	var runs v1alpha1.BenchmarkRunList
	var maps corev1.ConfigMapList
	if err := m.live.List(ctx, &runs, client.InNamespace(m.namespace)); err != nil {
		t.Fatal(err)
	}
	if err := m.live.List(ctx, &maps, client.InNamespace(m.namespace), client.HasLabels{v1alpha1.LabelBenchmarkUID}); err != nil {
		t.Fatal(err)
	}
	for _, run := range runs.Items {
		valid := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionValid)
		line := fmt.Sprintf("%s %s valid=%s %s phases=%d", run.Name, run.Spec.Variant, valid.Status, valid.Message, len(run.Status.Phases))
		for _, volume := range run.Status.Volumes {
			if age := volume.PoolAge; age != nil {
				line += fmt.Sprintf(" pool=%d/%d", age.Experiments, age.Runs)
			}
		}
		end.Runs = append(end.Runs, plain(line))
	}
	for _, stored := range maps.Items {
		end.ConfigMaps = append(end.ConfigMaps, plain(stored.Name))
	}
	for _, execution := range executions {
		end.Executions = append(end.Executions, plain(fmt.Sprintf("%s %s seed=%d", execution.Run, execution.Phase, execution.Seed)))
	}
	for i := range end.Leftovers {
		end.Leftovers[i] = plain(end.Leftovers[i])
	}
	slices.Sort(end.ConfigMaps)
	slices.Sort(end.Executions)
	return end
}

// leftovers lists the objects that should not exist once an experiment is over, and all objects of the kinds in others.
func (m *machine) leftovers(t *testing.T, others ...client.ObjectList) []string {
	t.Helper()
	var names []string
	for _, list := range append(others, &batchv1.JobList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{},
		&coordinationv1.LeaseList{}, &corev1.PersistentVolumeList{}, &v1alpha1.BenchmarkPoolList{}, &v1alpha1.PoolOperationList{}) {
		if err := m.live.List(t.Context(), list, belonging(m.namespace, list)); err != nil {
			t.Fatal(err)
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			names = append(names, fmt.Sprintf("%T %s", object, object.(client.Object).GetName()))
		}
	}
	return names
}

// life runs the experiment from its creation to its deletion, with a crash at the given moment. It returns the end and the number of
// writes.
func (m *machine) life(t *testing.T, when moment, lag int) (ending, int) {
	t.Helper()
	ctx := t.Context()
	m.writes.Store(0)
	m.journal, m.died, m.deleted = nil, "", false
	m.cluster.SetBehaviour(m.experiment.behaviour)
	earlier := len(m.cluster.Executions())
	benchmark := m.parse(t)
	if err := m.live.Create(ctx, benchmark); err != nil {
		t.Fatal(err)
	}
	m.drive(t, when, lag)
	for rerun := range m.experiment.reruns {
		again := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "%d"}}}`, v1alpha1.AnnotationRerun, rerun)
		if err := m.live.Patch(ctx, benchmark.DeepCopy(), client.RawPatch(types.MergePatchType, again)); err != nil {
			t.Fatal(err)
		}
		m.drive(t, when, lag)
	}
	end := m.inspect(t, m.cluster.Executions()[earlier:])
	m.deleted = true
	if err := m.live.Delete(ctx, benchmark); err != nil {
		t.Fatal(err)
	}
	m.deleting = true
	m.drive(t, when, lag)
	m.deleting = false
	gone := m.leftovers(t, &v1alpha1.StorageBenchmarkList{}, &v1alpha1.BenchmarkRunList{})
	var maps corev1.ConfigMapList
	if err := m.live.List(ctx, &maps, client.InNamespace(m.namespace), client.HasLabels{v1alpha1.LabelBenchmarkUID}); err != nil {
		t.Fatal(err)
	}
	if len(gone)+len(maps.Items) > 0 {
		t.Errorf("%s: left after deletion: %v and %d ConfigMaps", when, gone, len(maps.Items))
	}
	return end, int(m.writes.Load())
}

// TestCrashAtEveryWrite stops the manager before and after every single write of complete experiments, with fresh and with lagging caches,
// and expects the same end each time.
func TestCrashAtEveryWrite(t *testing.T) {
	for _, tried := range experiments {
		for _, lag := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s, lag=%d", tried.name, lag), func(t *testing.T) { crashEverywhere(t, tried, lag) })
		}
	}
}

func crashEverywhere(t *testing.T, tried experiment, lag int) {
	reference, err := newMachine(t.Context(), config, fmt.Sprintf("crash-%s-%d-ref", tried.name, lag), tried)
	if err != nil {
		t.Fatal(err)
	}
	defer reference.cluster.Close()
	want, writes := reference.life(t, moment{}, 0)
	checkReference(t, tried, want)
	if lag > 0 {
		_, writes = reference.life(t, moment{}, lag)
	}
	points, each := crashPoints(writes), tried.sampleEvery
	if lag > 0 {
		each *= 3
	}
	if os.Getenv("CRASH_POINTS") != "all" {
		points = sample(points, each, reference.journal)
	}
	crashed := crashAll(t, tried, points, lag, want)
	fmt.Printf("crash points: %s: %d of %d tried with caches %d refreshes behind, %d crashes, all ended in the same state: %t\n",
		tried.name, len(points), 2*writes, lag, crashed, !t.Failed())
}

// crashPoints returns the moments to try: before and after every write.
func crashPoints(writes int) []moment {
	var points []moment
	for n := range int64(writes) {
		points = append(points, moment{n + 1, true}, moment{n + 1, false})
	}
	return points
}

// sample returns every nth point, and all points at which a pod is notified that its operation is over, or a pool or run changes hands.
// With an odd n, moments before and after a write alternate.
func sample(points []moment, n int, journal []string) []moment {
	var some []moment
	for i, point := range points {
		write := journal[point.n-1]
		if i%n == 0 || strings.HasSuffix(write, ".end") || handsOver(write) {
			some = append(some, point)
		}
	}
	return some
}

// handsOver reports whether a write passes a pool on, or deletes the run that had it.
func handsOver(write string) bool {
	return strings.HasPrefix(write, "patch *v1alpha1.BenchmarkPool ") || strings.HasPrefix(write, "delete *v1alpha1.BenchmarkRun ")
}

// crashAll tries all points on a few machines at the same time.
func crashAll(t *testing.T, tried experiment, points []moment, lag int, want ending) (crashed int) {
	t.Helper()
	const workers = 8 // they mostly wait for the API server
	queue := make(chan moment, len(points))
	for _, point := range points {
		queue <- point
	}
	close(queue)
	var group sync.WaitGroup
	var mutex sync.Mutex
	for worker := range workers {
		group.Go(func() {
			m, err := newMachine(t.Context(), config, fmt.Sprintf("crash-%s-%d-%d", tried.name, lag, worker), tried)
			if err != nil {
				t.Error(err)
				return
			}
			defer m.cluster.Close()
			for point := range queue {
				got, _ := m.life(t, point, lag)
				mutex.Lock()
				if m.died != "" {
					crashed++
				}
				if difference := cmp.Diff(want, got); difference != "" {
					t.Errorf("crash %s (%s), lag %d, ends differently (-without crash +with):\n%s", point, m.died, lag, difference)
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	return crashed
}

// checkReference checks that the experiment without a crash is fit for comparison.
func checkReference(t *testing.T, tried experiment, end ending) {
	t.Helper()
	if end.Verdict != v1alpha1.VerdictPassed || len(end.Runs) != tried.runs || len(end.Executions) != tried.executions ||
		len(end.Leftovers) != tried.leaves {
		text, _ := yaml.Marshal(end)
		t.Fatalf("the experiment without a crash: want Passed, %d runs, %d executions and %d objects left over, got:\n%s", tried.runs,
			tried.executions, tried.leaves, text)
	}
}
