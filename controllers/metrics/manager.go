package metrics

import (
	"cmp"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
)

var (
	runsNow = define(typeGauge, "runs", "Runs that exist, by outcome (Valid, Invalid, Unfinished) and the reason of their conditions.",
		"outcome", "reason")
	runsFinished = define(typeCounter, "runs_finished_total", "Runs that have ended since the manager was started, by outcome and reason.",
		"outcome", "reason")
	phaseSeconds = define(typeHistogram, "phase_duration_seconds",
		"Time from the creation of the Job or PoolOperation of a phase until its result was stored, by the kind of the phase.", "kind")
	queueLength = define(typeGauge, "queue_length", "Benchmarks that wait for a node. Nodes for which none waits have no series.", "node")
	poolsNow    = define(typeGauge, "pools",
		"BenchmarkPools, by node and health as ZFS reports it. Missing: not seen now, but before. Unknown: not seen yet.",
		"node", "health")
	poolSize      = define(typeGauge, "pools_size_bytes", "Size of the pools of a node.", "node")
	poolAllocated = define(typeGauge, "pools_allocated_bytes", "Allocated space in the pools of a node.", "node")
	operationsNow = define(typeGauge, "operations",
		"PoolOperations that exist, by kind and outcome (Succeeded, Failed, Cancelled, Unfinished).", "kind", "outcome")
	operationsFinished = define(typeCounter, "operations_finished_total",
		"PoolOperations that have ended since the manager was started, by kind and outcome.", "kind", "outcome")
	unseen = define(typeGauge, "unseen_objects",
		"BenchmarkPools and PoolOperations with a spec that the agent of their node has not looked at yet, by node and kind.", "node", "kind")
)

// phaseBuckets range from a phase of one second to a phase that ages a large volume for two days.
var phaseBuckets = []float64{1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800}

// Manager contains what the metrics of the manager need.
type Manager struct {
	// Version of the manager.
	Version string
	// PhaseKind returns the kind of a phase.
	PhaseKind func(*v1alpha1.Phase) string
	// Invalidating are the reasons for which a run is Invalid.
	Invalidating []string
	// Lines returns the lengths of the queues by node.
	Lines func() map[string]int
	// MaxBenchmarks is how many benchmarks have series of their own: the oldest ones.
	MaxBenchmarks int
	// WithoutAgent is true if the manager watches no pools and operations.
	WithoutAgent bool
}

// SetupWithManager registers the metrics, and starts to count once the manager is the leader.
func (m Manager) SetupWithManager(manager ctrl.Manager, into prometheus.Registerer) error {
	from := &source{cache: manager.GetCache(), reader: manager.GetCache()}
	runs, operations, phases := m.counters()
	from.watched = map[client.Object]toolscache.ResourceEventHandlerFuncs{
		&v1alpha1.StorageBenchmark{}: {},
		&v1alpha1.BenchmarkRun{}: updates(func(before, after *v1alpha1.BenchmarkRun) {
			if outcome, reason := outcomeOf(after); before.Status.FinishedAt == nil && after.Status.FinishedAt != nil {
				runs.WithLabelValues(outcome, reason).Inc()
			}
			m.ended(before, after, func(kind string, seconds float64) { phases.WithLabelValues(kind).Observe(seconds) })
		}),
	}
	from.parts = []func(chan<- prometheus.Metric) error{from.benchmarks(m.MaxBenchmarks), from.runs, lines(m.Lines)}
	collectors := []prometheus.Collector{from, runs, phases}
	if !m.WithoutAgent {
		from.watched[&v1alpha1.BenchmarkPool{}] = toolscache.ResourceEventHandlerFuncs{}
		from.watched[&v1alpha1.PoolOperation{}] = updates(func(before, after *v1alpha1.PoolOperation) {
			if before.Status.Outcome == "" && after.Status.Outcome != "" {
				operations.WithLabelValues(operate.Name(after.Spec.Action), after.Status.Outcome).Inc()
			}
		})
		from.parts = append(from.parts, from.poolsAndOperations)
		collectors = append(collectors, operations)
	}
	problems := []error{build(into, "manager", "", m.Version), manager.Add(from)}
	for _, collector := range collectors {
		problems = append(problems, into.Register(collector))
	}
	return errors.Join(problems...)
}

// counters returns the counters with all their series. Otherwise Prometheus would not see the first event as an increase.
func (m Manager) counters() (runs, operations *prometheus.CounterVec, phases *prometheus.HistogramVec) {
	runs, operations = runsFinished.counter(), operationsFinished.counter()
	phases = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: phaseSeconds.Name, Help: phaseSeconds.Help, Buckets: phaseBuckets},
		phaseSeconds.Labels)
	runs.WithLabelValues("Valid", v1alpha1.ReasonMeasured)
	for _, reason := range m.Invalidating {
		runs.WithLabelValues("Invalid", reason)
	}
	for _, action := range operate.All() {
		kind := operate.Name(action)
		for _, outcome := range []string{v1alpha1.OutcomeSucceeded, v1alpha1.OutcomeFailed, v1alpha1.OutcomeCancelled} {
			operations.WithLabelValues(kind, outcome)
		}
	}
	for _, phase := range []v1alpha1.Phase{{Fill: &v1alpha1.FillPhase{}}, {Fragment: &v1alpha1.FragmentPhase{}},
		{Free: &v1alpha1.FreePhase{}}, {Measure: &v1alpha1.MeasurePhase{}}, {Operate: &v1alpha1.OperatePhase{}}} {
		phases.WithLabelValues(m.PhaseKind(&phase))
	}
	return runs, operations, phases
}

