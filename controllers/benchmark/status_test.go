package benchmark

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/internal/experiment"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 987654321, time.UTC)

func testObservation() *observation {
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Name: "ageing", Namespace: "lab", UID: "u", Generation: 3}}
	return &observation{State: experiment.State{Now: noon, Benchmark: benchmark, Experiment: "0a1b2c3d"}}
}

// manyResults has more of everything than a status may hold.
func manyResults(variants, phases int) *results.Experiment {
	experiment := &results.Experiment{Verdict: "Passed", Message: strings.Repeat("ü", 5000), FinishedAt: &noon,
		Omitted: []string{strings.Repeat("raw ", 200)}}
	for v := range variants {
		variant := results.VariantResult{Name: fmt.Sprintf("v%03d", v)}
		for p := range phases {
			phase := results.PhaseResult{Name: fmt.Sprintf("p%02d", p)}
			for _, metric := range results.Metrics() {
				phase.Metrics = append(phase.Metrics, results.MetricResult{Name: metric.Name, Median: 2, Min: 1, Max: 3, Runs: 6})
			}
			variant.Phases = append(variant.Phases, phase)
		}
		variant.Phases = append(variant.Phases,
			results.PhaseResult{Name: "fill", Metrics: []results.MetricResult{{Name: "filledBytes", Median: 1}}})
		experiment.Variants = append(experiment.Variants, variant)
	}
	for g := range 16 {
		experiment.Gates = append(experiment.Gates, results.GateResult{Name: fmt.Sprint("g", g), Verdict: "Passed", Reason: "Holds",
			Message: strings.Repeat("€", 2000)})
	}
	return experiment
}

func TestSummaryIsBounded(t *testing.T) {
	for _, test := range []struct{ variants, phases, entries, omitted int }{
		{1, 1, 1, 0}, {64, 2, 128, 0}, {43, 3, 128, 1}, {512, 16, 128, 512*16 - 128},
	} {
		observed := testObservation()
		observed.written = manyResults(test.variants, test.phases)
		for i := range 150 {
			observed.Results = append(observed.Results, experiment.StoredExperiment{Experiment: fmt.Sprint("e", i), StoredAt: noon})
		}
		status := summarise(observed, experiment.Decision{Position: experiment.PositionFinished, Reason: "Finished", Message: "over"})
		if len(status.Summary) != test.entries || int(status.SummaryOmitted) != test.omitted {
			t.Errorf("%d x %d: %d entries, %d omitted", test.variants, test.phases, len(status.Summary), status.SummaryOmitted)
		}
		for _, entry := range status.Summary {
			if len(entry.Metrics) == 0 || len(entry.Metrics) > maxSummaryMetrics || entry.Phase == "fill" {
				t.Fatalf("%s %s has %d metrics", entry.Variant, entry.Phase, len(entry.Metrics))
			}
			for _, metric := range entry.Metrics {
				if known, found := results.LookupMetric(metric.Name); !found || !known.Primary {
					t.Fatalf("%s is not primary", metric.Name)
				}
			}
		}
		checkBounds(t, status)
	}
}

