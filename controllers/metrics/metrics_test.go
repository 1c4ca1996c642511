package metrics

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/workload"
)

// memory is a cache with some objects. It refuses a list that copies them.
type memory struct {
	client.Reader
	benchmarks []v1alpha1.StorageBenchmark
	runs       []v1alpha1.BenchmarkRun
	pools      []v1alpha1.BenchmarkPool
	operations []v1alpha1.PoolOperation
}

func (m memory) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	if asked := (&client.ListOptions{}).ApplyOptions(options); asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy {
		return fmt.Errorf("%T would be copied", into)
	}
	switch list := into.(type) {
	case *v1alpha1.StorageBenchmarkList:
		list.Items = slices.Clone(m.benchmarks)
	case *v1alpha1.BenchmarkRunList:
		list.Items = slices.Clone(m.runs)
	case *v1alpha1.BenchmarkPoolList:
		list.Items = slices.Clone(m.pools)
	case *v1alpha1.PoolOperationList:
		list.Items = slices.Clone(m.operations)
	default:
		return fmt.Errorf("%T is not known here", into)
	}
	return nil
}

// ready is a source that shows some parts of a memory.
func ready(objects memory, parts func(*source) []func(chan<- prometheus.Metric) error) *source {
	from := &source{reader: objects}
	from.parts = parts(from)
	from.ready.Store(true)
	return from
}

func ofManager(limit int) func(*source) []func(chan<- prometheus.Metric) error {
	return func(s *source) []func(chan<- prometheus.Metric) error {
		return []func(chan<- prometheus.Metric) error{s.benchmarks(limit), s.runs, s.poolsAndOperations}
	}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(after time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(after)} }

func benchmark(name string, status v1alpha1.StorageBenchmarkStatus, conditions ...metav1.Condition) v1alpha1.StorageBenchmark {
	status.Conditions = conditions
	return v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(name),
		CreationTimestamp: metav1.NewTime(noon)}, Status: status}
}

func is(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason}
}

func run(conditions ...metav1.Condition) v1alpha1.BenchmarkRun {
	return v1alpha1.BenchmarkRun{Status: v1alpha1.BenchmarkRunStatus{Conditions: conditions}}
}

// expect compares all series of a collector, without help and type.
func expect(t *testing.T, from prometheus.Collector, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.Fields(strings.ReplaceAll(strings.TrimSpace(want), "} ", "}=")), series(t, from)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// series returns the series of a collector, in order, as NAME{LABELS}=VALUE.
func series(t *testing.T, from prometheus.Collector) []string {
	t.Helper()
	all := []string{}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(from)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			all = append(all, fmt.Sprintf("%s{%s}=%v", family.GetName(), strings.Join(labels, ","), metric.GetGauge().GetValue()))
		}
	}
	return all
}

