package foresee

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestFills: fills that shrink, data that does not fit and parts that are too small are refused before anything is written.
func TestFills(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	const gib = 1 << 30
	fill := func(name string, to v1alpha1.Share) v1alpha1.Phase {
		return v1alpha1.Phase{Name: v1alpha1.PhaseName(name), Fill: &v1alpha1.FillPhase{To: to}}
	}
	amount := func(name string, bytes int64) v1alpha1.Phase {
		return v1alpha1.Phase{Name: v1alpha1.PhaseName(name), Fill: &v1alpha1.FillPhase{
			Size: &v1alpha1.Amount{Quantity: *resource.NewQuantity(bytes, resource.BinarySI)}}}
	}
	sized := func(s *spec, bytes int64) {
		s.Target.ZFS.Dataset.Size = &v1alpha1.Size{Quantity: *resource.NewQuantity(bytes, resource.BinarySI)}
	}
	redo := func(writers int32) v1alpha1.Phase {
		return v1alpha1.Phase{Name: "redo", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{Writers: writers}}}}
	}
	withLog := func(s *spec, phases ...v1alpha1.Phase) {
		s.Phases, s.Target.ZFS.Volumes = phases, []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: "data", Dataset: &v1alpha1.DatasetTemplate{
			Size: &v1alpha1.Size{Quantity: *resource.NewQuantity(gib, resource.BinarySI)}}}}
	}
	database := func(most v1alpha1.PropertyValue) v1alpha1.Phase {
		given := &v1alpha1.PostgresWorkload{WALVolume: "log", Settings: map[string]v1alpha1.PropertyValue{"max_wal_size": most}}
		if most == "" {
			given.Settings = nil
		}
		return v1alpha1.Phase{Name: "tx", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Postgres: given}}}
	}
	copied := v1alpha1.Phase{Name: "copy", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
		Copy: &v1alpha1.CopyAction{Dataset: "data", To: "other"}}}}
	list := func(phases ...v1alpha1.Phase) []v1alpha1.Phase { return phases }
	measure := func(given v1alpha1.Workload) v1alpha1.Phase {
		return v1alpha1.Phase{Name: "measure", Measure: &v1alpha1.MeasurePhase{Workload: given}}
	}
	jobs := func(text string) v1alpha1.Phase {
		return measure(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: text}})
	}
	holding := func(size string, keep bool) v1alpha1.Phase {
		return measure(v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{DatabaseSize: &v1alpha1.Size{Quantity: resource.MustParse(size)},
			Keep: keep}})
	}
	ofClass := func(s *spec) {
		s.Target = v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{Size: v1alpha1.Size{Quantity: resource.MustParse("1Gi")}}}
	}
	lasting := &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Minute}}
	foresee(t, map[string]foreseen{
		"higher":   {func(s *spec) { s.Phases = append(s.Phases, fill("more", "76%")) }, ""},
		"lower":    {func(s *spec) { s.Phases = append(s.Phases, fill("less", "40%")) }, "spec.phases[2]: it fills to 40%, and phase fill has filled to 50% before"},
		"no share": {func(s *spec) { s.Phases = append(s.Phases, fill("more", "500%")) }, ""}, // the API refuses it
		"the same": {func(s *spec) { s.Phases = append(s.Phases, fill("again", "50%")) }, "spec.phases[2]: nothing is left to write"},
		"jobs that need more than the fill": {func(s *spec) {
			sized(s, 4*gib)
			s.Phases = list(amount("fill", gib), jobs("[a]\nrw=read\nfilename=data\n[b]\nrw=read\nfilename=data\nsize=2g"))
		}, "spec.phases[1]: job [b] needs 2Gi of data, and at most 1Gi was written before: remove its size"},
		"jobs that need no more": {func(s *spec) {
			sized(s, 4*gib)
			s.Phases = list(amount("fill", 2*gib), jobs("[a]\nrw=read\nfilename=data\nsize=1g\noffset=1g"))
		}, ""},
		"jobs after a fill of unknown size": {func(s *spec) {
			s.Phases = list(fill("fill", "50%"), jobs("[a]\nrw=read\nfilename=data\nsize=100g"))
		}, ""},
		"jobs with many files": {func(s *spec) {
			sized(s, 4*gib)
			s.Phases = list(jobs("[a]\nrw=randwrite\noverwrite=1\nfilesize=100m\nnrfiles=50"))
		}, "spec.phases[0]: the files of its jobs need 5000Mi"},
		"after a copy": {func(s *spec) { s.Phases = append(s.Phases, copied, fill("again", "50%")) }, ""},
		"after a copy beside several workloads": {func(s *spec) {
			s.Phases[1].Measure = &v1alpha1.MeasurePhase{Operate: &copied.Operate.PoolAction, Workloads: []v1alpha1.NamedWorkload{
				{Name: "pages", OLTP: &v1alpha1.OLTPWorkload{Duration: lasting}}, {Name: "log", Redo: &v1alpha1.RedoWorkload{Duration: lasting}}}}
			s.Phases = append(s.Phases, fill("again", "50%"))
		}, ""},
		"after a copy of a made volume": {func(s *spec) {
			sized(s, 4*gib)
			of := copied
			of.Volume = "made"
			s.Phases[1] = v1alpha1.Phase{Name: "snapshot", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
				Snapshot: &v1alpha1.SnapshotAction{Dataset: "data", Name: "s"}}}}
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "clone", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
				Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: "s", As: "made"}}}}, of, fill("again", "50%"))
		}, ""},
		"after freeing": {func(s *spec) {
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "free", Free: &v1alpha1.FreePhase{Share: "30%"}}, fill("again", "50%"))
		}, ""},
		"by the matrix": {func(s *spec) {
			s.Phases = append(s.Phases, fill("more", "80%"))
			s.Matrix = v1alpha1.Matrix{"phases.fill.to": {"60%", "90%"}}
		}, "spec.phases[2]: it fills to 80%, and phase fill has filled to 90% before"},
		"fits": {func(s *spec) { sized(s, 4*gib); s.Phases = []v1alpha1.Phase{amount("fill", 3*gib), s.Phases[1]} }, ""},
		"does not fit": {func(s *spec) {
			sized(s, 4*gib)
			s.Phases = []v1alpha1.Phase{amount("fill", 3*gib), amount("more", 2*gib)}
		},
			"spec.phases[1]: the volume would hold 5Gi at least, and it has 4Gi at most: "},
		"compressible": {func(s *spec) {
			sized(s, 4*gib)
			s.Phases = []v1alpha1.Phase{amount("fill", 3*gib), amount("more", 2*gib)}
			s.Phases[0].Fill.Compressibility = "75%"
		}, ""},
		"too small for the scan": {func(s *spec) { sized(s, 4*gib); s.Phases = []v1alpha1.Phase{amount("fill", 1<<20-1), s.Phases[1]} },
			"spec.phases[1]: 1048575 bytes of data is too little for 8 regions of the scan"},
		"no room for logs": {func(s *spec) { sized(s, 1*gib); s.Phases = []v1alpha1.Phase{amount("fill", gib-32<<20), redo(64)} },
			"spec.phases[1]: the logs of redo need 256Mi, and at most 16Mi of the volume is left"},
		"room for logs":  {func(s *spec) { sized(s, 1*gib); s.Phases = []v1alpha1.Phase{amount("fill", gib/4), redo(64)} }, ""},
		"size not known": {func(s *spec) { s.Phases = []v1alpha1.Phase{amount("fill", 3*gib), redo(64)} }, ""},
		"no room for the WAL": {func(s *spec) { withLog(s, database("")) },
			"spec.phases[0]: the write-ahead log (max_wal_size and a quarter) needs up to 1280Mi, and at most 1Gi of the volume is left"},
		"no room for a log beside the database": {func(s *spec) {
			s.Phases = list(database("100GB"))
			s.Phases[0].Measure.Workload.Postgres.WALVolume = ""
			sized(s, 5*gib)
		}, "spec.phases[0]: the write-ahead log (max_wal_size and a quarter) needs up to 125Gi, and at most 5Gi of the volume is left"},
		"a log of the usual size": {func(s *spec) {
			s.Phases = list(database(""))
			s.Phases[0].Measure.Workload.Postgres.WALVolume = ""
			sized(s, gib)
		}, ""},
		"room for the WAL": {func(s *spec) { withLog(s, database("512MB")) }, ""},
		"the WAL on a filled volume": {func(s *spec) {
			withLog(s, amount("fill", gib/2), database("512MB"))
			s.Phases[0].Volume = "log"
		}, "spec.phases[1]: and at most 512Mi of the volume is left for that: write a smaller max_wal_size"},
		"files too large": {func(s *spec) {
			s.Phases = list(amount("fill", gib), jobs("[a]\ndirect=1\nrw=read\nsize=2g"))
			sized(s, 2*gib)
		},
			"spec.phases[1]: the files of its jobs need 2Gi, and at most 1Gi of the volume is left for that: write a smaller size"},
		"files that fit":     {func(s *spec) { s.Phases = list(jobs("[a]\ndirect=1\nrw=read\nsize=2g")); sized(s, 2*gib) }, ""},
		"files not laid out": {func(s *spec) { s.Phases = list(jobs("[a]\ndirect=1\nrw=write\nsize=9g")); sized(s, 2*gib) }, ""},
		"files on a device": {func(s *spec) {
			s.Phases, s.Target.ZFS.Dataset.Type = list(jobs("[a]\ndirect=1\nrw=read\nsize=9g")), "Volume"
			sized(s, 2*gib)
		}, ""},
		"files of a class": {func(s *spec) { s.Phases = list(jobs("[a]\ndirect=1\nrw=read\nsize=5g")); ofClass(s) },
			"spec.phases[0]: need 5Gi, and at most 1344Mi of the volume is left for that (a volume of 1Gi may be a quarter larger)"},
		"a database of a class": {func(s *spec) { s.Phases = list(holding("20Gi", false)); ofClass(s) },
			"spec.phases[0]: the database needs 20Gi, and at most 1344Mi of the volume"},
		"a database that fits":   {func(s *spec) { s.Phases = list(holding("1Gi", false)); ofClass(s) }, ""},
		"a database, compressed": {func(s *spec) { s.Phases = list(holding("3Gi", false)); sized(s, 2*gib) }, ""},
		"a database, as it is": {func(s *spec) {
			s.Phases = list(holding("3Gi", false))
			s.Matrix = v1alpha1.Matrix{"dataset.compression": {"lz4", "off"}}
			sized(s, 2*gib)
		}, "spec.phases[0]: of variant \"dataset.compression=off\": the database needs 3Gi, and at most 2Gi\n" +
			"warning: spec.matrix[dataset.compression]: the rows of pgbench are mostly blanks"},
		"a database that is kept": {func(s *spec) { s.Phases = list(holding("1Gi", false), holding("1Gi", true)); ofClass(s) }, ""},
		"pool of a part": {func(s *spec) { sized(s, 4*gib); s.Phases[0].Fill.Of = "Pool" },
			"spec.phases[0]: fill.of: Pool needs a volume that has its pool for itself"},
	})
}
