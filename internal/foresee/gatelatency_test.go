package foresee

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
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
		"postgres, no writes": {judging("transactionLatencyMeanNanoseconds", ofTables), ""},
	})
}
