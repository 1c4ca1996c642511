package runs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestDiskMetrics: a disk is idle until the measurement begins, then does 100 reads of 8 KiB and 10 writes of 64 KiB a second.
func TestDiskMetrics(t *testing.T) {
	percent := int64(7)
	document := poolseries.Document{Version: poolseries.Version, StartedAt: start,
		After:             &poolseries.Space{AllocatedBytes: 5, FragmentationPercent: &percent},
		Gang:              &poolseries.Gang{Writes: 3},
		TransactionGroups: &poolseries.TransactionGroups{LongestSyncNanoseconds: 9},
		RequestSizes: []poolseries.Histogram{{Bounds: []int64{8 << 10, 16 << 10, 32 << 10}, Columns: map[string][]int64{
			"sync_read_ind": {2, 1, 0}, "async_read_agg": {0, 0, 1}, "sync_write_ind": {50, 0, 0}}}}}
	disk, mirror := poolseries.Vdev{Name: "a", Disk: true}, poolseries.Vdev{Name: "mirror-0", TopLevel: true}
	for second := int64(0); second <= 40; second += 5 {
		busy := max(min(second, 39)-10, 0) // the workload ends at 39 s
		document.Series.OffsetMilliseconds = append(document.Series.OffsetMilliseconds, second*1000)
		disk.ReadOperations, disk.ReadBytes = append(disk.ReadOperations, 100*busy), append(disk.ReadBytes, 100*busy*8192)
		disk.WriteOperations, disk.WriteBytes = append(disk.WriteOperations, 10*busy), append(disk.WriteBytes, 10*busy*65536)
		mirror.ReadOperations = append(mirror.ReadOperations, 1e9)
	}
	document.Vdevs = []poolseries.Vdev{mirror, disk}
	phase := results.PhaseDocument{Kind: results.KindMeasure, StartedAt: start.Add(2 * time.Second), FinishedAt: start.Add(39 * time.Second),
		Measured: []results.Interval{{From: start.Add(11 * time.Second), To: start.Add(39 * time.Second)}},
		Metrics:  map[string]int64{"durationNanoseconds": int64(28 * time.Second), "readOperations": 40 * 28, "transactions": 20 * 28}}
	want := map[string]int64{
		"poolAllocatedBytes": 5, "freeSpaceFragmentationPartsPerMillion": 70_000, "longestTransactionGroupNanoseconds": 9, "gangBlocks": 3,
		"smallDiskReadsPartsPerMillion": 750_000,
		"diskReadOperationsPerSecond":   100, "diskReadBytesPerSecond": 819_200, "diskReadRequestBytes": 8192,
		"diskWriteOperationsPerSecond": 10, "diskWrittenBytesPerSecond": 655_360, "diskWriteRequestBytes": 65_536,
		"diskReadsPerReadMilli": 2500, "diskReadBytesPerTransaction": 40_960, "diskWrittenBytesPerTransaction": 32_768,
	}
	if diff := cmp.Diff(want, diskMetrics(document, phase, false)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name := range want {
		if _, known := results.LookupMetric(name); !known {
			t.Errorf("metric %s is not in the vocabulary", name)
		}
	}
	for _, name := range []string{"diskReadsPerReadMilli", "diskReadBytesPerTransaction", "diskWrittenBytesPerTransaction"} {
		delete(want, name)
	}
	if diff := cmp.Diff(want, diskMetrics(document, phase, true)); diff != "" {
		t.Errorf("beside an operation (-want +got)\n%s", diff)
	}
	document.Vdevs, document.RequestSizes, document.Gang, document.TransactionGroups, document.After.FragmentationPercent = nil, nil, nil, nil,
		nil
	if diff := cmp.Diff(map[string]int64{"poolAllocatedBytes": 5}, diskMetrics(document, phase, false)); diff != "" {
		t.Errorf("of an OpenZFS that counts nothing (-want +got)\n%s", diff)
	}
}

// TestRequestSizes: the request sizes of the pool's disks, for reads and writes, are added to the distributions of the runner, which do not
// change.
func TestRequestSizes(t *testing.T) {
	document := poolseries.Document{RequestSizes: []poolseries.Histogram{
		{Vdev: "pool", Bounds: []int64{512, 1024, 2048, 4096, 8192, 16384}, Columns: map[string][]int64{
			"sync_read_ind": {0, 0, 60, 0, 1, 0}, "async_read_agg": {0, 0, 0, 0, 39, 0}, "scrub_ind": {9, 9, 9, 9, 9, 9},
			"async_write_ind": {0, 0, 0, 0, 0, 7}}},
		{Vdev: "disk", Bounds: []int64{512}, Columns: map[string][]int64{"sync_read_ind": {1000}}}}}
	known := map[string]results.Distribution{"readLatency": {Unit: results.UnitNanoseconds}}
	got := withRequestSizes(known, document, "")
	reads, writes := got["diskReadRequestSize"], got["diskWriteRequestSize"]
	mode, _ := reads.Mode()
	small, _ := reads.Below(8192)
	if len(known) != 1 || len(got) != 3 || mode != 2048 || small != 600_000 || reads.Count() != 100 || writes.Count() != 7 || writes.From[0] != 16384 {
		t.Errorf("%+v, mode %d, %d ppm below 8 KiB", got, mode, small)
	}
	if got := withRequestSizes(nil, document, ""); len(got) != 2 {
		t.Errorf("%+v", got)
	}
	document.RequestSizes[0].Columns = nil
	if got := withRequestSizes(nil, document, ""); len(got) != 0 {
		t.Errorf("nothing was counted: %+v", got)
	}
	if got := withRequestSizes(known, poolseries.Document{}, ""); len(got) != 1 {
		t.Errorf("an older OpenZFS: %+v", got)
	}
}

// TestDiskMetricsOfRounds: the work of the disks between two rounds does not count, and a few reads a second are not rounded before the
// division.
func TestDiskMetricsOfRounds(t *testing.T) {
	document := poolseries.Document{Version: poolseries.Version, StartedAt: start,
		Series: poolseries.Series{OffsetMilliseconds: []int64{0, 10_000, 20_000, 30_000}},
		Vdevs: []poolseries.Vdev{{Name: "a", Disk: true, ReadOperations: []int64{0, 4277, 900_000, 904_277}, WriteOperations: make([]int64, 4),
			ReadBytes: make([]int64, 4), WriteBytes: make([]int64, 4)}}}
	rounds := []results.Interval{{From: start, To: start.Add(10 * time.Second)},
		{From: start.Add(20 * time.Second), To: start.Add(30 * time.Second)}}
	phase := results.PhaseDocument{Kind: results.KindMeasure, StartedAt: start, FinishedAt: start.Add(30 * time.Second), Measured: rounds,
		Metrics: map[string]int64{"durationNanoseconds": int64(20 * time.Second), "readOperations": 67, "readOperationsPerSecond": 3}}
	metrics := diskMetrics(document, phase, false)
	if metrics["diskReadOperationsPerSecond"] != 428 || metrics["diskReadsPerReadMilli"] != 127_672 {
		t.Errorf("4277 reads of the disk in each of two rounds, for 67 reads in all: %v", metrics)
	}
}

// TestInflationOverPauses: the workload's own duration is 10 s of 20 s wall-clock time. Each of its 1000 reads and writes causes two
// requests to the disks.
func TestInflationOverPauses(t *testing.T) {
	document := poolseries.Document{Version: poolseries.Version, StartedAt: start,
		Series: poolseries.Series{OffsetMilliseconds: []int64{0, 10_000, 20_000}},
		Vdevs: []poolseries.Vdev{{Name: "a", Disk: true, ReadOperations: []int64{0, 1000, 2000}, WriteOperations: []int64{0, 1000, 2000},
			ReadBytes: make([]int64, 3), WriteBytes: make([]int64, 3)}}}
	end := start.Add(20 * time.Second)
	for _, phase := range []results.PhaseDocument{
		{Kind: results.KindMeasure, StartedAt: start, FinishedAt: end, Measured: []results.Interval{{From: start, To: end}}},
		{Kind: results.KindFill, StartedAt: start, FinishedAt: end},
	} {
		phase.Metrics = map[string]int64{"durationNanoseconds": int64(10 * time.Second), "readOperations": 1000, "writeOperations": 1000}
		metrics := diskMetrics(document, phase, false)
		if metrics["diskReadsPerReadMilli"] != 2000 || metrics["diskWritesPerWriteMilli"] != 2000 {
			t.Errorf("%s: %v", phase.Kind, metrics)
		}
	}
}

// TestDiskMetricsLeaveOutWhatWasBefore: the disks are idle before the phase, and do 100 reads a second during it.
func TestDiskMetricsLeaveOutWhatWasBefore(t *testing.T) {
	document := poolseries.Document{Version: poolseries.Version, StartedAt: start,
		Series: poolseries.Series{OffsetMilliseconds: []int64{0, 5000, 10_000, 15_000, 20_000}},
		Vdevs: []poolseries.Vdev{{Name: "a", Disk: true, ReadOperations: []int64{0, 0, 270, 770, 1030}, WriteOperations: make([]int64, 5),
			ReadBytes: make([]int64, 5), WriteBytes: make([]int64, 5)}}}
	phase := results.PhaseDocument{Kind: results.KindMeasure,
		Measured: []results.Interval{{From: start.Add(7300 * time.Millisecond), To: start.Add(17600 * time.Millisecond)}}}
	if got, known := diskMetrics(document, phase, false)["diskReadOperationsPerSecond"]; known {
		t.Errorf("%d reads a second from 5 s of 10.3", got)
	}
	phase.Measured[0].To = start.Add(17200 * time.Millisecond)
	if got := diskMetrics(document, phase, false)["diskReadOperationsPerSecond"]; got != 100 {
		t.Errorf("%d reads a second", got)
	}
}

// TestDiskMetricsOfAShortWindow: a phase with fewer than two samples has no rates.
func TestDiskMetricsOfAShortWindow(t *testing.T) {
	document := poolseries.Document{Version: poolseries.Version, StartedAt: start}
	disk := poolseries.Vdev{Name: "a", Disk: true,
		WriteOperations: make([]int64, 11), ReadBytes: make([]int64, 11), WriteBytes: make([]int64, 11)}
	for second := range int64(11) {
		document.Series.OffsetMilliseconds = append(document.Series.OffsetMilliseconds, second*1000)
		disk.ReadOperations = append(disk.ReadOperations, second)
	}
	document.Vdevs = []poolseries.Vdev{disk}
	phase := results.PhaseDocument{Kind: results.KindFill, StartedAt: start.Add(5 * time.Second),
		FinishedAt: start.Add(5100 * time.Millisecond)}
	if _, known := diskMetrics(document, phase, false)["diskReadOperationsPerSecond"]; known {
		t.Error("a rate over no time")
	}
	phase.FinishedAt = start.Add(12 * time.Second)
	if got := diskMetrics(document, phase, false)["diskReadOperationsPerSecond"]; got != 1 {
		t.Errorf("the last seconds are not covered: %d", got)
	}
	phase.FinishedAt = start.Add(time.Hour)
	if got, known := diskMetrics(document, phase, false)["diskReadOperationsPerSecond"]; known {
		t.Errorf("%d, though nearly all of the phase is not covered", got)
	}
}

// TestForeignWork: a scrub that the run did not start disturbs the measurement; single requests do not.
func TestForeignWork(t *testing.T) {
	for name, c := range map[string]struct {
		columns map[string][]int64
		want    bool
	}{
		"none":            {map[string][]int64{"sync_read_ind": {900, 100}, "scrub_ind": {0, 0}, "trim_ind": {50, 0}}, false},
		"single requests": {map[string][]int64{"sync_read_ind": {900, 100}, "scrub_ind": {0, 3}}, false},
		"a scrub":         {map[string][]int64{"sync_read_ind": {900, 100}, "scrub_ind": {0, 30}, "scrub_agg": {1, 0}}, true},
		"a rebuild":       {map[string][]int64{"sync_read_ind": {900, 100}, "rebuild_agg": {0, 11}}, true},
	} {
		got := foreignWork(poolseries.Document{Pool: "sb-1", RequestSizes: []poolseries.Histogram{{Bounds: []int64{1, 2}, Columns: c.columns}}})
		if (got != "") != c.want || c.want && !strings.Contains(got, "pool sb-1") {
			t.Errorf("%s: it says %q", name, got)
		}
	}
	if got := foreignWork(poolseries.Document{}); got != "" {
		t.Errorf("of nothing it says %q", got)
	}
}