func TestManagerShows(t *testing.T) {
	ready, valid := v1alpha1.ConditionReady, v1alpha1.ConditionValid
	objects := memory{
		benchmarks: []v1alpha1.StorageBenchmark{
			benchmark("done", v1alpha1.StorageBenchmarkStatus{Verdict: v1alpha1.VerdictPassed, FinishedAt: at(0),
				History: []v1alpha1.ResultsReference{{Verdict: "Failed", FinishedAt: at(-time.Hour)}},
				Summary: []v1alpha1.PhaseSummary{{Variant: "default", Phase: "read", Metrics: []v1alpha1.MetricSummary{
					{Name: "readLatencyP99Nanoseconds", Median: 1_500_000}, {Name: "readBytesPerSecond", Median: 7},
					{Name: "transactionsPerSecond", Median: 3}, {Name: "somethingElse", Median: 4}}}}},
				is(ready, metav1.ConditionTrue, "Finished")),
			benchmark("again", v1alpha1.StorageBenchmarkStatus{Progress: &v1alpha1.ProgressStatus{EstimatedEnd: at(time.Minute)},
				History: []v1alpha1.ResultsReference{{}, {Verdict: "Failed", FinishedAt: at(-time.Hour)}, {Verdict: "Passed"}}},
				is(ready, metav1.ConditionFalse, "Progressing")),
			benchmark("wrong", v1alpha1.StorageBenchmarkStatus{}, is(ready, metav1.ConditionFalse, "GateInvalid"),
				is(v1alpha1.ConditionStalled, metav1.ConditionTrue, "GateInvalid")),
			benchmark("new", v1alpha1.StorageBenchmarkStatus{}),
			// Its verdict is enforced, so Stalled does not mean that it is stuck.
			benchmark("slow", v1alpha1.StorageBenchmarkStatus{Verdict: v1alpha1.VerdictFailed, FinishedAt: at(0)},
				is(ready, metav1.ConditionFalse, "NotPassed"), is(v1alpha1.ConditionStalled, metav1.ConditionTrue, "NotPassed"),
				is(v1alpha1.ConditionComplete, metav1.ConditionTrue, "Finished")),
		},
		runs: []v1alpha1.BenchmarkRun{
			run(), run(is(ready, metav1.ConditionFalse, "PhaseRunning")),
			run(is(ready, metav1.ConditionTrue, "Measured"), is(valid, metav1.ConditionTrue, "Measured")),
			run(is(ready, metav1.ConditionFalse, "TearingDown"), is(valid, metav1.ConditionTrue, "Measured")),
			run(is(ready, metav1.ConditionTrue, "PodEvicted"), is(valid, metav1.ConditionFalse, "PodEvicted")),
			run(is(ready, metav1.ConditionFalse, "TeardownStuck"), is(valid, metav1.ConditionFalse, "PodEvicted")),
		},
		pools: []v1alpha1.BenchmarkPool{
			{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "n1"},
				Status: v1alpha1.BenchmarkPoolStatus{ObservedGeneration: 2, Health: "ONLINE", SizeBytes: 100, AllocatedBytes: 30}},
			{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "n1"},
				Status: v1alpha1.BenchmarkPoolStatus{ObservedGeneration: 1, Health: "DEGRADED", SizeBytes: 50, AllocatedBytes: 5}},
			{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "n2"}},
			{Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "n2"}, Status: v1alpha1.BenchmarkPoolStatus{GUID: "7"}},
		},
		operations: []v1alpha1.PoolOperation{
			{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: v1alpha1.PoolOperationSpec{NodeName: "n2",
				Action: v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}}},
			{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: v1alpha1.PoolOperationSpec{NodeName: "n2",
				Action: v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}}, Status: v1alpha1.PoolOperationStatus{Outcome: "Failed"}},
		},
	}
	expect(t, shown(objects, 10), `
storagebench_benchmark_estimated_end_timestamp_seconds{benchmark="again",namespace="team-a"} 1.76735526e+09
storagebench_benchmark_last_result_timestamp_seconds{benchmark="again",namespace="team-a"} 1.7673516e+09
storagebench_benchmark_last_result_timestamp_seconds{benchmark="done",namespace="team-a"} 1.7673552e+09
storagebench_benchmark_last_result_timestamp_seconds{benchmark="slow",namespace="team-a"} 1.7673552e+09
storagebench_benchmark_median_bytes_per_second{benchmark="done",metric="readBytesPerSecond",namespace="team-a",phase="read",variant="default"} 7
storagebench_benchmark_median_per_second{benchmark="done",metric="transactionsPerSecond",namespace="team-a",phase="read",variant="default"} 3
storagebench_benchmark_median_seconds{benchmark="done",metric="readLatencyP99Nanoseconds",namespace="team-a",phase="read",variant="default"} 0.0015
storagebench_benchmark_stalled{benchmark="wrong",namespace="team-a",reason="GateInvalid"} 1
storagebench_benchmark_verdict{benchmark="again",namespace="team-a",verdict="Failed"} 1
storagebench_benchmark_verdict{benchmark="done",namespace="team-a",verdict="Passed"} 1
storagebench_benchmark_verdict{benchmark="slow",namespace="team-a",verdict="Failed"} 1
storagebench_benchmarks{reason="Finished"} 1
storagebench_benchmarks{reason="GateInvalid"} 1
storagebench_benchmarks{reason="NotPassed"} 1
storagebench_benchmarks{reason="Pending"} 1
storagebench_benchmarks{reason="Progressing"} 1
storagebench_benchmarks_unlisted{} 0
storagebench_operations{kind="scrub",outcome="Failed"} 1
storagebench_operations{kind="scrub",outcome="Unfinished"} 1
storagebench_pools{health="DEGRADED",node="n1"} 1
storagebench_pools{health="Missing",node="n2"} 1
storagebench_pools{health="ONLINE",node="n1"} 1
storagebench_pools{health="Unknown",node="n2"} 1
storagebench_pools_allocated_bytes{node="n1"} 35
storagebench_pools_allocated_bytes{node="n2"} 0
storagebench_pools_size_bytes{node="n1"} 150
storagebench_pools_size_bytes{node="n2"} 0
storagebench_runs{outcome="Invalid",reason="PodEvicted"} 1
storagebench_runs{outcome="Invalid",reason="TeardownStuck"} 1
storagebench_runs{outcome="Unfinished",reason="Pending"} 1
storagebench_runs{outcome="Unfinished",reason="PhaseRunning"} 1
storagebench_runs{outcome="Valid",reason="Measured"} 2
storagebench_unseen_objects{kind="BenchmarkPool",node="n1"} 1
storagebench_unseen_objects{kind="BenchmarkPool",node="n2"} 1
storagebench_unseen_objects{kind="PoolOperation",node="n2"} 1`)
}

