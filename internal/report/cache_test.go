package report

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
)

// TestCacheWarnings: a gate that compares reads from memory with reads from disks says so, in both forms of the report.
func TestCacheWarnings(t *testing.T) {
	// reads of a phase, per second: bytes of the workload, bytes of the disks, and disk reads per 1,000 reads
	phase := func(name string, read, fromDisks, requests int64) results.PhaseResult {
		metric := func(name string, median int64) results.MetricResult {
			return results.MetricResult{Name: name, Median: median, Runs: 1}
		}
		return results.PhaseResult{Name: name, Metrics: []results.MetricResult{metric("data.readBytesPerSecond", read),
			metric("data.diskReadBytesPerSecond", fromDisks), metric("data.diskReadsPerReadMilli", requests), metric("log.writeLatency", 1)}}
	}
	metric := "log.writeLatency"
	for _, c := range []struct {
		name          string
		before, after results.PhaseResult
		metric        string
		want          string
	}{
		{"a copy has emptied the cache", phase("before", 1000, 390, 390), phase("after", 1000, 890, 891), metric,
			"gate g compares reads from a cache with reads from disks: for 100 reads, the disks read 39 times in phase before of variant a, and 89 " +
				"times in phase after of variant a. The difference may come from the cache."},
		{"both from disks", phase("before", 1000, 1000, 1000), phase("after", 1000, 1000, 1000), metric, ""},
		{"both from memory", phase("before", 1000, 10, 10), phase("after", 1000, 150, 150), metric, ""},
		{"compressed", phase("before", 1000, 250, 1000), phase("after", 1000, 1000, 1000), metric, ""},
		{"in larger requests", phase("before", 1000, 1000, 125), phase("after", 1000, 1000, 1000), metric, ""},
		{"a scrub reads too", phase("before", 1000, 1000, 1000), phase("after", 1000, 5000, 5000), metric, ""},
		{"nothing was read", phase("before", 0, 0, 0), phase("after", 1000, 1000, 1000), metric, ""},
		{"it judges the cache", phase("before", 1000, 390, 390), phase("after", 1000, 890, 891), "data.diskReadsPerReadMilli", ""},
	} {
		e := experiment(1, "a")
		e.Variants = []results.VariantResult{{Name: "a", Phases: []results.PhaseResult{c.before, c.after}}}
		e.Gates = []results.GateResult{{Name: "g", Verdict: "Passed", Metrics: []results.GateMetric{{Phase: "before", Metric: c.metric},
			{Phase: "after", Metric: c.metric}}}}
		checkCacheWarnings(t, c.name, e, c.want)

		e.Variants = []results.VariantResult{{Name: "a", Phases: []results.PhaseResult{c.before}},
			{Name: "b", Phases: []results.PhaseResult{{Name: "before", Metrics: c.after.Metrics}}}}
		e.Gates[0].Metrics = []results.GateMetric{{Phase: "before", Metric: c.metric}, {Variant: "a", Phase: "before", Metric: c.metric}}
		checkCacheWarnings(t, c.name+", in another variant", e, strings.ReplaceAll(c.want, "after of variant a", "before of variant b"))
	}
}

func checkCacheWarnings(t *testing.T, name string, e results.Experiment, want string) {
	t.Helper()
	got := strings.Join(cacheWarnings(e), "\n")
	if got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
	if markdown, _ := renderMarkdown(e); want != "" && !strings.Contains(markdown, want) {
		t.Errorf("%s: the Markdown does not say it:\n%s", name, markdown)
	}
}
