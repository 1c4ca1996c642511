package gate

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// busyPhases has phases with one workload and with several.
var busyPhases = []v1alpha1.Phase{
	{Name: "alone", Measure: &v1alpha1.MeasurePhase{}},
	{Name: "oltp", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{UpdatePercent: 25}}}},
	{Name: "scan", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}}},
	{Name: "busy", Measure: &v1alpha1.MeasurePhase{Workloads: []v1alpha1.NamedWorkload{{Name: "data"}, {Name: "redo-log"}}}},
}

// TestGatesOfWorkloads: each kind of gate reads the figures of one of several workloads, and a wrong name is found at once.
func TestGatesOfWorkloads(t *testing.T) {
	phase := func(value int64) []results.PhaseResult {
		return []results.PhaseResult{{Name: "busy", Metrics: []results.MetricResult{
			{Name: "data.writeOperationsPerSecond", Unit: "1/s", Better: "Higher", Median: 5, Runs: 6},
			{Name: "redo-log.writeOperationsPerSecond", Unit: "1/s", Better: "Higher", Median: value, Runs: 6},
			{Name: "redo-log.writeLatency.shareOver1500us", Unit: "ppm", Better: "Lower", Median: 20_000, Runs: 6},
			{Name: "redo-log.writeLatency.count", Unit: "count", Better: "Neither", Median: 1_000_000, Runs: 6}}}}
	}
	summary := []results.VariantResult{{Name: "a", Phases: phase(100)}, {Name: "b", Phases: phase(50)}}
	for name, test := range map[string]struct {
		gate v1alpha1.Gate
		want v1alpha1.Verdict
	}{
		"bound":        {boundGate("busy.redo-log.writeOperationsPerSecond", "60", ""), failed},
		"bound holds":  {boundGate("busy.redo-log.writeOperationsPerSecond", "40", ""), passed},
		"compare":      {compareGate("busy.redo-log.writeOperationsPerSecond", "Variant", "a"), failed},
		"expression":   {expression("phase('busy').workload('redo-log').writeOperationsPerSecond >= 60.0"), failed},
		"of a variant": {expression("variant('a').phase('busy').workload('redo-log').writeOperationsPerSecond == 100.0"), passed},
		"two of them": {expression("phase('busy').workload('data').writeOperationsPerSecond < " +
			"phase('busy').workload('redo-log').writeOperationsPerSecond"), passed},
		"share":            {expression("phase('busy').workload('redo-log').share('writeLatency', '>', '1500us') <= 0.01"), failed},
		"share in a bound": {boundGate("busy.redo-log.writeLatency.shareOver1500us", "", "3%"), passed},
	} {
		set, err := Compile([]v1alpha1.Gate{test.gate}, busyPhases, []string{"a", "b"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := set.Judge(Evidence{Summary: summary, Runs: runsOf(summary)})[0]; got.Verdict != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for text, says := range map[string]string{
		"phase('busy').workload('redolog').readBytes > 1.0":                       `did you mean "redo-log"`,
		"phase('busy').workload('data').readBites > 1.0":                          `there is no metric "data.readBites"`,
		"phase('oltp').readLatencyP99 > 1.0":                                      `did you mean "readLatencyP99Nanoseconds"`,
		"phase('oltp').readsPerSecond > 1.0":                                      `did you mean "readOperationsPerSecond"`,
		"phase('oltp').writeIOPS > 1.0":                                           `did you mean "writeOperationsPerSecond"`,
		"phase('scan').q > 1.0":                                                   "use one of readBytesPerSecond",
		"phase('busy').workload('data') == phase('busy').workload('data')":        "choose a metric",
		"phase('busy').workload('data').workload('redo-log').readBytes > 1.0":     "only part of a reference",
		"phase('alone').workload(true ? 'a' : 'b').readBytes > 1.0":               "needs a name in quotes",
		"[phase('busy'), phase('alone')][0].workload('data').readBytes > 1.0":     "choose one",
		"phase('busy').all(x, phase('busy').workload('data')[x] > 1.0)":           "only part of a reference",
		"phase('busy').workload('a b').readBytes > 1.0":                           `no workload "a b"`,
		"phase('busy').workload('lgo').share('writeLatency', '>', '1ms') < 1.0":   `phase "busy" has no workload "lgo"`,
		"workload('data').share('writeLatency', '>', '1ms') < 1.0":                "no matching overload",
		"workload('data').readBytes > 1.0":                                        "no matching overload",
		"phase('busy').readBytes.workload('data').writeOperationsPerSecond > 1.0": "no matching overload",
	} {
		if _, err := Compile([]v1alpha1.Gate{expression(text)}, busyPhases, []string{"a"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	if _, err := Compile([]v1alpha1.Gate{boundGate("busy.lgo.readBytes", "1B", "")}, busyPhases, []string{"a"}); err == nil ||
		!strings.Contains(err.Error(), `phase "busy" has no workload "lgo"`) {
		t.Error(err)
	}
	if _, err := Compile([]v1alpha1.Gate{boundGate("busy.lgo.writeLatency.shareOver1500us", "1", "")}, busyPhases, []string{"a"}); err == nil ||
		!strings.Contains(err.Error(), `phase "busy" has no workload "lgo"`) {
		t.Error(err)
	}
	if _, err := Compile([]v1alpha1.Gate{boundGate("alone.job1.readBytes", "1B", "")}, busyPhases, []string{"a"}); err != nil {
		t.Errorf("a job of a job file: %v", err)
	}
}