func shown(objects memory, limit int) *source { return ready(objects, ofManager(limit)) }

// TestNothingBefore: a manager that is not the leader, or has no complete caches, shows nothing and reads nothing.
func TestNothingBefore(t *testing.T) {
	from := &source{reader: memory{}, parts: []func(chan<- prometheus.Metric) error{func(chan<- prometheus.Metric) error {
		t.Error("it reads")
		return nil
	}}}
	expect(t, from, "")
}

// TestOldestFirst: a new benchmark displaces no other one, and those without series are counted.
func TestOldestFirst(t *testing.T) {
	var objects memory
	for i := range 5 {
		one := benchmark(fmt.Sprintf("b-%d", i), v1alpha1.StorageBenchmarkStatus{Verdict: v1alpha1.VerdictPassed})
		one.CreationTimestamp = *at(-time.Duration(i) * time.Hour)
		objects.benchmarks = append(objects.benchmarks, one)
	}
	expect(t, shown(objects, 2), `
storagebench_benchmark_verdict{benchmark="b-3",namespace="team-a",verdict="Passed"} 1
storagebench_benchmark_verdict{benchmark="b-4",namespace="team-a",verdict="Passed"} 1
storagebench_benchmarks{reason="Pending"} 5
storagebench_benchmarks_unlisted{} 3`)
	expect(t, shown(objects, 0), `
storagebench_benchmarks{reason="Pending"} 5
storagebench_benchmarks_unlisted{} 5`)
}

// TestLinesAreBounded: nodes beyond the maximum number of series are added up, and none is lost.
func TestLinesAreBounded(t *testing.T) {
	for _, test := range []struct{ nodes, series, rest int }{{0, 0, 0}, {1, 1, 0}, {maxSeries, maxSeries, 0}, {maxSeries + 1, maxSeries, 2},
		{maxSeries + 50, maxSeries, 51}} {
		lengths := map[string]int{}
		for i := range test.nodes {
			lengths[fmt.Sprintf("n-%04d", i)] = 1
		}
		if test.nodes > 0 {
			lengths["n-0000"] = 7
		}
		from := ready(memory{}, func(*source) []func(chan<- prometheus.Metric) error {
			return []func(chan<- prometheus.Metric) error{lines(func() map[string]int { return lengths })}
		})
		got := series(t, from)
		if len(got) != test.series {
			t.Errorf("%d nodes have %d series, want %d", test.nodes, len(got), test.series)
		}
		if test.rest > 0 && !slices.Contains(got, fmt.Sprintf(`storagebench_queue_length{node="Other"}=%d`, test.rest)) {
			t.Errorf("%d nodes: the rest is not summed up as %d: %q", test.nodes, test.rest, got)
		}
		if test.nodes > 0 && !slices.Contains(got, `storagebench_queue_length{node="n-0000"}=7`) {
			t.Errorf("%d nodes: the longest is missing: %q", test.nodes, got)
		}
	}
}

