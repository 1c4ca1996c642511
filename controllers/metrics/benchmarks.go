package metrics

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

var (
	benchmarksNow = define(typeGauge, "benchmarks", "StorageBenchmarks, by the reason of their condition Ready.", "reason")
	unlisted      = define(typeGauge, "benchmarks_unlisted",
		"StorageBenchmarks without series of their own: there are more than the manager's flag --benchmark-metrics says.")
	verdict = define(typeGauge, "benchmark_verdict",
		"1, for the last verdict of a benchmark. While an experiment is under way, that of the one before.", "namespace", "benchmark", "verdict")
	lastResult = define(typeGauge, "benchmark_last_result_timestamp_seconds", "When the last verdict of a benchmark was set.",
		"namespace", "benchmark")
	stalled = define(typeGauge, "benchmark_stalled",
		"1, for a benchmark that makes no progress until a user changes something, with the reason.",
		"namespace", "benchmark", "reason")
	estimatedEnd = define(typeGauge, "benchmark_estimated_end_timestamp_seconds",
		"When the experiment under way is expected to end, from the duration of its earlier runs. Unset until the first of them has ended.",
		"namespace", "benchmark")
)

// median is the metric that shows the medians of primary metrics whose names have a suffix.
type median struct {
	suffix string
	Metric
	// unit is the divisor that converts a median to the base unit.
	unit float64
}

var medians = []median{
	{"BytesPerSecond", defineMedian("bytes_per_second", "of a rate of bytes"), 1},
	{"PerSecond", defineMedian("per_second", "of a rate of operations or transactions"), 1},
	{"Nanoseconds", defineMedian("seconds", "of a latency"), 1e9},
}

func defineMedian(unit, what string) Metric {
	return define(typeGauge, "benchmark_median_"+unit, "Median over the valid runs of the last experiment "+what+
		". The first 32 primary medians of a benchmark, until another experiment begins.",
		"namespace", "benchmark", "variant", "phase", "metric")
}

func medianOf(name string) (median, bool) {
	at := slices.IndexFunc(medians, func(one median) bool { return strings.HasSuffix(name, one.suffix) })
	if at < 0 {
		return median{}, false
	}
	return medians[at], true
}

// benchmarks counts all benchmarks. Only the oldest get series of their own, so that a new benchmark does not displace another.
func (s *source) benchmarks(limit int) func(chan<- prometheus.Metric) error {
	return func(out chan<- prometheus.Metric) error {
		var all v1alpha1.StorageBenchmarkList
		if err := s.list(&all); err != nil {
			return err
		}
		reasons, shown := tally{}, make([]*v1alpha1.StorageBenchmark, len(all.Items))
		for i := range all.Items {
			shown[i] = &all.Items[i]
			reasons[[2]string{reasonOf(meta.FindStatusCondition(shown[i].Status.Conditions, v1alpha1.ConditionReady))}]++
		}
		reasons.show(out, benchmarksNow)
		out <- unlisted.gauge(float64(max(0, len(shown)-limit)))
		if len(shown) > limit {
			slices.SortFunc(shown, func(a, b *v1alpha1.StorageBenchmark) int {
				return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
			})
			shown = shown[:limit]
		}
		for _, benchmark := range shown {
			showBenchmark(out, benchmark)
		}
		return nil
	}
}

func showBenchmark(out chan<- prometheus.Metric, benchmark *v1alpha1.StorageBenchmark) {
	namespace, name, status := benchmark.Namespace, benchmark.Name, &benchmark.Status
	if word, at := resultOf(status); word != "" {
		out <- verdict.gauge(1, namespace, name, word)
		if at != nil {
			out <- lastResult.gauge(float64(at.Unix()), namespace, name)
		}
	}
	if condition := kstatus.Stuck(status.Conditions); condition != nil {
		out <- stalled.gauge(1, namespace, name, condition.Reason)
	}
	if status.Progress != nil && status.Progress.EstimatedEnd != nil {
		out <- estimatedEnd.gauge(float64(status.Progress.EstimatedEnd.Unix()), namespace, name)
	}
	for _, entry := range status.Summary {
		for _, metric := range entry.Metrics {
			if of, known := medianOf(metric.Name); known {
				out <- of.gauge(float64(metric.Median)/of.unit, namespace, name, entry.Variant, string(entry.Phase), metric.Name)
			}
		}
	}
}

// resultOf returns the verdict of the last experiment that has one: an experiment in progress has none yet.
func resultOf(status *v1alpha1.StorageBenchmarkStatus) (word string, at *metav1.Time) {
	if status.Verdict != "" {
		return string(status.Verdict), status.FinishedAt
	}
	for _, earlier := range status.History {
		if earlier.Verdict != "" {
			return earlier.Verdict, earlier.FinishedAt
		}
	}
	return "", nil
}