// ended calls a function for each phase whose result was stored with this change.
func (m Manager) ended(before, after *v1alpha1.BenchmarkRun, tell func(kind string, seconds float64)) {
	known, kinds := map[v1alpha1.PhaseName]bool{}, map[v1alpha1.PhaseName]string{}
	for _, phase := range before.Status.Phases {
		known[phase.Name] = phase.FinishedAt != nil
	}
	for i := range after.Spec.Phases {
		kinds[after.Spec.Phases[i].Name] = m.PhaseKind(&after.Spec.Phases[i])
	}
	for _, phase := range after.Status.Phases {
		if phase.FinishedAt != nil && phase.StartedAt != nil && !known[phase.Name] {
			tell(kinds[phase.Name], max(0, phase.FinishedAt.Sub(phase.StartedAt.Time).Seconds()))
		}
	}
}

// outcomeOf returns the outcome of a run and its reason. The reason of an unfinished run is what it waits for. If the teardown of a
// finished run makes no progress, that is its reason instead.
func outcomeOf(run *v1alpha1.BenchmarkRun) (outcome, reason string) {
	ready, ended := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady),
		meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionValid)
	switch {
	case ended == nil:
		return "Unfinished", reasonOf(ready)
	case ended.Status == metav1.ConditionTrue:
		outcome = "Valid"
	default:
		outcome = "Invalid"
	}
	if ready != nil && slices.Contains([]string{v1alpha1.ReasonTeardownStuck, v1alpha1.ReasonPodsNotStopped,
		v1alpha1.ReasonOperationNotStopped}, ready.Reason) {
		return outcome, ready.Reason
	}
	return outcome, ended.Reason
}

// reasonOf returns the reason of a condition, or "Pending" if the controller has not written the condition yet.
func reasonOf(condition *metav1.Condition) string {
	if condition == nil {
		return "Pending"
	}
	return condition.Reason
}

func (s *source) runs(out chan<- prometheus.Metric) error {
	var runs v1alpha1.BenchmarkRunList
	if err := s.list(&runs); err != nil {
		return err
	}
	counts := tally{}
	for i := range runs.Items {
		outcome, reason := outcomeOf(&runs.Items[i])
		counts[[2]string{outcome, reason}]++
	}
	counts.show(out, runsNow)
	return nil
}

func lines(lengths func() map[string]int) func(chan<- prometheus.Metric) error {
	return func(out chan<- prometheus.Metric) error {
		counts := tally{}
		for node, length := range lengths() {
			counts[[2]string{node}] = float64(length)
		}
		counts.show(out, queueLength)
		return nil
	}
}

func (s *source) poolsAndOperations(out chan<- prometheus.Metric) error {
	var pools v1alpha1.BenchmarkPoolList
	var operations v1alpha1.PoolOperationList
	if err := errors.Join(s.list(&pools), s.list(&operations)); err != nil {
		return err
	}
	health, kinds, behind, size, allocated := tally{}, tally{}, tally{}, tally{}, tally{}
	for i := range pools.Items {
		pool, node := &pools.Items[i], pools.Items[i].Spec.NodeName
		health[[2]string{node, healthOf(pool)}]++
		size[[2]string{node}] += float64(pool.Status.SizeBytes)
		allocated[[2]string{node}] += float64(pool.Status.AllocatedBytes)
		if pool.Status.ObservedGeneration < pool.Generation {
			behind[[2]string{node, "BenchmarkPool"}]++
		}
	}
	for i := range operations.Items {
		operation := &operations.Items[i]
		kinds[[2]string{operate.Name(operation.Spec.Action), cmp.Or(operation.Status.Outcome, "Unfinished")}]++
		if operation.Status.ObservedGeneration < operation.Generation && operation.Status.Outcome == "" {
			behind[[2]string{operation.Spec.NodeName, "PoolOperation"}]++
		}
	}
	health.showFirst(out, poolsNow, func(key [2]string) bool { return key[1] != healthy && key[1] != unknown })
	kinds.show(out, operationsNow)
	behind.show(out, unseen)
	size.show(out, poolSize)
	allocated.show(out, poolAllocated)
	return nil
}

const healthy, unknown = "ONLINE", "Unknown"

// healthOf returns the health of a pool according to ZFS, "Missing" if the pool was seen before but is not visible now, or "Unknown" if it
// was never seen.
func healthOf(pool *v1alpha1.BenchmarkPool) string {
	if pool.Status.Health == "" && pool.Status.GUID != "" {
		return "Missing"
	}
	return cmp.Or(pool.Status.Health, unknown)
}
