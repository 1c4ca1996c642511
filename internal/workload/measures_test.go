package workload

import (
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

func measuring(workload v1alpha1.Workload) v1alpha1.Phase {
	return v1alpha1.Phase{Name: "p", Measure: &v1alpha1.MeasurePhase{Workload: workload}}
}

// TestIntervalMetrics: a phase with an operation that begins and ends within it has rates before, during and after the operation, and no
// latencies for these times.
func TestIntervalMetrics(t *testing.T) {
	within, throughout := measuring(v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}), measuring(v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}})
	within.Measure.OperateAfter = lasting(1)
	for metric, can := range map[string]bool{"before.readBytesPerSecond": true, "during.readBytesPerSecond": true,
		"after.durationNanoseconds": true, "during.writeBytesPerSecond": false, "during.readLatencyP99Nanoseconds": false,
		"while.readBytesPerSecond": false, "readBytesPerSecond": true, "during.metadataOperationsPerSecond": false} {
		if CanMeasure(&within, true, metric) != can {
			t.Errorf("%s is possible: %v", metric, !can)
		}
		if listed := slices.Contains(Metrics(&within, true), metric); listed != can {
			t.Errorf("%s is listed: %v", metric, listed)
		}
	}
	if CanMeasure(&throughout, true, "during.readBytesPerSecond") {
		t.Error("a phase has rates of times that it has not")
	}
}

