package foresee

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

type foreseen struct {
	change func(*v1alpha1.StorageBenchmarkSpec)
	// want is "FIELD: PART OF THE MESSAGE" of a mistake or, after "warning: ", of a warning. Empty if there is none.
	want string
}

// foresee applies each change to a spec of its own, and compares the mistakes and warnings with the expected ones.
func foresee(t *testing.T, cases map[string]foreseen) {
	t.Helper()
	for name, c := range cases {
		spec := runstest.ZFSSpec()
		c.change(spec)
		slots, err := design.Expand(spec, 1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		compiled, _ := gate.Compile(spec.Gates, spec.Phases, design.VariantNames(slots)) // nil if one of them is invalid
		f, alone := Spec(spec, slots, compiled), Spec(spec, slots, nil)                  // as if another gate were invalid
		if with, without := fmt.Sprint(f.Err(), f.Warnings), fmt.Sprint(alone.Err(), alone.Warnings); with != without {
			t.Errorf("%s: with the compiled gates %s, without %s", name, with, without)
		}
		var said []string
		for _, one := range design.Mistakes(f.Err()) {
			if !strings.HasPrefix(one.Message, one.Field+": ") {
				t.Errorf("%s: the message %q does not begin with the field %s", name, one.Message, one.Field)
			}
			said = append(said, one.Message)
		}
		for _, one := range f.Warnings {
			said = append(said, fmt.Sprintf("warning: %s: %s", one.Field, one.Message))
		}
		var wants []string
		if c.want != "" {
			wants = strings.Split(c.want, "\n")
		}
		if !slices.EqualFunc(said, wants, isSaid) {
			t.Errorf("%s: %q, want %q", name, said, wants)
		}
	}
}

// isSaid reports whether a message has the kind and the field of the expected one, and contains its text.
func isSaid(said, want string) bool {
	field, part, _ := strings.Cut(strings.TrimPrefix(want, "warning: "), ": ")
	return strings.HasPrefix(want, "warning: ") == strings.HasPrefix(said, "warning: ") &&
		strings.HasPrefix(strings.TrimPrefix(said, "warning: "), field+": ") && strings.Contains(said, part)
}

// TestSettings: each place in which a property or a module parameter can be written is checked, and named in the message.
func TestSettings(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	wrong, good := v1alpha1.Properties{"recordsze": "8k"}, v1alpha1.Properties{"recordsize": "8k", "compression": "zstd-3"}
	otherDisk := []v1alpha1.Vdev{{Type: "stripe", Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/b"}}}
	const unknown = ".recordsze: did you mean recordsize?"
	foresee(t, map[string]foreseen{
		"good": {func(s *spec) {
			s.Target.ZFS.Dataset.Properties, s.Target.ZFS.Pool.RootProperties = good, good
			s.Target.ZFS.Pool.Properties = v1alpha1.Properties{"autotrim": "on"}
			s.Target.ZFS.ModuleParameters = v1alpha1.ModuleParameters{"zfs_txg_timeout": "5"}
			s.Matrix = v1alpha1.Matrix{"dataset.recordsize": {"8k", "1M"}, "moduleParameters.zfs_arc_max": {"1073741824"}}
		}, ""},
		"dataset": {func(s *spec) { s.Target.ZFS.Dataset.Properties = wrong }, "spec.target.zfs.dataset.properties" + unknown},
		"root":    {func(s *spec) { s.Target.ZFS.Pool.RootProperties = wrong }, "spec.target.zfs.pool.rootProperties" + unknown},
		"pool": {func(s *spec) { s.Target.ZFS.Pool.Properties = v1alpha1.Properties{"autotrim": "yes"} },
			"spec.target.zfs.pool.properties.autotrim: write on or off"},
		"parameter": {func(s *spec) { s.Target.ZFS.ModuleParameters = v1alpha1.ModuleParameters{"zfs_arc_max": "4G"} },
			"spec.target.zfs.moduleParameters.zfs_arc_max: write '4294967296'"},
		"volume": {func(s *spec) {
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Dataset: &v1alpha1.DatasetTemplate{Properties: wrong}}}
		}, "spec.target.zfs.volumes[0].dataset.properties" + unknown},
		"pool of a volume": {func(s *spec) {
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Pool: &v1alpha1.PoolTemplate{RootProperties: wrong}}}
		}, "spec.target.zfs.volumes[0].pool.rootProperties" + unknown},
		"pool of a node": {func(s *spec) {
			s.Target.ZFS.PerNode = []v1alpha1.NodePool{{NodeName: "n", Pool: v1alpha1.PoolTemplate{RootProperties: wrong}}}
		}, "spec.target.zfs.perNode[0].pool.rootProperties" + unknown},
		"variant's dataset": {func(s *spec) {
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b", Dataset: &v1alpha1.DatasetOverride{Properties: wrong}}}
		}, "spec.variants[1].dataset.properties" + unknown},
		"variant's volume": {func(s *spec) {
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Pool: &v1alpha1.PoolTemplate{Vdevs: otherDisk}}}
			s.Variants = []v1alpha1.Variant{{Name: "a", Volumes: []v1alpha1.VolumeOverride{{Name: "log",
				Dataset: &v1alpha1.DatasetOverride{Properties: wrong}}}}}
		}, "spec.variants[0].volumes[0].dataset.properties" + unknown},
		"path of a volume": {func(s *spec) {
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Pool: &v1alpha1.PoolTemplate{Vdevs: otherDisk}}}
			s.Matrix = v1alpha1.Matrix{"volumes.log.dataset.recordsize": {"8k", "9k"}}
		}, "spec.matrix[volumes.log.dataset.recordsize][1]: "},
		"variant's pool": {func(s *spec) {
			s.Variants = []v1alpha1.Variant{{Name: "a", Pool: &v1alpha1.PoolOverride{Properties: v1alpha1.Properties{"autoexpand": "1"}}}}
		}, "spec.variants[0].pool.properties.autoexpand: write on or off"},
		"variant's parameter": {func(s *spec) {
			s.Variants = []v1alpha1.Variant{{Name: "a", ModuleParameters: v1alpha1.ModuleParameters{"zfs_txg_timeout": "soon"}}}
		}, "spec.variants[0].moduleParameters.zfs_txg_timeout: whole number"},
		"variant's path": {func(s *spec) {
			s.Variants = []v1alpha1.Variant{{Name: "a", Set: map[string]v1alpha1.MatrixValue{"dataset.logbias": "fast"}}}
		}, "spec.variants[0].set[dataset.logbias]: write latency or throughput"},
		"variant's target": {func(s *spec) {
			target := s.Target.DeepCopy()
			target.ZFS.Dataset.Properties = wrong
			s.Variants = []v1alpha1.Variant{{Name: "a", Target: target}}
		}, "spec.variants[0].target.zfs.dataset.properties" + unknown},
		"matrix": {func(s *spec) { s.Matrix = v1alpha1.Matrix{"dataset.recordsize": {"8k", "9k"}} },
			"spec.matrix[dataset.recordsize][1]: power of two from 512 to 16M"},
		"matrix of a pool": {func(s *spec) { s.Matrix = v1alpha1.Matrix{"pool.properties.failmode": {"wait", "panic"}} },
			"spec.matrix[pool.properties.failmode][1]: write wait or continue"},
		"operation": {func(s *spec) {
			s.Phases[1].Measure.Operate = &v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{Name: "zfs_arc_max", Value: "1G"}}
		}, "spec.phases[1]: zfs_arc_max: \"1G\" is not a whole number"},
		"property changed": {func(s *spec) {
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "cure", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
				SetProperty: &v1alpha1.SetPropertyAction{Dataset: "data", Properties: v1alpha1.LiveProperties{"recordsize": "9k"}}}}})
		}, "spec.phases[2].operate.setProperty.properties.recordsize: "},
		"new property": {func(s *spec) { s.Target.ZFS.Dataset.Properties = v1alpha1.Properties{"fastwrites": "on"} },
			"warning: spec.target.zfs.dataset.properties.fastwrites: no dataset has such a property"},
		"new value": {func(s *spec) {
			s.Matrix = v1alpha1.Matrix{"dataset.compression": {"off", "brotli"}}
			s.Phases[0].Fill.Compressibility = "50%"
		}, "warning: spec.matrix[dataset.compression][1]: \"brotli\" is not one of its values up to OpenZFS"},
		"new parameter": {func(s *spec) { s.Target.ZFS.ModuleParameters = v1alpha1.ModuleParameters{"zfs_arcmax": "1"} },
			"warning: spec.target.zfs.moduleParameters.zfs_arcmax: did you mean zfs_arc_max?"},
		"block of a volume": {func(s *spec) { s.Target.ZFS.Dataset.Properties = v1alpha1.Properties{"volblocksize": "8k"} },
			"spec.target.zfs.dataset.properties.volblocksize: write recordsize"},
		"records of a volume, by the matrix": {func(s *spec) {
			s.Target.ZFS.Dataset.Type = "Volume"
			s.Matrix = v1alpha1.Matrix{"dataset.recordsize": {"8k", "16k"}}
		}, "spec.matrix[dataset.recordsize]: only a dataset of type Filesystem has it, and this one is a Volume: write volblocksize"},
		"records of a volume, by a variant": {func(s *spec) {
			s.Target.ZFS.Dataset.Properties = good
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b", Dataset: &v1alpha1.DatasetOverride{Type: "Volume"}}}
		}, "spec.target.zfs.dataset.properties.recordsize: move recordsize to the variants that are file systems (variant \"b\")"},
		"blocks of a file system, by a variant": {func(s *spec) {
			s.Target.ZFS.Dataset.Type, s.Target.ZFS.Dataset.Properties = "Volume", v1alpha1.Properties{"volblocksize": "8k"}
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b", Dataset: &v1alpha1.DatasetOverride{Type: "Filesystem"}}}
		}, "spec.target.zfs.dataset.properties.volblocksize: move volblocksize to the variants that are volumes"},
		"of the pool": {func(s *spec) { s.Target.ZFS.Dataset.Properties = v1alpha1.Properties{"ashift": "12"} },
			"spec.target.zfs.dataset.properties.ashift: it is a property of the pool: write pool.ashift"},
		"small ARC": {func(s *spec) { s.Target.ZFS.ModuleParameters = v1alpha1.ModuleParameters{"zfs_arc_max": "16777216"} },
			"spec.target.zfs.moduleParameters.zfs_arc_max: write '67108864' or more"},
		"unknown in all values": {func(s *spec) { s.Matrix = v1alpha1.Matrix{"dataset.recordsze": {"8k", "16k"}} },
			"spec.matrix[dataset.recordsze][0]: did you mean recordsize?"},
	})
}

