package foresee

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// TestLatenciesOfMemory: a gate on the time of writes that ZFS acknowledges in memory holds on any disk.
func TestLatenciesOfMemory(t *testing.T) {
	const mean = "writeLatencyMeanNanoseconds"
	judging := func(metric string, given v1alpha1.Workload, change ...func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) {
			measuring(s, given)
			s.Gates = []v1alpha1.Gate{{Name: "g", Bound: &v1alpha1.BoundGate{Metric: v1alpha1.MetricPath("ma." + metric), Max: "1ms"}}}
			for _, one := range change {
				one(s)
			}
		}
	}
	always := func(s *effectSpec) { s.Target.ZFS.Dataset.Properties = v1alpha1.Properties{"sync": "always"} }
	formatted := func(s *effectSpec) { s.Target.ZFS.Dataset.Type, s.Target.ZFS.Dataset.FSType = "Volume", "ext4" }
	direct := func(value v1alpha1.PropertyValue) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Dataset.Properties = v1alpha1.Properties{"direct": value, "recordsize": "8k"}
		}
	}
	parts := func(s *effectSpec) { s.Target.ZFS.Dataset.Properties["recordsize"] = "16k" }
	around := jobFile("rw=write", "bs=8k", "direct=1")
	after, whole := *ofRedo.DeepCopy(), *ofSmall.DeepCopy()
	after.Redo.Sync, whole.Metadata.Sync = "fdatasync", "File"
	const warns = "warning: spec.gates[0].bound.metric: is the time that ZFS takes to copy into memory: judge "
	foresee(t, map[string]foreseen{
		"oltp":                {judging(mean, ofOLTP), warns + "writeOperationsPerSecond"},
		"oltp, reads":         {judging("readLatencyMeanNanoseconds", ofOLTP), ""},
		"oltp, sync: always":  {judging(mean, ofOLTP, always), ""},
		"oltp on ext4":        {judging(mean, ofOLTP, formatted), ""},
		"redo":                {judging(mean, ofRedo), ""},
		"redo, fdatasync":     {judging(mean, after), warns + "syncLatency"},
		"metadata":            {judging("createLatencyP99Nanoseconds", ofSmall), warns + "it with sync: File"},
		"metadata, synced":    {judging("createLatencyP99Nanoseconds", whole), ""},
		"fio":                 {judging(mean, jobFile("rw=write", "fdatasync=1")), warns + "it with sync=dsync in the job"},
		"fio, O_DSYNC":        {judging(mean, jobFile("rw=write", "sync=dsync")), ""},
		"fio, unknown":        {judging(mean, elsewhere), ""},
		"fio, direct":         {judging(mean, around, direct("standard")), ""},
		"fio, not direct":     {judging(mean, around, direct("disabled")), warns + "it with sync=dsync in the job"},
		"fio, direct parts":   {judging(mean, around, direct("standard"), parts), warns + "it with sync=dsync in the job"},
		"oltp, direct":        {judging(mean, ofOLTP, direct("always")), ""},
		"oltp, direct parts":  {judging(mean, ofOLTP, direct("always"), parts), warns + "writeOperationsPerSecond"},
		"postgres, no writes": {judging("transactionLatencyMeanNanoseconds", ofTables), ""},
	})
}