// TestCanMeasure covers examples. The tests of the engine compare CanMeasure with each document that they create.
func TestCanMeasure(t *testing.T) {
	const jobs = "[log]\nrw=write\nsize=1m\n[data]\nrw=read\nsize=1m\n"
	fill, fragment := v1alpha1.Phase{Fill: &v1alpha1.FillPhase{}}, v1alpha1.Phase{Fragment: &v1alpha1.FragmentPhase{}}
	operate := func(action v1alpha1.PoolAction) v1alpha1.Phase {
		return v1alpha1.Phase{Operate: &v1alpha1.OperatePhase{PoolAction: action}}
	}
	scan := measuring(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}})
	beside, copying, newer, steady := scan, scan, scan, scan
	beside.Measure = &v1alpha1.MeasurePhase{Workload: scan.Measure.Workload, Operate: &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}}
	copying.Measure = &v1alpha1.MeasurePhase{Workload: scan.Measure.Workload, Operate: &v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{}}}
	newer.Measure = &v1alpha1.MeasurePhase{Workload: scan.Measure.Workload, Operate: &v1alpha1.PoolAction{}}
	steady.Measure = &v1alpha1.MeasurePhase{Workload: scan.Measure.Workload, SteadyState: &v1alpha1.SteadyState{}}
	reading, updating := measuring(v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}),
		measuring(v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{UpdatePercent: 5}})
	dsync, fdatasync := measuring(v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{Sync: "dsync"}}),
		measuring(v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{Sync: "fdatasync"}})
	metadata, postgres := measuring(v1alpha1.Workload{Metadata: &v1alpha1.MetadataWorkload{}}),
		measuring(v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{}})
	scrubbed := measuring(postgres.Measure.Workload)
	scrubbed.Measure.Operate = beside.Measure.Operate
	fio := measuring(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: jobs}})
	one := measuring(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[log]\nrw=write\nsize=1m\n"}})
	aio := measuring(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{
		JobFile: "[log]\nrw=write\nsize=1m\nioengine=libaio\nfsync=1\n[data]\nrw=read\nsize=1m\n"}})
	paced := measuring(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{
		JobFile: "[log]\nrw=write\nsize=1m\nrate_iops=100\n[data]\nrw=read\nsize=1m\n"}})
	elsewhere := measuring(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFileFrom: &v1alpha1.ConfigMapKey{Name: "c", Key: "k"}}})
	together := v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workloads: []v1alpha1.NamedWorkload{
		{Name: "data", OLTP: &v1alpha1.OLTPWorkload{}}, {Name: "redo-log", Redo: &v1alpha1.RedoWorkload{Sync: "dsync"}}}}}
	three := v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workloads: together.Measure.Workloads, Operate: copying.Measure.Operate}}
	for _, c := range []struct {
		of         string
		phase      v1alpha1.Phase
		onPool     bool
		has, lacks string
	}{
		{"scan", scan, false, "readBytesPerSecond slowestRegionReadBytesPerSecond nodeARCMostBytes nodeCPUNanoseconds cacheHitPartsPerMillion durationNanoseconds ioErrors",
			"writeBytesPerSecond transactionsPerSecond diskReadRequestSize.mode diskWritesPerCopiedMebibyteMilli rounds filledBytes a.readBytes"},
		{"disks of a plain volume", scan, false, "diskReadBytesPerSecond diskReadsPerReadMilli diskReadRequestBytes diskWrittenBytesPerSecond " +
			"diskWriteLatencyMeanNanoseconds diskBusyPartsPerMillion diskQueueMilli", "smallDiskReadsPartsPerMillion poolAllocatedBytes"},
		{"scan on a pool", scan, true, "diskReadBytesPerSecond gangBlocks freeSpaceFragmentationPartsPerMillion readBytesPerApplicationByteMilli",
			"besidePartsPerMillion scannedBytes overwrittenFiles deviceReadBytes diskWritesPerCopiedMebibyteMilli " +
				"writtenBytesPerApplicationByteMilli"},
		{"appends on a pool", dsync, true, "writtenBytesPerApplicationByteMilli", "readBytesPerApplicationByteMilli deviceWrittenBytes"},
		{"scan beside a scrub", beside, true, "besidePartsPerMillion scannedBytes dataErrors diskReadBytesPerSecond diskReadRequestBytes",
			"rounds copiedBytes freedBytes readBytesPerApplicationByteMilli diskReadsPerReadMilli diskWritesPerWriteMilli"},
		{"scan beside a scrub, without a pool", beside, false, "diskReadBytesPerSecond", "readBytesPerApplicationByteMilli diskReadsPerReadMilli"},
		{"postgres beside a scrub", scrubbed, true, "transactionsPerSecond diskWrittenBytesPerSecond walBytesPerTransaction",
			"diskReadBytesPerTransaction diskWrittenBytesPerTransaction"},
		{"scan beside a copy", copying, true, "besidePartsPerMillion copiedBytes copiedBytesPerSecond",
			"scannedBytes diskWritesPerCopiedMebibyteMilli"},
		{"scan beside something newer", newer, true, "copiedBytes scannedBytes", "diskWritesPerCopiedMebibyteMilli rounds diskReadBytesPerTransaction"},
		{"scan in rounds", steady, false, "rounds steadyStateSlopePartsPerMillion", "besidePartsPerMillion"},
		{"reads", reading, false, "readLatencyP99Nanoseconds", "writeLatencyP99Nanoseconds writtenBytes"},
		{"updates", updating, false, "readLatencyP99Nanoseconds writeLatencyP99Nanoseconds writtenBytesPerApplicationByteMilli",
			"syncOperations"},
		{"dsync", dsync, false, "writeLatencyP99Nanoseconds shareOver1MillisecondPartsPerMillion", "syncLatencyP99Nanoseconds readBytes"},
		{"fdatasync", fdatasync, false, "writeLatencyP99Nanoseconds syncLatencyP99Nanoseconds", "transactions"},
		{"metadata", metadata, false, "metadataOperationsPerSecond createLatencyMeanNanoseconds unlinkOperationsPerSecond",
			"readBytesPerSecond"},
		{"postgres", postgres, false, "transactionsPerSecond checkpoints walBytes databaseBytes diskWrittenBytesPerTransaction", "readBytesPerSecond metadataOperations"},
		{"fio", fio, false, "readBytes syncOperations log.writeBytesPerSecond data.readLatencyP99Nanoseconds",
			"logs.writeBytes log.transactions log.writtenBytesPerApplicationByteMilli"},
		{"fio on a pool", fio, true, "writtenBytesPerApplicationByteMilli log.writeBytes", "data.readBytesPerApplicationByteMilli"},
		{"one job", one, false, "writeBytesPerSecond syncOperations", "log.writeBytesPerSecond syncLatencyP99Nanoseconds"},
		{"syncs of libaio", aio, false, "syncOperations log.syncOperations writeLatencyP99Nanoseconds log.writeLatencyP99Nanoseconds",
			"syncLatencyP99Nanoseconds log.syncLatencyMeanNanoseconds syncLatency.shareOver10ms"},
		{"a paced job", paced, false, "writeOperationsPerSecond data.readLatencyP99Nanoseconds log.writeBytes",
			"readLatencyP99Nanoseconds log.writeLatencyP99Nanoseconds writeLatency.shareOver10ms"},
		{"a job that reads", measuring(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[global]\nreadwrite=randread:8\n[a]\n[b]\nrw=randwrite"}}), false,
			"readBytes writtenBytes a.readLatencyP99Nanoseconds b.writeOperationsPerSecond", "a.writeOperationsPerSecond a.writeLatency.shareOver10ms b.readBytes"},
		{"jobs that read", measuring(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[a]\n[b]\nrw=read"}}), false,
			"readBytesPerSecond a.readBytes", "writeOperationsPerSecond writtenBytes b.writeBytesPerSecond"},
		{"jobs of a ConfigMap", elsewhere, false, "any.readBytes readBytes", "any.transactions"},
		{"fill", fill, false, "filledBytes allocatedBytes volumeBytes writeBytesPerSecond compressionRatioMilli",
			"flushNanoseconds readBytesPerSecond poolAllocatedBytes cpuNanoseconds nodeMemoryAvailableBytes deviceWrittenBytes diskBusyPartsPerMillion " +
				"writtenBytesPerApplicationByteMilli"},
		{"fill on a pool", fill, true, "writtenBytesPerApplicationByteMilli", "readBytesPerApplicationByteMilli"},
		{"fragment on a plain volume", fragment, false, "rounds writtenBytes", "writtenBytesPerApplicationByteMilli"},
		{"fragment", fragment, true, "rounds coveragePartsPerMillion writeBytesPerSecond diskWriteRequestBytes poolAllocatedBytes",
			"transactions diskQueueMilli flushNanoseconds allocatedBytes filledBytes volumeBytes compressionRatioMilli"},
		{"free", v1alpha1.Phase{Free: &v1alpha1.FreePhase{}}, true, "freedBytes allocatedBytes durationNanoseconds", "volumeBytes flushNanoseconds"},
		{"copy", operate(v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{}}), true,
			"copiedBytes durationNanoseconds diskWrittenBytesPerCopiedBytePartsPerMillion",
			"readBytesPerSecond cpuNanoseconds gangBlocks diskReadBytesPerSecond layoutScorePartsPerMillion freedBytes"},
		{"clone", operate(v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{}}), true, "referencedBytes durationNanoseconds",
			"freedBytes receivedReferencedBytes copiedBytes copiedBytesPerSecond"},
		{"snapshot", operate(v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{}}), true, "referencedBytes", "copiedBytes sentBytes"},
		{"layout score", operate(v1alpha1.PoolAction{LayoutScore: &v1alpha1.LayoutScoreAction{}}), true, "layoutScorePartsPerMillion",
			"freeSegments diskWritesPerCopiedMebibyteMilli"},
		{"export", operate(v1alpha1.PoolAction{ExportImport: &v1alpha1.ExportImportAction{}}), true, "durationNanoseconds",
			"copiedBytes errorsFound besidePartsPerMillion ioErrors startLagNanoseconds"},
		{"an operation of a newer release", operate(v1alpha1.PoolAction{}), true, "copiedBytes freedBytes layoutScorePartsPerMillion",
			"readBytesPerSecond gangBlocks besidePartsPerMillion"},
		{"distributions", dsync, true, "writeLatency.shareOver10ms diskWriteRequestSize.mode", "readLatency.shareOver10ms scanRegionTime.count"},
		{"no pool", scan, false, "scanRegionTime.shareOver10ms", "diskReadRequestSize.mode"},
		{"together", together, true, "data.readBytesPerApplicationByteMilli data.readLatencyP99Nanoseconds redo-log.writeLatency.shareOver10ms redo-log.diskWriteBytesPerSecond " +
			"readBytesPerSecond writtenBytes cpuNanoseconds nodeMemoryAvailableLeastBytes durationNanoseconds gangBlocks",
			"data.gangBlocks redo-log.gangBlocks readLatencyP99Nanoseconds diskWriteBytesPerSecond writeLatency.shareOver10ms data.writtenBytes log.writtenBytes deviceReadBytes"},
		{"together on one plain volume", together, false, "data.readLatencyP99Nanoseconds redo-log.writeLatency.shareOver10ms cpuNanoseconds",
			"data.diskReadBytesPerSecond redo-log.deviceWrittenBytes data.readBytesPerApplicationByteMilli"},
		{"together beside a copy", three, true, "copiedBytes besidePartsPerMillion data.readLatencyP99Nanoseconds",
			"scannedBytes data.copiedBytes diskWritesPerCopiedMebibyteMilli data.readBytesPerApplicationByteMilli data.diskReadsPerReadMilli"},
		{"a phase of a newer release", v1alpha1.Phase{}, false, "readBytesPerSecond transactionsPerSecond a.readBytes", ""},
	} {
		for _, name := range strings.Fields(c.has) {
			if !CanMeasure(&c.phase, c.onPool, name) {
				t.Errorf("%s cannot have %s", c.of, name)
			}
		}
		for _, name := range strings.Fields(c.lacks) {
			if CanMeasure(&c.phase, c.onPool, name) {
				t.Errorf("%s can have %s", c.of, name)
			}
		}
	}
}