// TestSummaryOfJobs: the summary contains the metrics of jobs under their full names, except names that the API would refuse.
func TestSummaryOfJobs(t *testing.T) {
	job := strings.Repeat("j", 64)
	long := strings.Repeat("j", maxMetricName) + ".readBytesPerSecond"
	entries, _ := summary([]results.VariantResult{{Name: "default", Phases: []results.PhaseResult{{Name: "fio", Metrics: []results.MetricResult{
		{Name: job + ".writeLatencyP99Nanoseconds"}, {Name: long}, {Name: "readBytesPerSecond"}}}}}})
	var names []string
	for _, entry := range entries {
		for _, metric := range entry.Metrics {
			names = append(names, metric.Name)
		}
	}
	if want := []string{job + ".writeLatencyP99Nanoseconds", "readBytesPerSecond"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func checkBounds(t *testing.T, status v1alpha1.StorageBenchmarkStatus) {
	t.Helper()
	for _, condition := range status.Conditions { // at least three, see below
		if len(condition.Message) > 1024 {
			t.Errorf("%s has %d bytes", condition.Type, len(condition.Message))
		}
	}
	if len(status.Gates) == 0 {
		t.Error("there are no gates: their messages are not looked at")
	}
	for _, gate := range status.Gates {
		if len(gate.Message) > 1024 {
			t.Errorf("gate %s has %d bytes", gate.Name, len(gate.Message))
		}
	}
	if len(status.Results.Omitted) > 256 || len(status.History) > 100 || len(status.Conditions) > 8 || len(status.State) > 64 {
		t.Errorf("the status outgrows its schema: %d history, %d conditions", len(status.History), len(status.Conditions))
	}
	if !meta.IsStatusConditionTrue(status.Conditions, "Ready") || !meta.IsStatusConditionTrue(status.Conditions, "Passed") ||
		!meta.IsStatusConditionTrue(status.Conditions, "Complete") {
		t.Errorf("conditions %+v", status.Conditions)
	}
}

// TestSameWorldSameStatus: an unchanged world results in the same status an hour later, and without reading the results again. Otherwise
// the status would be written forever.
func TestSameWorldSameStatus(t *testing.T) {
	run := v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "r", CreationTimestamp: metav1.Time{Time: noon}},
		Spec: v1alpha1.BenchmarkRunSpec{Experiment: "0a1b2c3d", RunnerImage: "runner:1"}}
	for _, decision := range []experiment.Decision{
		{Position: experiment.PositionQueued, Reason: "Queued", Message: "number 2 in line", NodeName: "n1", InLine: true, Ahead: 1},
		{Position: experiment.PositionWaiting, Reason: "NoNode", Message: "no node"},
		{Position: experiment.PositionStalled, Reason: "GateInvalid", Message: "gate x"},
		{Position: experiment.PositionSuspended, Reason: "Suspended", Message: "suspended"},
		{Position: experiment.PositionRunning, Reason: "Progressing", Message: "run 1 of 4", NodeName: "n1", StorageClass: "fast", Current: &run,
			Tally: experiment.Tally{Total: 4, Done: 1, MeanDuration: time.Hour + 1}},
		{Position: experiment.PositionFinished, Reason: "Finished", Message: "over", NodeName: "n1", Fingerprint: "f"},
	} {
		t.Run(string(decision.Position), func(t *testing.T) {
			observed := testObservation()
			observed.Runs, observed.written = []v1alpha1.BenchmarkRun{run}, manyResults(2, 2)
			first := summarise(observed, decision)
			observed.Benchmark.Status = *first.DeepCopy()
			observed.Now, observed.written = noon.Add(time.Hour), nil
			second := summarise(observed, decision)
			if !kstatus.Same(first, second) {
				t.Errorf("an unchanged world gives another status:\n%+v\n%+v", first, second)
			}
			reconciling, stuck := meta.FindStatusCondition(second.Conditions, "Reconciling"), meta.FindStatusCondition(second.Conditions, "Stalled")
			if reconciling != nil && stuck != nil || (stuck != nil) != (decision.Position == experiment.PositionStalled) {
				t.Errorf("conditions %+v", second.Conditions)
			}
			observed.Experiment = "ffffffff" // another experiment keeps nothing of this one
			observed.Runs = nil
			third := summarise(observed, experiment.Decision{Position: experiment.PositionWaiting, Reason: "Superseded", Message: "x"})
			if third.StartedAt != nil || third.Verdict != "" || third.Results != nil || third.Summary != nil || third.RunnerImage != "" {
				t.Errorf("%+v", third)
			}
		})
	}
}

// TestPlaceInLine: a benchmark keeps its place in a queue, but does not take it to another queue.
func TestPlaceInLine(t *testing.T) {
	observed := testObservation()
	decision := experiment.Decision{Position: experiment.PositionQueued, Reason: "Queued", Message: "x", NodeName: "n1", InLine: true}
	observed.Benchmark.Status = summarise(observed, decision)
	if since := observed.Benchmark.Status.Queue.Since; !since.Time.Equal(noon) || observed.Benchmark.Status.State != "Queued(1)" {
		t.Errorf("since %v, %s", since, observed.Benchmark.Status.State)
	}
	observed.Now = noon.Add(time.Minute)
	if again := summarise(observed, decision); !again.Queue.Since.Time.Equal(noon) {
		t.Error("the place in line was lost")
	}
	decision.NodeName = "n2"
	if other := summarise(observed, decision); !other.Queue.Since.Time.Equal(observed.Now) {
		t.Error("the place was taken along to another line")
	}
	decision.InLine = false
	if left := summarise(observed, decision); left.Queue != nil {
		t.Error("still in line")
	}
}
