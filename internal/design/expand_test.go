package design

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

func fourVariants() *v1alpha1.StorageBenchmarkSpec {
	spec := &runstest.Benchmark().Spec
	spec.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	spec.Repetitions = 3
	return spec
}

func mustExpand(t *testing.T, spec *v1alpha1.StorageBenchmarkSpec, seed int64) []Slot {
	t.Helper()
	slots, err := Expand(spec, seed)
	if err != nil {
		t.Fatal(err)
	}
	for i, slot := range slots {
		if int(slot.Index) != i {
			t.Errorf("slot %d has index %d", i, slot.Index)
		}
	}
	return slots
}

func order(slots []Slot) string {
	var words []string
	for _, slot := range slots {
		words = append(words, fmt.Sprintf("%s%d", slot.Variant, slot.Repetition))
	}
	return strings.Join(words, " ")
}

// TestOrderIsForEver has the order and the seeds of one experiment, which were computed independently of this program. If it fails, old
// experiments can no longer be repeated: do not change the expected values.
func TestOrderIsForEver(t *testing.T) {
	slots := mustExpand(t, fourVariants(), 42)
	if got, want := order(slots), "d1 b1 a1 c1 c2 a2 b2 d2 a3 d3 c3 b3"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	seeds := map[int32]int64{1: 6716263735388272580, 2: 9052961517448538665, 3: 8932038822890317163}
	for _, slot := range slots {
		if slot.Seed != seeds[slot.Repetition] {
			t.Errorf("repetition %d has seed %d, want %d", slot.Repetition, slot.Seed, seeds[slot.Repetition])
		}
	}
	if again := mustExpand(t, fourVariants(), 42); !reflect.DeepEqual(slots, again) {
		t.Error("a second expansion differs")
	}
	benchmark := runstest.Benchmark()
	if seed := Seed(benchmark); seed != 804959736 {
		t.Errorf("the seed made from the UID is %d", seed)
	}
}

func TestOrders(t *testing.T) {
	orders := map[string]bool{}
	for seed := range int64(50) {
		slots := mustExpand(t, fourVariants(), seed)
		orders[order(slots)] = true
		seeds := map[int64]int32{}
		for i, slot := range slots {
			if int(slot.Repetition) != i/4+1 {
				t.Fatalf("seed %d: repetition %d begins before the one before it has ended: %s", seed, slot.Repetition, order(slots))
			}
			if earlier, found := seeds[slot.Seed]; found && earlier != slot.Repetition {
				t.Errorf("repetitions %d and %d have the same seed", earlier, slot.Repetition)
			}
			if slot.Seed < 0 {
				t.Errorf("negative seed %d", slot.Seed)
			}
			seeds[slot.Seed] = slot.Repetition
		}
		if len(seeds) != 3 {
			t.Errorf("%d seeds in 3 repetitions", len(seeds))
		}
		for r := range 3 {
			if names := VariantNames(slots[4*r : 4*r+4]); len(names) != 4 {
				t.Errorf("seed %d repetition %d has only %v", seed, r+1, names)
			}
		}
	}
	if len(orders) < 25 { // there are 24 possible first orders, and 2 ways to continue after the reverse
		t.Errorf("50 seeds give only %d orders", len(orders))
	}
	spec := fourVariants()
	spec.Order = v1alpha1.OrderSequential
	if got := order(mustExpand(t, spec, 1)); got != "a1 a2 a3 b1 b2 b3 c1 c2 c3 d1 d2 d3" {
		t.Errorf("sequential: %s", got)
	}
	spec.Variants, spec.Repetitions = nil, 1
	if got := order(mustExpand(t, spec, 1)); got != "default1" {
		t.Errorf("without variants: %s", got)
	}
}

func TestExpansionLimit(t *testing.T) {
	spec := fourVariants()
	values := func(n int) (v v1alpha1.MatrixValues) {
		for i := range n {
			v = append(v, v1alpha1.MatrixValue(fmt.Sprintf("%dMi", 100+i)))
		}
		return v
	}
	spec.Matrix, spec.Repetitions = v1alpha1.Matrix{"storageClass.size": values(16)}, 8
	if slots := mustExpand(t, spec, 1); len(slots) != MaxRuns {
		t.Errorf("%d runs", len(slots))
	}
	spec.Repetitions = 9
	_, err := Expand(spec, 1)
	if err == nil || Combined(err).Reason != v1alpha1.ReasonExpansionTooLarge || !strings.Contains(err.Error(), "576 runs") {
		t.Errorf("got %v", err)
	}
	for i := range 6 { // 16^7 combinations must be counted without creating them
		spec.Matrix[fmt.Sprintf("phases.fill.f%d", i)] = values(16)
	}
	if _, err = Expand(spec, 1); err == nil {
		t.Error("16^7 runs are accepted")
	}
}