// TestMetricsOfWorkloads: each workload says which metrics are its own, and has primary ones. For each metric there is a phase that can
// have it.
func TestMetricsOfWorkloads(t *testing.T) {
	all := map[string]bool{}
	note := func(phase v1alpha1.Phase) []string {
		names := Metrics(&phase, true)
		for _, name := range append(Metrics(&phase, false), names...) {
			all[name] = true
		}
		return names
	}
	note(v1alpha1.Phase{Fill: &v1alpha1.FillPhase{}})
	note(v1alpha1.Phase{Fragment: &v1alpha1.FragmentPhase{}})
	note(v1alpha1.Phase{Free: &v1alpha1.FreePhase{}})
	note(v1alpha1.Phase{Operate: &v1alpha1.OperatePhase{}})
	for _, given := range []v1alpha1.Workload{{OLTP: &v1alpha1.OLTPWorkload{}}, {Scan: &v1alpha1.ScanWorkload{}},
		{Redo: &v1alpha1.RedoWorkload{}}, {Metadata: &v1alpha1.MetadataWorkload{}}, {Postgres: &v1alpha1.PostgresWorkload{}},
		{FIO: &v1alpha1.FIOWorkload{JobFile: "[a]"}}} {
		phase := measuring(given)
		note(phase)
		phase.Measure.Operate = &v1alpha1.PoolAction{}
		traits, _ := PhaseTraits(&phase)
		names := note(phase)
		if first, _ := results.LookupMetric(names[0]); traits.Yields == "" || !first.Primary || len(names) == len(results.Metrics()) {
			t.Errorf("%s has %d metrics, the first is %s", traits.Name, len(names), names[0])
		}
	}
	archived := measuring(v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{Archive: &v1alpha1.RedoArchive{}}})
	for _, name := range note(archived) {
		all[name[strings.LastIndexByte(name, '.')+1:]] = true
	}
	for _, metric := range results.Metrics() {
		if !all[metric.Name] {
			t.Errorf("no phase can have %s", metric.Name)
		}
	}
}
