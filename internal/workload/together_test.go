package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func lasting(long time.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: long}}
}

func several(given ...v1alpha1.NamedWorkload) *v1alpha1.Phase {
	return &v1alpha1.Phase{Name: "busy", Volume: "data", Measure: &v1alpha1.MeasurePhase{Cache: v1alpha1.CacheAny, Workloads: given}}
}

func data(name string, updates int32, long time.Duration) v1alpha1.NamedWorkload {
	return v1alpha1.NamedWorkload{Name: v1alpha1.VolumeName(name), OLTP: &v1alpha1.OLTPWorkload{UpdatePercent: updates, Duration: lasting(long),
		RampUp: lasting(time.Second), Workers: 4, Layout: LayoutFilePerWorker}}
}

func redoOn(name, volume string, long time.Duration) v1alpha1.NamedWorkload {
	return v1alpha1.NamedWorkload{Name: v1alpha1.VolumeName(name), Volume: v1alpha1.VolumeName(volume),
		Redo: &v1alpha1.RedoWorkload{Duration: lasting(long)}}
}

// TestPartsOf: each of several workloads is like a phase with one workload, and the phase itself covers the needs of all of them.
func TestPartsOf(t *testing.T) {
	scan := v1alpha1.NamedWorkload{Name: "scan", Scan: &v1alpha1.RepeatedScan{BlockSize: &v1alpha1.BlockSize{}}}
	phase := several(data("data", 0, time.Minute), redoOn("redo", "log", time.Minute), scan)
	parts := PartsOf(phase)
	if len(parts) != 3 || parts[0].Phase.Volume != "data" || parts[1].Phase.Volume != "log" || parts[2].Phase.Volume != "data" {
		t.Fatalf("%+v", parts)
	}
	for i, want := range []string{"oltp", "redo", "scan"} {
		part := parts[i]
		if traits, measures := PhaseTraits(&part.Phase); !measures || traits.Name != want || len(part.Phase.Measure.Workloads) > 0 ||
			part.Phase.Name != "busy" || part.Name != string(phase.Measure.Workloads[i].Name) {
			t.Errorf("part %d is %s: %+v", i, traits.Name, part)
		}
	}
	if parts[2].Phase.Measure.Workload.Scan.BlockSize != scan.Scan.BlockSize {
		t.Error("the block size of the scan is lost")
	}
	traits, measures := PhaseTraits(phase)
	if !measures || traits.Duration != time.Minute || traits.RampUp != time.Second || !traits.ReadsFill || traits.DataFiles != 4 {
		t.Errorf("%+v", traits)
	}
	if DataFilesFor([]v1alpha1.Phase{*phase}) != 4 || len(Measured(phase)) != 3 {
		t.Error("the fill would not write the files that a part needs")
	}
	alone := v1alpha1.Phase{Name: "one", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{}}}}
	if len(PartsOf(&alone)) > 0 || len(Measured(&alone)) != 1 || len(PartsOf(&v1alpha1.Phase{})) > 0 {
		t.Error("a phase with one workload has parts")
	}
}

// TestArchiverIsAPart: an archiver is a separate workload on its volume, after all others, even if its log is the only other workload of
// the phase.
func TestArchiverIsAPart(t *testing.T) {
	log := redoOn("log", "log", time.Minute)
	log.Redo.Archive = &v1alpha1.RedoArchive{Volume: "archive"}
	near := redoOn("near", "data", time.Minute)
	near.Redo.Archive = &v1alpha1.RedoArchive{}
	alone := &v1alpha1.Phase{Name: "one", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Redo: log.Redo}}}
	type of struct{ name, volume, field, archives, traits string }
	for name, c := range map[string]struct {
		phase *v1alpha1.Phase
		want  []of
	}{
		"several": {several(log, data("data", 0, time.Minute), near), []of{{"log", "log", "workloads[0].redo", "", "redo"},
			{"data", "data", "workloads[1].oltp", "", "oltp"}, {"near", "data", "workloads[2].redo", "", "redo"},
			{"log-archive", "archive", "workloads[0].redo.archive", "log", "archive"},
			{"near-archive", "data", "workloads[2].redo.archive", "near", "archive"}}},
		"alone": {alone, []of{{"redo", "", "workload.redo", "", "redo"}, {"archive", "archive", "workload.redo.archive", "redo", "archive"}}},
	} {
		var got []of
		for _, part := range PartsOf(c.phase) {
			traits := part.Traits()
			got = append(got, of{part.Name, string(part.Phase.Volume), part.Field, part.Archives, traits.Name})
			if traits.Duration != time.Minute || len(PartsOf(&part.Phase)) > 0 {
				t.Errorf("%s: part %s lasts for %s and has parts of its own", name, part.Name, traits.Duration)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if problem := WhyApart(PartsOf(c.phase)); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
	if log.Redo.Archive == nil {
		t.Error("the spec was changed")
	}
	for metric, can := range map[string]bool{"redo.longestCommitGapNanoseconds": true, "archive.archivedBytes": true,
		"archive.readBytesPerSecond": true, "redo.archivedBytes": false, "archive.longestCommitGapNanoseconds": false,
		"archive.shareOver10MillisecondsPartsPerMillion": false, "longestCommitGapNanoseconds": false, "writeBytesPerSecond": true} {
		if CanMeasure(alone, true, metric) != can {
			t.Errorf("an archived log can have %s: %v", metric, !can)
		}
	}
	plain := redoOn("log", "log", time.Minute)
	if CanMeasure(&v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Redo: plain.Redo}}}, true,
		"longestCommitGapNanoseconds") {
		t.Error("a log without an archiver has a commit gap")
	}
}