// TestWhereFillsEnd: a fill with to ends where the spec says, whatever the variants are.
func TestWhereFillsEnd(t *testing.T) {
	judging := func(change func(*effectSpec), one v1alpha1.Gate) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Matrix = v1alpha1.Matrix{"dataset.compression": {"off", "lz4"}}
			s.Phases[0].Fill.Compressibility = "50%"
			one.Name, s.Gates = "g", []v1alpha1.Gate{one}
			change(s)
		}
	}
	asIs := func(*effectSpec) {}
	sized := func(s *effectSpec) {
		s.Phases[0].Fill.To, s.Phases[0].Fill.Size = "", &v1alpha1.Amount{Quantity: resource.MustParse("1Gi")}
	}
	compare := func(metric v1alpha1.MetricPath) v1alpha1.Gate {
		return v1alpha1.Gate{Ratio: &v1alpha1.RatioGate{Of: metric, ToVariant: "dataset.compression=off", Max: "90%"}}
	}
	const warns = "warning: spec.gates[0].ratio: ends at 50% of the space, so allocatedBytes says nothing"
	within := v1alpha1.Gate{Ratio: &v1alpha1.RatioGate{Of: "fill.allocatedBytes", To: "fill.filledBytes", Max: "90%"}}
	foresee(t, map[string]foreseen{
		"compared":             {judging(asIs, compare("fill.allocatedBytes")), warns},
		"what fits":            {judging(asIs, compare("fill.filledBytes")), ""},
		"the same amount":      {judging(sized, compare("fill.allocatedBytes")), ""},
		"within a run":         {judging(asIs, within), ""},
		"of the whole pool":    {judging(asIs, compare("fill.poolAllocatedBytes")), ""},
		"where it ends itself": {judging(asIs, v1alpha1.Gate{Bound: &v1alpha1.BoundGate{Metric: "fill.allocatedBytes", Min: "1Mi"}}), ""},
	})
}

// TestEveryMetricOfEveryPhase: a gate may name any metric of any phase. No check takes a kind of phase for granted.
func TestEveryMetricOfEveryPhase(t *testing.T) {
	size := &v1alpha1.Amount{Quantity: resource.MustParse("1Gi")}
	lasting := runstest.Lasting(time.Minute)
	action := v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
	measure := func(given v1alpha1.Workload) v1alpha1.Phase {
		return v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workload: given}}
	}
	phases := map[string]v1alpha1.Phase{
		"fill": {Fill: &v1alpha1.FillPhase{Size: size}}, "fragment": {Fragment: &v1alpha1.FragmentPhase{}}, "free": {Free: &v1alpha1.FreePhase{}},
		"operate": {Operate: &v1alpha1.OperatePhase{PoolAction: action}}, "oltp": measure(v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}),
		"scan": measure(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}), "redo": measure(v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{}}),
		"metadata": measure(v1alpha1.Workload{Metadata: &v1alpha1.MetadataWorkload{}}),
		"postgres": measure(v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{}}),
		"fio":      measure(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[a]\nrw=randrw\nsize=1m"}}),
		"beside":   {Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}, Operate: &action}},
		"together": {Measure: &v1alpha1.MeasurePhase{Workloads: []v1alpha1.NamedWorkload{{Name: "a", OLTP: &v1alpha1.OLTPWorkload{Duration: lasting}},
			{Name: "b", Redo: &v1alpha1.RedoWorkload{Duration: lasting}}}}},
	}
	checked := 0
	for name, phase := range phases {
		phase.Name = v1alpha1.PhaseName(name)
		for _, volume := range []*v1alpha1.Size{nil, {Quantity: resource.MustParse("4Gi")}} {
			spec := runstest.ZFSSpec()
			spec.Phases = []v1alpha1.Phase{{Name: "before", Fill: &v1alpha1.FillPhase{Size: size}}, phase}
			spec.Target.ZFS.Dataset.Size = volume
			for _, metric := range results.Metrics() {
				for _, of := range []string{"", "a."} {
					limit := v1alpha1.Bound("1000000")
					if metric.Unit == "ns" {
						limit = "10ms"
					}
					spec.Gates = []v1alpha1.Gate{{Name: "g", Bound: &v1alpha1.BoundGate{Metric: v1alpha1.MetricPath(name + "." + of + metric.Name), Max: limit}}}
					slots, err := design.Expand(spec, 1)
					if err != nil {
						t.Fatal(name, err)
					}
					if compiled, err := gate.Compile(spec.Gates, spec.Phases, design.VariantNames(slots)); err == nil {
						_ = Spec(spec, slots, compiled)
						checked++
					}
				}
			}
		}
	}
	if checked < 2000 {
		t.Errorf("only %d gates were checked", checked)
	}
}