func TestMatrix(t *testing.T) {
	spec := fourVariants()
	spec.Variants, spec.Repetitions = []v1alpha1.Variant{{Name: "x"}}, 1
	spec.Matrix = v1alpha1.Matrix{"storageClass.size": {"1Gi", "2Gi"}, "phases.fill.to": {"50%", "60%", "70%"}}
	slots := mustExpand(t, spec, 7)
	names := VariantNames(slots)
	if len(slots) != 6 || len(names) != 6 || names[0] != "x,phases.fill.to=50%,storageClass.size=1Gi" {
		t.Fatalf("%d runs: %v", len(slots), names)
	}
	for _, slot := range slots {
		size, to := slot.Target.StorageClass.Size.String(), string(slot.Phases[0].Fill.To)
		if !strings.HasSuffix(slot.Variant, "="+size) || !strings.Contains(slot.Variant, "="+to+",") {
			t.Errorf("variant %s has size %s and fills to %s", slot.Variant, size, to)
		}
	}
	if size := spec.Target.StorageClass.Size.String(); size != "1Gi" || spec.Phases[0].Fill.To != "80%" {
		t.Error("expanding has changed the spec")
	}
}

func TestVariants(t *testing.T) {
	half, block := v1alpha1.Size{Quantity: resource.MustParse("512Mi")}, runstest.Target()
	block.StorageClass.VolumeMode = "Block"
	spec := fourVariants()
	spec.Repetitions = 1
	spec.Variants = []v1alpha1.Variant{
		{Name: "a"}, {Name: "b", StorageClass: &v1alpha1.StorageClassOverride{Name: "slow", Size: &half}},
		{Name: "c", Target: &block},
		{Name: "d", Set: map[string]v1alpha1.MatrixValue{"storageClass.volumeMode": "Block", "phases.scan.to": "10%"}},
	}
	got := map[string]string{}
	for _, slot := range mustExpand(t, spec, 1) {
		class := slot.Target.StorageClass
		got[slot.Variant] = fmt.Sprintf("%s %s %s %s", class.Name, class.Size.String(), class.VolumeMode, slot.Phases[1].Fill.To)
	}
	want := map[string]string{"a": "fast 1Gi Filesystem 80%", "b": "slow 512Mi Filesystem 80%", "c": "fast 1Gi Block 80%",
		"d": "fast 1Gi Block 10%"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

// pathPhases has a phase of every kind.
func pathPhases() []v1alpha1.Phase {
	measure := func(name string, workload v1alpha1.Workload) v1alpha1.Phase {
		return v1alpha1.Phase{Name: v1alpha1.PhaseName(name), Measure: &v1alpha1.MeasurePhase{Workload: workload}}
	}
	return []v1alpha1.Phase{
		runstest.Phase("fill"), {Name: "age", Fragment: &v1alpha1.FragmentPhase{}}, {Name: "scrub", Operate: &v1alpha1.OperatePhase{}},
		measure("oltp", v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}), measure("scan", v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}),
		measure("redo", v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{}}),
		measure("pg", v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{
			Settings: map[string]v1alpha1.PropertyValue{"wal_level": "minimal"}}}),
		measure("fio", v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{}}),
		{Name: "busy", Measure: &v1alpha1.MeasurePhase{Workloads: []v1alpha1.NamedWorkload{{Name: "data", OLTP: &v1alpha1.OLTPWorkload{}},
			{Name: "log", Redo: &v1alpha1.RedoWorkload{}}, {Name: "scan", Scan: &v1alpha1.RepeatedScan{}}}}},
	}
}