// TestUnhealthyPoolsAreShown: many nodes with more, but healthy, pools do not hide an unhealthy one.
func TestUnhealthyPoolsAreShown(t *testing.T) {
	var objects memory
	pool := func(node int, health, guid string) {
		objects.pools = append(objects.pools, v1alpha1.BenchmarkPool{Spec: v1alpha1.BenchmarkPoolSpec{NodeName: fmt.Sprintf("n-%04d", node)},
			Status: v1alpha1.BenchmarkPoolStatus{Health: health, GUID: guid}})
	}
	for node := range 2 * maxSeries {
		pool(node, "ONLINE", "1")
		pool(node, "ONLINE", "2")
	}
	pool(2*maxSeries, "", "")
	pool(2*maxSeries, "DEGRADED", "3")
	pool(2*maxSeries, "", "4")
	got := series(t, shown(objects, 10))
	for _, want := range []string{`{health="DEGRADED",node="n-0400"}=1`, `{health="Missing",node="n-0400"}=1`,
		`{health="ONLINE",node="n-0000"}=2`, `{health="Other",node="Other"}=407`} {
		if !slices.Contains(got, "storagebench_pools"+want) {
			t.Errorf("%s is missing in %d series", want, len(got))
		}
	}
}

// TestAPhaseCountsOnce: a phase counts by its kind when its result is stored, and not again.
func TestAPhaseCountsOnce(t *testing.T) {
	phases := []v1alpha1.Phase{{Name: "a", Fill: &v1alpha1.FillPhase{}}, {Name: "b", Fill: &v1alpha1.FillPhase{}}, {Name: "c"}}
	state := func(finished ...*metav1.Time) *v1alpha1.BenchmarkRun {
		run := &v1alpha1.BenchmarkRun{Spec: v1alpha1.BenchmarkRunSpec{Phases: phases}}
		for i, end := range finished {
			run.Status.Phases = append(run.Status.Phases, v1alpha1.RunPhaseStatus{Name: phases[i].Name, StartedAt: at(0), FinishedAt: end})
		}
		return run
	}
	m := Manager{PhaseKind: func(phase *v1alpha1.Phase) string { return "kind of " + string(phase.Name) }}
	for name, test := range map[string]struct {
		before, after *v1alpha1.BenchmarkRun
		want          map[string]float64
	}{
		"begun":           {state(), state(nil), map[string]float64{}},
		"ended":           {state(nil), state(at(time.Minute)), map[string]float64{"kind of a": 60}},
		"known":           {state(at(time.Minute)), state(at(time.Minute)), map[string]float64{}},
		"the next begun":  {state(at(time.Minute)), state(at(time.Minute), nil), map[string]float64{}},
		"two at once":     {state(nil), state(at(time.Minute), at(2*time.Minute)), map[string]float64{"kind of a": 60, "kind of b": 120}},
		"clocks disagree": {state(nil), state(at(-time.Minute)), map[string]float64{"kind of a": 0}},
	} {
		got := map[string]float64{}
		m.ended(test.before, test.after, func(kind string, seconds float64) { got[kind] += seconds })
		if !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestCountersBeginAtZero: there is a series for each reason that the page Troubleshooting explains, each kind of operation and each kind
// of phase.
func TestCountersBeginAtZero(t *testing.T) {
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## A run is Invalid\n")
	section, _, _ = strings.Cut(section, "\n## ")
	explained := 0
	// The first reason is that of a valid run. The others belong to results.
	apart := []string{v1alpha1.ReasonMeasured, v1alpha1.ReasonWorkloadChanged, v1alpha1.ReasonOperationDidNotOverlap}
	for line := range strings.Lines(section) {
		reason, cells := strings.TrimPrefix(strings.Split(line, " | ")[0], "| "), strings.Count(line, " | ")
		if cells == 2 && reason != "reason" && !slices.Contains(apart, reason) && !slices.Contains(runs.Invalidating(), reason) {
			t.Errorf("the page says that a run is Invalid for %s", reason)
		}
		explained += cells / 2
	}
	for _, reason := range runs.Invalidating() {
		if !strings.Contains(string(text), "\n| "+reason+" | ") {
			t.Errorf("the page does not explain %s", reason)
		}
	}
	if explained < 15 {
		t.Errorf("the page explains %d reasons", explained)
	}
	counted, operations, phases := Manager{PhaseKind: workload.KindOf, Invalidating: runs.Invalidating()}.counters()
	for _, test := range []struct {
		collector prometheus.Collector
		series    int
		has       string
	}{
		{counted, len(runs.Invalidating()) + 1, `storagebench_runs_finished_total{outcome="Valid",reason="Measured"}=0`},
		{operations, 3 * reflect.TypeFor[v1alpha1.PoolAction]().NumField(),
			`storagebench_operations_finished_total{kind="scrub",outcome="Failed"}=0`},
		{phases, 5, `storagebench_phase_duration_seconds{kind="measure"}=0`},
	} {
		if got := series(t, test.collector); len(got) != test.series || !slices.Contains(got, test.has) {
			t.Errorf("%d series, want %d with %s: %v", len(got), test.series, test.has, got)
		}
	}
}

// TestEveryPrimaryMedianIsShown: each primary metric has a base unit.
func TestEveryPrimaryMedianIsShown(t *testing.T) {
	units := map[string]string{results.UnitBytesPerSecond: "_bytes_per_second", results.UnitPerSecond: "median_per_second",
		results.UnitNanoseconds: "_seconds"}
	primary := 0
	for _, metric := range results.Metrics() {
		if !metric.Primary {
			continue
		}
		primary++
		if of, known := medianOf(metric.Name); !known || units[metric.Unit] == "" || !strings.HasSuffix(of.Name, units[metric.Unit]) {
			t.Errorf("%s (%s) is shown as %q", metric.Name, metric.Unit, of.Name)
		}
	}
	if primary < 10 {
		t.Errorf("only %d primary metrics", primary)
	}
}

// TestLint: the names and units are those that Prometheus recommends.
func TestLint(t *testing.T) {
	registry := prometheus.NewRegistry()
	for _, metric := range All() {
		registry.MustRegister(sample{metric})
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// sample shows a metric once.
type sample struct{ Metric }

func (s sample) Describe(out chan<- *prometheus.Desc) { out <- s.desc }
func (s sample) Collect(out chan<- prometheus.Metric) {
	labels := make([]string, len(s.Labels))
	switch s.Type {
	case typeHistogram:
		out <- prometheus.MustNewConstHistogram(s.desc, 0, 0, nil, labels...)
	case typeCounter:
		out <- prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, 0, labels...)
	default:
		out <- s.gauge(0, labels...)
	}
}

// TestPage: the page lists all metrics, as they are.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/prometheus.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, metric := range All() {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", metric.Name, metric.Type, strings.Join(metric.Labels, ", "), metric.Help))
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `storagebench_") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if len(want) < 20 {
		t.Errorf("only %d metrics are defined", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/reference/prometheus.md differs (-want +got):\n%s", diff)
	}
}

// BenchmarkScrape is a scrape with 1,000 benchmarks and 10,000 runs: go test -bench Scrape ./controllers/metrics
func BenchmarkScrape(b *testing.B) {
	var objects memory
	for i := range 1000 {
		one := benchmark(fmt.Sprintf("b-%d", i), v1alpha1.StorageBenchmarkStatus{Verdict: v1alpha1.VerdictPassed, FinishedAt: at(0)},
			is(v1alpha1.ConditionReady, metav1.ConditionTrue, "Finished"))
		for range 4 {
			one.Status.Summary = append(one.Status.Summary, v1alpha1.PhaseSummary{Variant: fmt.Sprint(len(one.Status.Summary)), Phase: "read",
				Metrics: []v1alpha1.MetricSummary{{Name: "readBytesPerSecond"}, {Name: "writeBytesPerSecond"}}})
		}
		objects.benchmarks = append(objects.benchmarks, one)
	}
	for range 10_000 {
		objects.runs = append(objects.runs, run(is(v1alpha1.ConditionReady, metav1.ConditionTrue, "Measured"),
			is(v1alpha1.ConditionValid, metav1.ConditionTrue, "Measured")))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(shown(objects, 200))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