// TestMeantPaths: a path that names a setting or a phase at the wrong place says which one to write, once for all its values.
func TestMeantPaths(t *testing.T) {
	spec := runstest.ZFSSpec()
	for path, want := range map[string]string{
		"recordsize": "dataset.recordsize", "pool.recordsize": "dataset.recordsize", "dataset.properties.recordsize": "dataset.recordsize",
		"dataset.ashift": "pool.ashift", "ashift": "pool.ashift", "dataset.autotrim": "pool.properties.autotrim",
		"pool.autotrim": "pool.properties.autotrim", "pool.properties.recordsize": "dataset.recordsize",
		"zfs_arc_max": "moduleParameters.zfs_arc_max", "volumes.log.pool.recordsize": "volumes.log.dataset.recordsize",
		"spec.target.zfs.pool.ashift": "pool.ashift", "fill.to": "phases.fill.to",
		"target.storageClass.name": "storageClass.name", "spec.storageClass.size": "storageClass.size",
		"target.zfs.dataset.properties.recordsize": "dataset.recordsize", "spec.phases.fill.to": "phases.fill.to",
		"phases.scan.measure.workload.scan.regions": "phases.scan.regions", "phases.scan.measure.cache": "phases.scan.cache",
		"phases.fill.fill.to": "phases.fill.to", "spec.repetitions": "", "target": "", "spec.target": "",
		"dataset.recordsize": "", "pool.ashift": "", "pool.properties.autotrim": "", "phases.fill.to": "", "phases.scan.recordsize": "",
		"volumes.log.dataset.sync": "", "storageClass.size": "", "dataset.new": "", "something": "", "moduleParameters.zfs_new": "",
	} {
		if want != "" {
			want = "did you mean " + want + "?"
		}
		if got := meantPath(spec, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	spec.Matrix = v1alpha1.Matrix{"dataset.type": {"Filesystem", "Volume"}}
	spec.Variants = []v1alpha1.Variant{{Name: "a", Set: map[string]v1alpha1.MatrixValue{"pool.recordsize": "8k"}}}
	var said []string
	for _, one := range design.Mistakes(Spec(spec, nil, nil).Err()) {
		said = append(said, one.Message)
	}
	if want := []string{"spec.variants[0].set[pool.recordsize]: did you mean dataset.recordsize?",
		"spec.matrix[dataset.type]: no path can set it: write variants, each with its dataset.type"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// TestSettingsOfDatabases: settings of PostgreSQL are checked in each place where they can be written.
func TestSettingsOfDatabases(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	given := func(name string, value v1alpha1.PropertyValue) func(*spec) {
		return func(s *spec) {
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "tx", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{
				Postgres: &v1alpha1.PostgresWorkload{Settings: map[string]v1alpha1.PropertyValue{name: value}}}}})
		}
	}
	const at = "spec.phases[2].measure.workload.postgres.settings."
	foresee(t, map[string]foreseen{
		"good":         {given("max_wal_size", "8GB"), ""},
		"another unit": {given("max_wal_size", "8Gi"), at + "max_wal_size: write a size in kB, MB, GB or TB, such as 8GB"},
		"slip":         {given("full_page_write", "off"), at + "full_page_write: did you mean full_page_writes?"},
		"matrix": {func(s *spec) {
			given("wal_compression", "on")(s)
			s.Matrix = v1alpha1.Matrix{"phases.tx.settings.checkpoint_timeout": {"5min", "5m"}}
		}, "spec.matrix[phases.tx.settings.checkpoint_timeout][1]: such as 5min"},
		"variant": {func(s *spec) {
			given("wal_compression", "on")(s)
			s.Variants = []v1alpha1.Variant{{Name: "a", Set: map[string]v1alpha1.MatrixValue{"phases.tx.settings.full_page_writes": "disabled"}}}
		}, "spec.variants[0].set[phases.tx.settings.full_page_writes]: write on or off"},
	})
}

// TestGatesOnMetrics: a gate on a metric that a phase cannot have is refused, with the name of the variant in which it cannot.
func TestGatesOnMetrics(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	bound := func(metric string) func(*spec) {
		return func(s *spec) {
			s.Gates = []v1alpha1.Gate{{Name: "g", Bound: &v1alpha1.BoundGate{Metric: v1alpha1.MetricPath(metric), Min: "1k"}}}
		}
	}
	expression := func(text string) func(*spec) {
		return func(s *spec) { s.Gates = []v1alpha1.Gate{{Name: "a", Expression: text}} }
	}
	ratio := func(gate v1alpha1.RatioGate) func(*spec) {
		return func(s *spec) { s.Gates = []v1alpha1.Gate{{Name: "g", Ratio: &gate}} }
	}
	oltp := func(updates int32) v1alpha1.Phase {
		return v1alpha1.Phase{Name: "oltp", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{
			OLTP: &v1alpha1.OLTPWorkload{UpdatePercent: updates}}}}
	}
	operate := func(name v1alpha1.PhaseName, action v1alpha1.PoolAction) v1alpha1.Phase {
		return v1alpha1.Phase{Name: name, Operate: &v1alpha1.OperatePhase{PoolAction: action}}
	}
	jobs := func(options string) v1alpha1.Phase {
		return v1alpha1.Phase{Name: "jobs", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{
			FIO: &v1alpha1.FIOWorkload{JobFile: "[log]\nrw=write\nsize=1m\n" + options + "\n"}}}}
	}
	clone := []v1alpha1.Phase{operate("take", v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{Dataset: "data", Name: "s"}}),
		operate("clone", v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: "s", To: "copy"}})}
	untilScrubbed := v1alpha1.Phase{Name: "busy", Measure: oltp(25).Measure}
	untilScrubbed.Measure.Operate = &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
	untilScrubbed.Measure.Workload.OLTP.Duration = runstest.Lasting(5 * time.Minute)
	untilScrubbed.Measure.OperateAfter, untilScrubbed.Measure.Until = runstest.Lasting(time.Minute), v1alpha1.UntilOperationEnds
	foresee(t, map[string]foreseen{
		"reads":        {bound("scan.readBytesPerSecond"), ""},
		"disks":        {bound("scan.diskReadsPerReadMilli"), ""},
		"filled":       {expression("phase('fill').filledBytes > 0 && phase('scan').ioErrors == 0"), ""},
		"unknown":      {bound("scan.readBytes_"), ""}, // the gate itself is invalid
		"writes":       {bound("scan.writeBytesPerSecond"), "spec.gates[0].bound.metric: never has writeBytesPerSecond: did you mean readBytesPerSecond? It has readBytesPerSecond, "},
		"transactions": {bound("scan.transactionsPerSecond"), "spec.gates[0].bound.metric: phase scan (scan on a zfs target) of variant \"default\" never has transactionsPerSecond: it has readBytesPerSecond, readLatencyP99Nanoseconds"},
		"rounds of one": {bound("scan.steadyStateDriftPartsPerMillion"), "spec.gates[0].bound.metric: phase scan of variant \"default\" has no " +
			"steadyStateDriftPartsPerMillion: a phase measures in rounds only with steadyState: add it"},
		"in expression": {expression("phase('scan').walBytes > 1.0"), "spec.gates[0].expression: phase scan"},
		"of the fill":   {expression("phase('fill').readBytesPerSecond > 1.0"), "spec.gates[0].expression: phase fill (fill on a zfs target)"},
		"of a clone": {func(s *spec) {
			s.Phases = append(s.Phases, clone...)
			bound("clone.freedBytes")(s)
		}, "spec.gates[0].bound.metric: phase clone (operate: clone on a zfs target) of variant \"default\" never has freedBytes: it has durationNanoseconds, referencedBytes"},
		"beside a scrub": {func(s *spec) {
			s.Phases[1].Measure.Operate = &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
			bound("scan.trimmedBytes")(s)
		}, "spec.gates[0].bound.metric: phase scan (scan beside scrub on a zfs target) of variant \"default\" never has trimmedBytes"},
		"disks beside a scrub": {func(s *spec) {
			s.Phases[1].Measure.Operate = &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
			bound("scan.diskReadsPerReadMilli")(s)
		}, "spec.gates[0].bound.metric: phase scan (scan beside scrub on a zfs target) of variant \"default\" never has diskReadsPerReadMilli"},
		"a sync of the fill": {bound("fill.flushNanoseconds"),
			"spec.gates[0].bound.metric: phase fill (fill on a zfs target) of variant \"default\" never has flushNanoseconds"},
		"space on a device": {func(s *spec) {
			s.Target.ZFS.Dataset.Type = "Volume"
			bound("fill.compressionRatioMilli")(s)
		}, `spec.gates[0].bound.metric: phase fill of variant "default" has no compressionRatioMilli: its volume is a device`},
		"space of its pool": {func(s *spec) {
			s.Target.ZFS.Dataset.Type = "Volume"
			bound("fill.poolAllocatedBytes")(s)
		}, ""},
		"until it ends": {func(s *spec) {
			s.Phases = append(s.Phases, untilScrubbed)
			bound("busy.readOperationsPerSecond")(s)
		}, "warning: spec.gates[0].bound.metric: differ from run to run: use its during.readBytesPerSecond, or that of before or after"},
		"until it ends, an expression": {func(s *spec) {
			s.Phases = append(s.Phases, untilScrubbed)
			expression("phase('busy').writeBytesPerSecond > 1.0")(s)
		}, "warning: spec.gates[0].expression: use its during.writeBytesPerSecond"},
		"until it ends, during it": {func(s *spec) {
			s.Phases = append(s.Phases, untilScrubbed)
			expression("phase('busy').workload('during').writeBytesPerSecond > 1.0 && phase('busy').ioErrors == 0")(s)
		}, ""},
		"until it ends, of two variants": {func(s *spec) {
			s.Phases = append(s.Phases, untilScrubbed)
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}}
			expression("variant('a').phase('busy').readBytesPerSecond > variant('b').phase('busy').readBytesPerSecond")(s)
		}, "warning: spec.gates[0].expression: use its during.readBytesPerSecond"},
		"better than itself": {func(s *spec) {
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}}
			expression("phase('scan').readBytesPerSecond > variant('a').phase('scan').readBytesPerSecond")(s)
		}, "warning: spec.gates[0].expression: the gate also judges variant a, against itself, where it never holds"},
		"better than another": {func(s *spec) {
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}}
			expression("phase('scan').readBytesPerSecond > variant('a').phase('scan').readBytesPerSecond")(s)
			s.Gates[0].Variants = []v1alpha1.VariantParts{"b"}
		}, ""},
		"until it ends, of the operation": {func(s *spec) {
			s.Phases = append(s.Phases, untilScrubbed)
			expression("phase('busy').scannedBytes > 1.0 && phase('busy').durationNanoseconds > 1.0")(s)
		}, ""},
		"until it ends, a latency": {func(s *spec) {
			s.Phases = append(s.Phases, untilScrubbed)
			bound("busy.readLatencyP99Nanoseconds")(s)
		}, "warning: spec.gates[0].bound.metric: only rates are measured before, during and after an operation: run the operation throughout, without operateAfter"},
		"until it ends, a share": {func(s *spec) {
			s.Phases = append(s.Phases, untilScrubbed)
			bound("busy.readLatency.shareOver10ms")(s)
		}, "warning: spec.gates[0].bound.metric: its readLatency.shareOver10ms mixes"},
		"until it ends, disks": {func(s *spec) {
			s.Phases = append(s.Phases, untilScrubbed)
			expression("phase('busy').diskReadBytesPerSecond > 1.0")(s)
		}, "warning: spec.gates[0].expression: its diskReadBytesPerSecond mixes"},
		"syncs of libaio": {func(s *spec) {
			s.Phases = append(s.Phases, jobs("ioengine=libaio\nfdatasync=1"))
			expression("phase('jobs').share('syncLatency', '>', '1ms') < 0.1")(s)
		}, "spec.gates[0].expression: has no syncLatency.shareOver1ms: with ioengine=libaio, fio times the preceding write with the syncs of log\n" +
			"warning: spec.phases[2].measure.workload.fio.jobFile: latencies of syncs will be left out"},
		"syncs of psync": {func(s *spec) {
			s.Phases = append(s.Phases, jobs("fdatasync=1"))
			bound("jobs.syncLatencyP99Nanoseconds")(s)
		}, ""},
		"a paced job": {func(s *spec) {
			s.Phases = append(s.Phases, jobs("rate_iops=100"))
			bound("jobs.writeLatencyP99Nanoseconds")(s)
		}, "spec.gates[0].bound.metric: has no writeLatencyP99Nanoseconds: rate or rate_iops of log paces the requests\n" +
			"warning: spec.phases[2].measure.workload.fio.jobFile: latencies will be left out"},
		"what a clone has": {func(s *spec) {
			s.Phases = append(s.Phases, clone...)
			expression("phase('clone').referencedBytes > 1.0 && phase('clone').durationNanoseconds < 1e9")(s)
		}, ""},
		"compare": {func(s *spec) {
			s.Gates = []v1alpha1.Gate{{Name: "g", Compare: &v1alpha1.CompareGate{Metric: "scan.metadataOperationsPerSecond", To: "History"}}}
		}, "spec.gates[0].compare.metric: never has metadataOperationsPerSecond"},
		"pools of a class": {func(s *spec) {
			s.Target = v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}}
			bound("scan.gangBlocks")(s)
		}, "spec.gates[0].bound.metric: (scan on a storageClass target)"},
		"disks of a class": {func(s *spec) {
			s.Target = v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}}
			bound("scan.diskReadRequestBytes")(s)
		}, ""},
		"one variant": {func(s *spec) {
			s.Phases = append(s.Phases, oltp(0))
			s.Matrix = v1alpha1.Matrix{"phases.oltp.updatePercent": {"25", "0"}}
			bound("oltp.writeBytesPerSecond")(s)
		}, "spec.gates[0].bound.metric: of variant \"phases.oltp.updatePercent=0\" never has writeBytesPerSecond"},
		"a ratio": {ratio(v1alpha1.RatioGate{Of: "scan.readBytesPerSecond", To: "fill.writeBytesPerSecond", Min: "1x"}), ""},
		"a ratio of writes": {ratio(v1alpha1.RatioGate{Of: "scan.readBytesPerSecond", To: "scan.writeBytesPerSecond", Min: "1x"}),
			"spec.gates[0].ratio: phase scan (scan on a zfs target) of variant \"default\" never has writeBytesPerSecond"},
		"a ratio to a variant": {func(s *spec) {
			s.Phases = append(s.Phases, oltp(0))
			s.Variants = []v1alpha1.Variant{{Name: "r"}, {Name: "w", Set: map[string]v1alpha1.MatrixValue{"phases.oltp.updatePercent": "9"}}}
			s.Matrix = v1alpha1.Matrix{"pool.ashift": {"9", "12"}}
			ratio(v1alpha1.RatioGate{Of: "oltp.readBytesPerSecond", To: "oltp.writeBytesPerSecond", ToVariant: "r", Min: "1x"})(s)
		}, "spec.gates[0].ratio: of variant \"r,pool.ashift=12\" never has writeBytesPerSecond"},
		"a share":           {bound("scan.scanRegionTime.shareOver10ms"), ""},
		"a share of writes": {expression("phase('scan').share('writeLatency', '>', '10ms') < 0.5"), "spec.gates[0].expression: never has writeLatency.shareOver10ms"},
		"another variant": {func(s *spec) {
			s.Phases = append(s.Phases, oltp(0))
			s.Variants = []v1alpha1.Variant{{Name: "r"}, {Name: "w", Set: map[string]v1alpha1.MatrixValue{"phases.oltp.updatePercent": "9"}}}
			expression("variant('w').phase('oltp').writeBytesPerSecond > phase('oltp').readBytesPerSecond")(s)
		}, ""},
	})
}