func TestApart(t *testing.T) {
	archived, taken := redoOn("log", "", time.Minute), data("log-archive", 0, time.Minute)
	archived.Redo.Archive = &v1alpha1.RedoArchive{}
	scan := v1alpha1.NamedWorkload{Name: "scan", Scan: &v1alpha1.RepeatedScan{}}
	for _, test := range []struct {
		name  string
		given []v1alpha1.NamedWorkload
		says  string
	}{
		{"a database", []v1alpha1.NamedWorkload{data("data", 20, time.Minute), redoOn("redo", "log", 60*time.Second), scan}, ""},
		{"all on one volume", []v1alpha1.NamedWorkload{data("data", 20, time.Minute), redoOn("redo", "", time.Minute)}, ""},
		{"two that read", []v1alpha1.NamedWorkload{data("a", 0, time.Minute), data("b", 0, time.Minute), data("c", 5, time.Minute)}, ""},
		{"two logs", []v1alpha1.NamedWorkload{redoOn("a", "log", time.Minute), redoOn("b", "archive", time.Minute)}, ""},
		{"other times", []v1alpha1.NamedWorkload{data("data", 0, time.Minute), redoOn("redo", "log", time.Hour)},
			"(data 1m0s, redo 1h0m0s): write the same duration"},
		{"scans", []v1alpha1.NamedWorkload{scan, {Name: "other", Scan: &v1alpha1.RepeatedScan{}}}, "add an oltp or redo workload"},
		{"two write", []v1alpha1.NamedWorkload{data("a", 1, time.Minute), data("b", 1, time.Minute)},
			"a and b both write to the data of volume data"},
		{"an archiver's name", []v1alpha1.NamedWorkload{archived, taken}, "two workloads have the name log-archive"},
		{"one log", []v1alpha1.NamedWorkload{redoOn("a", "", time.Minute), redoOn("b", "data", time.Minute)}, "the logs of volume data"},
	} {
		if got := WhyApart(PartsOf(several(test.given...))); got == "" != (test.says == "") || !strings.Contains(got, test.says) {
			t.Errorf("%s: %q, want %q", test.name, got, test.says)
		}
	}
}

// TestWALOf: a log on another volume has a place and a name, but it is not a workload: the phase measures the same as without it.
func TestWALOf(t *testing.T) {
	given := &v1alpha1.PostgresWorkload{WALVolume: "log", Duration: lasting(time.Minute)}
	phase := &v1alpha1.Phase{Name: "tx", Volume: "tables", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Postgres: given}}}
	wal, apart := WALOf(phase)
	if !apart || wal.Name != "wal" || wal.Phase.Volume != "log" || wal.Field != "workload.postgres.walVolume" || !wal.IsWAL() ||
		len(Named(&wal.Phase)) > 0 {
		t.Errorf("%+v", wal)
	}
	if measured := Measured(phase); len(measured) != 2 || measured[0].Phase.Volume != "tables" || measured[0].IsWAL() || !measured[1].IsWAL() {
		t.Errorf("%+v", measured)
	}
	if traits, measures := PhaseTraits(phase); !measures || traits.Name != "postgres" || !traits.Postgres || len(PartsOf(phase)) > 0 {
		t.Errorf("%+v", traits)
	}
	if phase.Volume != "tables" || given.WALVolume != "log" {
		t.Error("the spec was changed")
	}
	for metric, can := range map[string][2]bool{ // on a pool, and without one
		"transactionsPerSecond": {true, true}, "diskWrittenBytesPerSecond": {true, true}, "wal.diskWrittenBytesPerSecond": {true, true},
		"wal.diskWriteRequestSize.mode": {true, false}, "wal.poolAllocatedBytes": {true, false}, "wal.deviceWrittenBytes": {false, true},
		"wal.diskWritesPerWriteMilli": {false, false}, "diskWrittenBytesPerTransaction": {true, true}, "wal.diskWrittenBytesPerTransaction": {false, false}, "wal.gangBlocks": {false, false}, "gangBlocks": {true, false}, "wal.diskWrittenBytesPerCopiedBytePartsPerMillion": {false, false},
		"wal.transactionsPerSecond": {false, false}, "wal.cpuNanoseconds": {false, false}, "tables.deviceWrittenBytes": {false, false},
	} {
		for i, onPool := range []bool{true, false} {
			if CanMeasure(phase, onPool, metric) != can[i] {
				t.Errorf("on a pool %v, it can have %s: %v", onPool, metric, !can[i])
			}
		}
	}
	if names := Metrics(phase, true); !slices.Contains(names, "wal.diskWrittenBytesPerSecond") || !strings.HasPrefix(names[0], "transaction") {
		t.Errorf("metrics %q", names)
	}
	given.WALVolume = ""
	if _, apart := WALOf(phase); apart || len(Measured(phase)) != 1 || CanMeasure(phase, true, "wal.diskWrittenBytesPerSecond") {
		t.Error("a log beside the data is on another volume")
	}
	log := redoOn(WAL, "log", time.Minute)
	if parts := Named(several(log, data("data", 0, time.Minute))); len(parts) != 2 || parts[0].IsWAL() {
		t.Errorf("a workload of that name: %+v", parts)
	}
}

func TestWALBytes(t *testing.T) {
	const gib = 1 << 30
	for text, want := range map[v1alpha1.PropertyValue]int64{"": gib * 5 / 4, "8GB": 10 * gib, "512": gib * 5 / 8, "1024MB": gib * 5 / 4,
		"1048576kB": gib * 5 / 4, "1TB": 1280 * gib, "1.5GB": gib * 15 / 8, "much": 0, "999999999TB": 0} {
		given := &v1alpha1.PostgresWorkload{Settings: map[string]v1alpha1.PropertyValue{"max_wal_size": text}}
		if text == "" {
			given.Settings = nil
		}
		if got := WALBytes(given); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