func TestPaths(t *testing.T) {
	slotOf := func(zfs bool) *Slot {
		slot := &Slot{Variant: "v", Target: runstest.Target(), Phases: pathPhases()}
		if zfs {
			slot.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{
				{Name: "wal", Pool: &v1alpha1.PoolTemplate{}}}}}
		}
		return slot
	}
	for _, test := range []struct {
		path, value, wrong string
		zfs                bool
		read               func(*Slot) any
	}{
		{path: "storageClass.name", value: "slow", read: func(s *Slot) any { return s.Target.StorageClass.Name }},
		{path: "storageClass.size", value: "3Gi", read: func(s *Slot) any { return s.Target.StorageClass.Size.String() }},
		{path: "storageClass.volumeMode", value: "Block", read: func(s *Slot) any { return s.Target.StorageClass.VolumeMode }},
		{path: "phases.fill.to", value: "50%", read: func(s *Slot) any { return s.Phases[0].Fill.To }},
		{path: "phases.fill.blockSize", value: "8Ki", read: func(s *Slot) any { return s.Phases[0].Fill.BlockSize.String() }},
		{path: "phases.age.rounds", value: "3", read: func(s *Slot) any { return *s.Phases[1].Fragment.Rounds }},
		{path: "phases.age.until", value: "Rounds", read: func(s *Slot) any { return s.Phases[1].Fragment.Until }},
		{path: "phases.oltp.workers", value: "16", read: func(s *Slot) any { return s.Phases[3].Measure.Workload.OLTP.Workers }},
		{path: "phases.oltp.duration", value: "90s", read: func(s *Slot) any {
			return s.Phases[3].Measure.Workload.OLTP.Duration.Duration.Duration
		}},
		{path: "phases.oltp.cache", value: "Cold", read: func(s *Slot) any { return s.Phases[3].Measure.Cache }},
		{path: "phases.scan.randomRegions", value: "4", read: func(s *Slot) any { return *s.Phases[4].Measure.Workload.Scan.RandomRegions }},
		{path: "phases.redo.sync", value: "fdatasync", read: func(s *Slot) any { return s.Phases[5].Measure.Workload.Redo.Sync }},
		{path: "phases.pg.dataChecksums", value: "false", read: func(s *Slot) any {
			return *s.Phases[6].Measure.Workload.Postgres.DataChecksums
		}},
		{path: "phases.fio.jobFile", value: "x", read: func(s *Slot) any { return s.Phases[7].Measure.Workload.FIO.JobFile }},
		{path: "phases.busy.log.writers", value: "3", read: func(s *Slot) any { return s.Phases[8].Measure.Workloads[1].Redo.Writers }},
		{path: "phases.scan.streams", value: "4", read: func(s *Slot) any { return *s.Phases[4].Measure.Workload.Scan.Streams }},
		{path: "phases.busy.scan.blockSize", value: "8Ki", read: func(s *Slot) any {
			return s.Phases[8].Measure.Workloads[2].Scan.BlockSize.String()
		}},
		{path: "phases.busy.data.workers", value: "3", read: func(s *Slot) any { return s.Phases[8].Measure.Workloads[0].OLTP.Workers }},
		{path: "phases.busy.writers", value: "3", wrong: "with one of these workloads: data, log, scan"},
		{path: "phases.busy.log.workers", value: "3", wrong: `no field "workers": write one of `},
		{path: "pool.ashift", value: "12", zfs: true, read: func(s *Slot) any { return s.Target.ZFS.Pool.Ashift }},
		{path: "pool.properties.autotrim", value: "on", zfs: true, read: func(s *Slot) any { return s.Target.ZFS.Pool.Properties["autotrim"] }},
		{path: "dataset.recordsize", value: "8k", zfs: true, read: func(s *Slot) any { return s.Target.ZFS.Dataset.Properties["recordsize"] }},
		{path: "moduleParameters.zfs_arc_max", value: "1", zfs: true, read: func(s *Slot) any {
			return s.Target.ZFS.ModuleParameters["zfs_arc_max"]
		}},

		{path: "volumes.data.pool.ashift", value: "12", zfs: true, read: func(s *Slot) any { return s.Target.ZFS.Pool.Ashift }},
		{path: "volumes.data.dataset.atime", value: "off", zfs: true, read: func(s *Slot) any { return s.Target.ZFS.Dataset.Properties["atime"] }},
		{path: "volumes.wal.pool.ashift", value: "9", zfs: true, read: func(s *Slot) any { return s.Target.ZFS.Volumes[0].Pool.Ashift }},
		{path: "volumes.wal.pool.properties.autotrim", value: "on", zfs: true, read: func(s *Slot) any {
			return s.Target.ZFS.Volumes[0].Pool.Properties["autotrim"]
		}},
		{path: "volumes.wal.dataset.logbias", value: "throughput", zfs: true, read: func(s *Slot) any {
			return s.Target.ZFS.Volumes[0].Dataset.Properties["logbias"]
		}},
		{path: "phases.age.steadyState.windowRounds", value: "7", read: func(s *Slot) any {
			return s.Phases[1].Fragment.SteadyState.WindowRounds
		}},
		{path: "phases.oltp.steadyState.maxRange", value: "30%", read: func(s *Slot) any { return s.Phases[3].Measure.SteadyState.MaxRange }},
		{path: "phases.pg.settings.shared_buffers", value: "1GB", read: func(s *Slot) any {
			settings := s.Phases[6].Measure.Workload.Postgres.Settings
			if settings["wal_level"] != "minimal" {
				return "the other settings are gone"
			}
			return settings["shared_buffers"]
		}},
		{path: "phases.pg.settings.random_page_cost", value: "2", read: func(s *Slot) any {
			return s.Phases[6].Measure.Workload.Postgres.Settings["random_page_cost"]
		}},

		{path: "volumes.log.pool.ashift", value: "9", zfs: true, wrong: `no volume "log": write one of data, wal`},
		{path: "volumes.wal.pool.vdevs", value: "9", zfs: true, wrong: "pool has ashift and properties.NAME"},
		{path: "volumes.wal.recordsize", value: "8k", zfs: true, wrong: "write volumes.VOLUME.pool.ashift"},
		{path: "volumes.wal.pool.ashift", value: "9", wrong: "has a storageClass target"},
		{path: "phases.pg.settings.a.b", value: "1", wrong: `no field "settings.a.b"`},
		{path: "phases.pg.duration.Duration", value: "1", wrong: `no field "duration.Duration"`},
		{path: "phases.oltp.settings.shared_buffers", value: "1GB", wrong: `no field "settings.shared_buffers"`},
		{path: "storageClass.size", value: "big", wrong: "write a size such as 20Gi"},
		{path: "storageClass.accessMode", value: "x", wrong: "storageClass has name, size and volumeMode"},
		{path: "storageClass.name", value: "x", zfs: true, wrong: "has a zfs target"},
		{path: "pool.ashift", value: "12", wrong: "has a storageClass target"},
		{path: "dataset.recordsize", value: "8k", wrong: "has a storageClass target"},
		{path: "moduleParameters.zfs_x", value: "1", wrong: "has a storageClass target"},
		{path: "pool.ashift", value: "8", zfs: true, wrong: "between 9 and 16"},
		{path: "pool.ashift", value: "x", zfs: true, wrong: "between 9 and 16"},
		{path: "pool.vdevs", value: "x", zfs: true, wrong: "pool has ashift and properties.NAME"},
		{path: "spec.repetitions", value: "1", wrong: "start the path with storageClass, pool"},
		{path: "", value: "1", wrong: "start the path with storageClass, pool"},
		{path: "phases", value: "1", wrong: "write phases.PHASE.FIELD"},
		{path: "phases.fill", value: "1", wrong: "write phases.PHASE.FIELD"},
		{path: "phases.nope.to", value: "1%", wrong: `no phase "nope"`},
		{path: "phases.fill.depth", value: "1", wrong: `no field "depth": write one of blockSize, `},
		{path: "phases.oltp.worker", value: "1", wrong: `no field "worker": did you mean workers?`},
		{path: "phases.oltp.cach", value: "Cold", wrong: `no field "cach": did you mean cache?`},
		{path: "phases.age.steadyState.maxRnge", value: "1%", wrong: `no field "steadyState.maxRnge": did you mean maxRange?`},
		{path: "phases.scrub.pool", value: "x", wrong: "fields of an operate phase cannot vary"},
		{path: "phases.oltp.workers", value: "many", wrong: `to "many": write a whole number`},
		{path: "phases.oltp.workers", value: "1.5", wrong: `to "1.5": write a whole number`},
		{path: "phases.oltp.workers", value: "99999999999", wrong: "the number is too large"},
		{path: "phases.oltp.workers", value: "null", wrong: "write a whole number"},
		{path: "phases.oltp.duration", value: "30", wrong: `to "30": write a duration as whole numbers of at most six digits with units, such as 90s`},
		{path: "phases.oltp.duration", value: "1d", wrong: "write a duration as whole numbers"},
		{path: "phases.fill.blockSize", value: "null", wrong: "write a block size that is a power of two"},
		{path: "phases.fill.blockSize", value: "8 KB", wrong: "such as 8Ki or 128Ki"},
		{path: "phases.pg.dataChecksums", value: "maybe", wrong: "write true or false"},
		{path: "phases.fio.jobFileFrom", value: "x", wrong: "write a path to one of them, jobFileFrom.NAME"},
		{path: "phases.pg.settings", value: "x", wrong: "write a path to one of them, settings.NAME"},
	} {
		t.Run(test.path+"="+test.value, func(t *testing.T) {
			slot := slotOf(test.zfs)
			err := setPath(slot, test.path, v1alpha1.MatrixValue(test.value))
			if test.wrong == "" {
				want := test.value
				if want == "90s" {
					want = "1m30s"
				}
				if err != nil || fmt.Sprint(test.read(slot)) != want {
					t.Errorf("got %v, error %v", test.read(slot), err)
				}
				return
			}
			wrong, ok := errors.AsType[*SpecError](err)
			if !ok || wrong.Reason != v1alpha1.ReasonMatrixInvalid || !strings.Contains(wrong.Message, test.wrong) ||
				!strings.Contains(wrong.Message, fmt.Sprintf("%q", test.path)) {
				t.Errorf("got %v, want ...%s...", err, test.wrong)
			}
		})
	}
}