// TestGatesOnKeptPools: repetitions that use the pool of earlier ones cannot decide a ratio or a comparison. This is known before they run.
func TestGatesOnKeptPools(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	kept := func(gate v1alpha1.Gate) func(*spec) {
		return func(s *spec) {
			gate.Name = "g"
			s.Repetitions, s.Target.ZFS.Reset, s.Gates = 6, v1alpha1.ResetNone, []v1alpha1.Gate{gate}
			s.Order, s.Variants = v1alpha1.OrderSequential, []v1alpha1.Variant{{Name: "a"}, {Name: "b"}}
		}
	}
	ratio := v1alpha1.Gate{Ratio: &v1alpha1.RatioGate{Of: "scan.readBytesPerSecond", To: "fill.writeBytesPerSecond", Min: "80%"}}
	compare := v1alpha1.Gate{Compare: &v1alpha1.CompareGate{Metric: "scan.readBytesPerSecond", To: "Variant", Variant: "a"}}
	history := v1alpha1.Gate{Compare: &v1alpha1.CompareGate{Metric: "scan.readBytesPerSecond", To: "History"}}
	aged := v1alpha1.Gate{Compare: &v1alpha1.CompareGate{Metric: "scan.readBytesPerSecond", To: "History", AcceptAgeing: true}}
	foresee(t, map[string]foreseen{
		"a ratio": {kept(ratio), "warning: spec.gates[0].ratio: runs of variant \"a\" use the pool of earlier runs (reset: None), so that this gate " +
			"will be Inconclusive (NotIndependent): write reset: Pool, or a bound or an expression"},
		"a variant":    {kept(compare), "warning: spec.gates[0].compare.metric: (NotIndependent): write reset: Pool"},
		"a history":    {kept(history), "warning: spec.gates[0].compare.metric: (NotIndependent): add acceptAgeing: true"},
		"the age":      {kept(aged), ""},
		"a bound":      {kept(v1alpha1.Gate{Bound: &v1alpha1.BoundGate{Metric: "scan.readBytesPerSecond", Min: "1B/s"}}), ""},
		"a new pool":   {func(s *spec) { kept(ratio)(s); s.Target.ZFS.Reset = v1alpha1.ResetPool }, ""},
		"a single run": {func(s *spec) { kept(ratio)(s); s.Repetitions = 1 }, ""},
		"of the rest": {func(s *spec) {
			kept(ratio)(s)
			s.Variants[0].Target = &v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}}
			s.Variants[1].Target = s.Target.DeepCopy()
			s.Target.ZFS.Reset = ""
		}, "warning: spec.gates[0].ratio: runs of variant \"b\" use"},
	})
}