// TestWrongPathsOfAVariant: all wrong paths of a variant are listed, each with its field.
func TestWrongPathsOfAVariant(t *testing.T) {
	spec := &v1alpha1.StorageBenchmarkSpec{Target: runstest.Target(), Phases: []v1alpha1.Phase{runstest.Phase("fill")}, Repetitions: 1}
	spec.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b", Set: map[string]v1alpha1.MatrixValue{
		"phases.fill.too": "50%", "storageClass.size": "big", "storageClass.name": "slow"}}}
	_, err := Expand(spec, 1)
	wrong := Mistakes(err)
	if len(wrong) != 2 || wrong[0].Field != "spec.variants[1].set[phases.fill.too]" ||
		wrong[1].Field != "spec.variants[1].set[storageClass.size]" ||
		!strings.HasPrefix(wrong[1].Message, `variant "b": the path "storageClass.size" cannot be set to "big"`) {
		t.Errorf("%+v", err)
	}
}

func TestNames(t *testing.T) {
	benchmarks := []string{"a", "0", "ageing", strings.Repeat("x", 253), strings.Repeat("a.", 126) + "b", strings.Repeat("a-.", 63)[:189] +
		"a",
		strings.Repeat("x", 23) + ".y", strings.Repeat("x", 24) + ".y", strings.Repeat("x", 49) + "." + strings.Repeat("y", 20), "a.b",
		strings.Repeat("a", 22) + "---b"}
	seen := map[string]string{}
	for _, benchmark := range benchmarks {
		hash := naming.Digest(benchmark)
		for _, index := range []int32{0, 7, 99, MaxRuns - 1} {
			for _, attempt := range []int32{1, 2, 10} {
				run := naming.RunName(benchmark, hash, index, attempt)
				where := fmt.Sprint(benchmark, index, attempt)
				if other, found := seen[run]; found {
					t.Errorf("%s and %s have the same run %s", where, other, run)
				}
				seen[run] = where
				for _, name := range []string{run, run, naming.PhaseObjectName(run, "twenty-characters-xx"), run + "-rehearsal"} {
					if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
						t.Errorf("%s: %v", name, problems)
					}
				}
			}
		}
		if problems := validation.IsDNS1123Label(naming.ResultsName(benchmark, hash)); len(problems) > 0 {
			t.Errorf("%s: %v", naming.ResultsName(benchmark, hash), problems)
		}
		if problems := validation.IsValidLabelValue(naming.BenchmarkLabel(benchmark)); len(problems) > 0 {
			t.Errorf("%s: %v", naming.BenchmarkLabel(benchmark), problems)
		}
	}
	leases := map[string]bool{}
	for _, node := range []string{"n1", "n1.lab", strings.Repeat("x", 235), strings.Repeat("x", 236), strings.Repeat("x", 253),
		strings.Repeat("a.", 126) + "b",
		strings.Repeat("x", 199) + "." + strings.Repeat("y", 53), strings.Repeat("x", 199) + "." + strings.Repeat("z", 53)} {
		name := naming.LeaseName(node)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || leases[name] {
			t.Errorf("%s: %v (twice: %v)", name, problems, leases[name])
		}
		leases[name] = true
	}
}

func TestExperimentHash(t *testing.T) {
	base := ID(runstest.Benchmark())
	seed, keep := int64(5), int32(3)
	for name, change := range map[string]func(*v1alpha1.StorageBenchmark){
		"target": func(b *v1alpha1.StorageBenchmark) { b.Spec.Target.StorageClass.Name = "slow" },
		"size": func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Target.StorageClass.Size.Quantity = resource.MustParse("2Gi")
		},
		"variants":    func(b *v1alpha1.StorageBenchmark) { b.Spec.Variants = b.Spec.Variants[:1] },
		"matrix":      func(b *v1alpha1.StorageBenchmark) { b.Spec.Matrix = v1alpha1.Matrix{"phases.fill.to": {"1%"}} },
		"matrix mode": func(b *v1alpha1.StorageBenchmark) { b.Spec.MatrixMode = v1alpha1.MatrixZip },
		"exclude": func(b *v1alpha1.StorageBenchmark) {
			b.Spec.MatrixExclude = []v1alpha1.MatrixEntry{{"phases.fill.to": "1%"}}
		},
		"include": func(b *v1alpha1.StorageBenchmark) {
			b.Spec.MatrixInclude = []v1alpha1.MatrixEntry{{"phases.fill.to": "1%"}}
		},
		"phases":       func(b *v1alpha1.StorageBenchmark) { b.Spec.Phases[0].Fill.To = "70%" },
		"phase limits": func(b *v1alpha1.StorageBenchmark) { b.Spec.Phases[0].Deadline = runstest.Lasting(1) },
		"repetitions":  func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 3 },
		"order":        func(b *v1alpha1.StorageBenchmark) { b.Spec.Order = v1alpha1.OrderSequential },
		"seed":         func(b *v1alpha1.StorageBenchmark) { b.Spec.Seed = &seed },
		"pods":         func(b *v1alpha1.StorageBenchmark) { b.Spec.PodTemplate.PriorityClassName = "high" },
		"rerun":        func(b *v1alpha1.StorageBenchmark) { b.Annotations = map[string]string{v1alpha1.AnnotationRerun: "1"} },
		"scheduled time": func(b *v1alpha1.StorageBenchmark) {
			b.Status.Schedule = &v1alpha1.ScheduleStatus{LastTime: runstest.Stamp(0)}
		},
		"object": func(b *v1alpha1.StorageBenchmark) { b.UID = types.UID("another") },
	} {
		benchmark := runstest.Benchmark()
		if change(benchmark); ID(benchmark) == base {
			t.Errorf("%s is not part of the hash", name)
		}
	}
	for name, change := range map[string]func(*v1alpha1.StorageBenchmark){
		"gates":          func(b *v1alpha1.StorageBenchmark) { b.Spec.Gates = []v1alpha1.Gate{{Name: "x"}} },
		"baseline":       func(b *v1alpha1.StorageBenchmark) { b.Spec.Baseline = &v1alpha1.Baseline{} },
		"retain":         func(b *v1alpha1.StorageBenchmark) { b.Spec.Retain = v1alpha1.RetainAlways },
		"suspend":        func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = true },
		"ttl":            func(b *v1alpha1.StorageBenchmark) { b.Spec.TTLAfterFinished = runstest.Lasting(1) },
		"maxAttempts":    func(b *v1alpha1.StorageBenchmark) { b.Spec.MaxAttempts = 9 },
		"resultsHistory": func(b *v1alpha1.StorageBenchmark) { b.Spec.ResultsHistory = &keep },
		"deadline":       func(b *v1alpha1.StorageBenchmark) { b.Spec.Deadline = runstest.Lasting(1) },
		"schedule":       func(b *v1alpha1.StorageBenchmark) { b.Spec.Schedule = &v1alpha1.Schedule{Cron: "@daily"} },
		"labels":         func(b *v1alpha1.StorageBenchmark) { b.Labels = map[string]string{"a": "b"} },
		"generation":     func(b *v1alpha1.StorageBenchmark) { b.Generation = 9 },
		"status":         func(b *v1alpha1.StorageBenchmark) { b.Status.NodeName = "n2" },
		"the same size in other words": func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Target.StorageClass.Size.Quantity = resource.MustParse("1024Mi")
		},
	} {
		benchmark := runstest.Benchmark()
		if change(benchmark); ID(benchmark) != base {
			t.Errorf("%s is part of the hash", name)
		}
	}
	if base != "2a94df1d" {
		t.Errorf("an upgrade would supersede every experiment: the hash of one without a schedule was 2a94df1d, and is %s", base)
	}
	if !slices.Equal(validation.IsDNS1123Label(base), nil) || len(base) != 8 {
		t.Errorf("the hash is %q", base)
	}
}
