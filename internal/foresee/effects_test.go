package foresee

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/config/samples"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

type effectSpec = v1alpha1.StorageBenchmarkSpec

// measuring sets the phases of a spec: its first phase, which fills, and then one phase for each workload.
func measuring(s *effectSpec, all ...v1alpha1.Workload) {
	s.Phases = s.Phases[:1]
	for i, given := range all {
		s.Phases = append(s.Phases, v1alpha1.Phase{Name: v1alpha1.PhaseName("m" + string(rune('a'+i))),
			Measure: &v1alpha1.MeasurePhase{Workload: given}})
	}
}

func jobFile(lines ...string) v1alpha1.Workload {
	text := "[j]\n" + strings.Join(lines, "\n") + "\n"
	if !strings.Contains(text, "filename") {
		text += "size=1m\n"
	}
	return v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: text}}
}

var (
	ofOLTP    = v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{UpdatePercent: 25}}
	ofRedo    = v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{}}
	ofSmall   = v1alpha1.Workload{Metadata: &v1alpha1.MetadataWorkload{}}
	ofTables  = v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{}}
	elsewhere = v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFileFrom: &v1alpha1.ConfigMapKey{Name: "jobs", Key: "job.fio"}}}
)

// comparing puts the values of a dataset property into the matrix, and sets the workloads to measure.
func comparing(name string, values v1alpha1.MatrixValues, all ...v1alpha1.Workload) func(*effectSpec) {
	return func(s *effectSpec) {
		s.Matrix = v1alpha1.Matrix{"dataset." + name: values}
		measuring(s, all...)
	}
}

func having(change func(*effectSpec), properties v1alpha1.Properties) func(*effectSpec) {
	return func(s *effectSpec) { s.Target.ZFS.Dataset.Properties = properties; change(s) }
}

// TestEffectsOnTheLog: settings that only affect synchronous writes require a phase that makes some.
func TestEffectsOnTheLog(t *testing.T) {
	type values = v1alpha1.MatrixValues
	type properties = v1alpha1.Properties
	onOff, biases := values{"standard", "disabled"}, values{"latency", "throughput"}
	synced, reading := *ofSmall.DeepCopy(), *ofTables.DeepCopy()
	synced.Metadata.Sync, reading.Postgres.Mode = "File", "SelectOnly"
	lazy := *ofTables.DeepCopy()
	lazy.Postgres.Settings = map[string]v1alpha1.PropertyValue{"synchronous_commit": "off"}
	withLog := func(all ...v1alpha1.Workload) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Pool.Log = []v1alpha1.AuxiliaryVdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/b"}}}
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b", Pool: &v1alpha1.PoolOverride{Log: []v1alpha1.AuxiliaryVdev{}}}}
			measuring(s, all...)
		}
	}
	const noSyncs = "it has almost no effect, because no phase measures synchronous writes"
	foresee(t, map[string]foreseen{
		"sync, oltp":            {comparing("sync", onOff, ofOLTP), "warning: spec.matrix[dataset.sync]: " + noSyncs},
		"sync, files":           {comparing("sync", onOff, ofSmall), "warning: spec.matrix[dataset.sync]: " + noSyncs},
		"sync, SelectOnly":      {comparing("sync", onOff, reading), "warning: spec.matrix[dataset.sync]: " + noSyncs},
		"sync, fio":             {comparing("sync", onOff, jobFile("rw=write")), "warning: spec.matrix[dataset.sync]: " + noSyncs},
		"sync, always":          {comparing("sync", values{"standard", "always"}, ofOLTP), ""},
		"sync, redo":            {comparing("sync", onOff, ofOLTP, ofRedo), ""},
		"sync, postgres":        {comparing("sync", onOff, ofTables), ""},
		"sync, durable files":   {comparing("sync", onOff, synced), ""},
		"sync, fio with fsync":  {comparing("sync", onOff, jobFile("rw=write", "fsync=8")), ""},
		"sync, fio with O_SYNC": {comparing("sync", onOff, jobFile("rw=write", "sync=dsync")), ""},
		"sync, fio without":     {comparing("sync", onOff, jobFile("rw=write", "sync=0", "fsync=0", "end_fsync=1")), "warning: spec.matrix[dataset.sync]: " + noSyncs},
		"sync, fio elsewhere":   {comparing("sync", onOff, elsewhere), ""},
		"sync, the same":        {having(func(s *effectSpec) { measuring(s, ofOLTP) }, properties{"sync": "disabled"}), ""},
		"sync, a journal": {func(s *effectSpec) {
			comparing("sync", onOff, ofOLTP)(s)
			s.Target.ZFS.Dataset.Type, s.Target.ZFS.Dataset.FSType = "Volume", "ext4"
		}, "warning: spec.matrix[dataset.sync]: answers the flush at the end of a phase at once"},
		"sync, changed by a phase": {func(s *effectSpec) {
			comparing("sync", onOff, ofOLTP)(s)
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "change", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
				SetProperty: &v1alpha1.SetPropertyAction{Dataset: "data", Properties: v1alpha1.LiveProperties{"sync": "always"}}}}})
		}, ""},
		"logbias":            {comparing("logbias", biases, ofOLTP), "warning: spec.matrix[dataset.logbias]: " + noSyncs},
		"logbias, redo":      {comparing("logbias", biases, ofRedo), ""},
		"logbias, always":    {having(comparing("logbias", biases, ofOLTP), properties{"sync": "always"}), ""},
		"logbias, no log":    {having(comparing("logbias", biases, ofRedo), properties{"sync": "disabled"}), "warning: spec.matrix[dataset.logbias]: because with sync: disabled"},
		"of a variant":       {func(s *effectSpec) { measuring(s, ofOLTP); s.Variants = differing("sync", "standard", "disabled") }, "warning: spec.variants[1].dataset.properties.sync: " + noSyncs},
		"log vdev":           {withLog(ofOLTP), "warning: spec.target.zfs.pool.log: " + noSyncs},
		"log vdev, redo":     {withLog(ofRedo), ""},
		"log vdev, no log":   {having(withLog(ofRedo), properties{"sync": "disabled"}), "warning: spec.target.zfs.pool.log: remove sync: disabled"},
		"log vdev, bypassed": {having(withLog(ofRedo), properties{"logbias": "throughput"}), "warning: spec.target.zfs.pool.log: with logbias: throughput"},
		"log vdev, lazy":     {withLog(lazy), "warning: spec.target.zfs.pool.log: " + noSyncs},
		"log vdev for all":   {func(s *effectSpec) { withLog(ofOLTP)(s); s.Variants = nil }, ""},
		"of another volume":  {onLog(ofOLTP), "warning: spec.matrix[volumes.log.dataset.logbias]: " + noSyncs},
		"redo there":         {onLog(ofRedo), ""},
	})
}

func differing(name string, values ...v1alpha1.PropertyValue) (variants []v1alpha1.Variant) {
	for i, value := range values {
		variants = append(variants, v1alpha1.Variant{Name: v1alpha1.VariantName("v" + string(rune('a'+i))),
			Dataset: &v1alpha1.DatasetOverride{Properties: v1alpha1.Properties{name: value}}})
	}
	return variants
}

// onLog compares logbias of a second volume, on which the given workload runs; redo runs on the first one.
func onLog(given v1alpha1.Workload) func(*effectSpec) {
	return func(s *effectSpec) {
		s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: "data"}}
		s.Target.ZFS.Dataset.Provisioner = "Local"
		s.Matrix = v1alpha1.Matrix{"volumes.log.dataset.logbias": {"latency", "throughput"}}
		measuring(s, ofRedo, given)
		size := &v1alpha1.FillPhase{Size: &v1alpha1.Amount{Quantity: resource.MustParse("1Gi")}}
		fill := v1alpha1.Phase{Name: "fill-log", Volume: "log", Fill: size}
		s.Phases[0].Fill, s.Phases[2].Volume = size, "log"
		s.Phases = append([]v1alpha1.Phase{fill}, s.Phases...)
	}
}

// TestEffectsOfProperties: properties without effect, and vdevs that properties leave unused.
func TestEffectsOfProperties(t *testing.T) {
	type properties = v1alpha1.Properties
	type values = v1alpha1.MatrixValues
	const b, c = "/dev/disk/by-id/b", "/dev/disk/by-id/c"
	const at = "warning: spec.target.zfs.dataset.properties."
	special := func(kind v1alpha1.AuxiliaryVdevType, of properties, devices ...v1alpha1.DevicePath) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Pool.Special = []v1alpha1.AuxiliaryVdev{{Type: kind, Devices: devices}}
			s.Target.ZFS.Dataset.Properties = of
		}
	}
	mirrored := func(change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) {
			change(s)
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{{Type: "mirror", Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/x", "/dev/disk/by-id/y"}}}
		}
	}
	cache := func(of properties, all ...v1alpha1.Workload) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Pool.Cache, s.Target.ZFS.Dataset.Properties = []v1alpha1.DevicePath{b}, of
			measuring(s, all...)
		}
	}
	archived := *ofRedo.DeepCopy()
	archived.Redo.Archive, archived.Redo.Duration = &v1alpha1.RedoArchive{}, runstest.Lasting(time.Minute)
	deduped := func(all ...v1alpha1.Workload) func(*effectSpec) {
		return having(func(s *effectSpec) { measuring(s, all...) }, properties{"dedup": "on"})
	}
	foresee(t, map[string]foreseen{
		"xattr":           {comparing("xattr", values{"sa", "dir"}, ofSmall), "warning: spec.matrix[dataset.xattr]: no workload sets extended attributes"},
		"xattr, the same": {having(func(*effectSpec) {}, properties{"xattr": "sa"}), ""},
		"dnodesize":       {comparing("dnodesize", values{"legacy", "auto"}, ofOLTP), "warning: spec.matrix[dataset.dnodesize]: no phase works on many files"},
		"dnodesize, many": {comparing("dnodesize", values{"legacy", "auto"}, ofSmall), ""},
		"dnodesize, fio":  {comparing("dnodesize", values{"legacy", "auto"}, jobFile("rw=write", "nrfiles=1000")), ""},
		"relatime":        {having(comparing("relatime", values{"on", "off"}, ofOLTP), properties{"atime": "off"}), "warning: spec.matrix[dataset.relatime]: write atime: on"},
		"relatime counts": {comparing("relatime", values{"on", "off"}, ofOLTP), ""},

		"small blocks, no vdev": {having(func(*effectSpec) {}, properties{"special_small_blocks": "4k"}), at + "special_small_blocks: add pool.special"},
		"small blocks, none":    {having(func(*effectSpec) {}, properties{"special_small_blocks": "0"}), ""},
		"small blocks":          {special("", properties{"special_small_blocks": "4k", "recordsize": "8k"}, b), ""},
		"small blocks, one variant": {func(s *effectSpec) {
			special("", properties{"special_small_blocks": "4k"}, b)(s)
			s.Variants = withoutSpecial()
		}, ""},
		"all blocks are small": {special("", properties{"special_small_blocks": "8k", "recordsize": "8k"}, b), at + "special_small_blocks: with recordsize 8k, the special vdev takes all data: write a smaller value, such as 4k"},
		"all blocks, compressed": {func(s *effectSpec) {
			special("", properties{"special_small_blocks": "64k", "compression": "lz4"}, b)(s)
			s.Phases[0].Fill.Compressibility = "60%"
		}, at + "special_small_blocks: with recordsize 128k, compressed to at most 56k, the special vdev takes all data: write a smaller value, such as 32k"},
		"larger blocks, compressed": {func(s *effectSpec) {
			special("", properties{"special_small_blocks": "32k", "compression": "lz4"}, b)(s)
			s.Phases[0].Fill.Compressibility = "60%"
		}, ""},
		"all blocks, default record": {special("", properties{"special_small_blocks": "128k"}, b), at + "special_small_blocks: such as 64k"},
		"special without redundancy": {mirrored(special("", nil, b)), "spec.target.zfs.pool: make special a mirror of 2 disks"},
		"special with redundancy":    {mirrored(special("mirror", nil, b, c)), ""},
		"special with too much":      {special("mirror", nil, b, c), "spec.target.zfs.pool: make special single disks"},
		"special beside raidz": {func(s *effectSpec) {
			special("mirror", nil, b, c)(s)
			s.Target.ZFS.Pool.Vdevs[0].Type, s.Target.ZFS.Pool.Vdevs[0].Devices = "raidz2", []v1alpha1.DevicePath{"/x", "/y", "/z", "/w"}
		}, "spec.target.zfs.pool: make special a mirror of 3 disks"},

		"cache":                {cache(nil, ofOLTP), ""},
		"cache, none of it":    {cache(properties{"secondarycache": "none"}, ofOLTP), at + "secondarycache: the cache devices get nothing"},
		"cache, only metadata": {cache(properties{"primarycache": "metadata"}, ofOLTP), at + "primarycache: the cache devices get no data"},
		"cache, of metadata":   {cache(properties{"primarycache": "metadata"}, ofSmall), ""},
		"cache, asked for":     {cache(properties{"secondarycache": "metadata"}, ofOLTP), ""},
		"cache, in turn": {func(s *effectSpec) {
			cache(nil, ofOLTP)(s)
			s.Matrix = v1alpha1.Matrix{"dataset.secondarycache": {"all", "none"}}
		}, ""},
		"secondarycache, no cache": {comparing("secondarycache", values{"all", "none"}, ofOLTP),
			"warning: spec.matrix[dataset.secondarycache]: it has no effect, because the pool has no cache device: add pool.cache"},
		"secondarycache, a cache in one variant": {func(s *effectSpec) {
			cache(nil, ofOLTP)(s)
			s.Variants = []v1alpha1.Variant{{Name: "with"}, {Name: "without", Pool: &v1alpha1.PoolOverride{Cache: []v1alpha1.DevicePath{}},
				Dataset: &v1alpha1.DatasetOverride{Properties: properties{"secondarycache": "none"}}}}
		}, "warning: spec.target.zfs.pool.cache: the cache devices are empty at first"},
		"no cache":                {having(func(*effectSpec) {}, properties{"secondarycache": "none"}), ""},
		"dedup":                   {deduped(ofOLTP, ofRedo, ofSmall), at + "dedup: it only costs"},
		"dedup, fio":              {deduped(jobFile("rw=write")), at + "dedup: it only costs"},
		"dedup, fio repeats":      {deduped(jobFile("rw=write", "bs=128k", "dedupe_percentage=50")), ""},
		"dedup, parts of records": {deduped(jobFile("rw=write", "bs=8k", "dedupe_percentage=50")), at + "dedup: blocks of at least a record"},
		"dedup, fio elsewhere":    {deduped(elsewhere), ""},
		"dedup, postgres":         {deduped(ofTables), ""},
		"dedup, an archive":       {deduped(archived), ""},
		"dedup, parts of a chunk": {func(s *effectSpec) { deduped(ofOLTP)(s); s.Target.ZFS.Dataset.Properties["recordsize"] = "512" }, ""},
		"dedup, of a copy": {func(s *effectSpec) {
			deduped(ofOLTP)(s)
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "copy", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
				Copy: &v1alpha1.CopyAction{Dataset: "data", To: "twin"}}}})
		}, ""},
	})
}

func withoutSpecial() []v1alpha1.Variant {
	return []v1alpha1.Variant{{Name: "special"}, {Name: "none", Pool: &v1alpha1.PoolOverride{Special: []v1alpha1.AuxiliaryVdev{}}}}
}

// TestEffectsOfCompression: data has to be compressible, and records have to shrink by whole sectors.
func TestEffectsOfCompression(t *testing.T) {
	type values = v1alpha1.MatrixValues
	type properties = v1alpha1.Properties
	inTurn := values{"off", "lz4"}
	filled := func(share v1alpha1.Share, change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) { s.Phases[0].Fill.Compressibility = share; change(s) }
	}
	records := func(all ...v1alpha1.MatrixValue) func(*effectSpec) {
		return having(comparing("recordsize", all, ofOLTP), properties{"compression": "lz4"})
	}
	scripted := *ofTables.DeepCopy()
	scripted.Postgres.Mode, scripted.Postgres.Script = "Script", &v1alpha1.ConfigMapKey{Name: "scripts", Key: "own.sql"}
	ashift := func(of int32, change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) { s.Target.ZFS.Pool.Ashift = of; change(s) }
	}
	const fill = "warning: spec.phases[0].fill.compressibility: "
	const job = "warning: spec.phases[1].measure.workload.fio.jobFile: "
	lz4 := func(lines ...string) func(*effectSpec) {
		return having(func(s *effectSpec) { measuring(s, jobFile(lines...)) }, properties{"compression": "lz4"})
	}
	foresee(t, map[string]foreseen{
		"random data":          {comparing("compression", inTurn, ofOLTP, ofRedo, ofSmall), "warning: spec.matrix[dataset.compression]: no phase writes data that compresses"},
		"data that compresses": {filled("50%", comparing("compression", inTurn, ofOLTP)), ""},
		"of the matrix": {func(s *effectSpec) {
			comparing("compression", inTurn, ofOLTP)(s)
			s.Matrix["phases.fill.compressibility"] = values{"0%", "50%"}
		}, ""},
		"a database":             {comparing("compression", inTurn, ofTables), "warning: spec.matrix[dataset.compression]: the rows of pgbench are mostly blanks"},
		"a database, scripted":   {comparing("compression", inTurn, scripted), ""},
		"a database beside data": {filled("50%", comparing("compression", inTurn, ofTables)), ""},
		"fio, random":            {comparing("compression", inTurn, jobFile("rw=write", "bs=128k")), "warning: spec.matrix[dataset.compression]: "},
		"fio, refilled":          {comparing("compression", inTurn, jobFile("rw=write", "bs=4k", "refill_buffers=1")), "warning: spec.matrix[dataset.compression]: "},
		"fio, reads":             {comparing("compression", inTurn, jobFile("rw=read", "bs=4k", "filename=data")), "warning: spec.matrix[dataset.compression]: "},
		"fio, compressible":      {comparing("compression", inTurn, jobFile("rw=write", "buffer_compress_percentage=50")), ""},
		"fio, elsewhere":         {comparing("compression", inTurn, elsewhere), ""},
		"one compression":        {having(func(s *effectSpec) { measuring(s, ofOLTP) }, properties{"compression": "lz4"}), ""},
		"small records":          {filled("50%", records("8k", "128k")), fill + "records of 8k do not become smaller with compressibility 50% and sectors of 4k: write 60%"},
		"small records, 60%":     {filled("60%", records("8k", "128k")), ""},
		"small records, 16k":     {filled("50%", records("16k", "32k")), ""},
		"small sectors":          {ashift(9, filled("50%", records("8k", "128k"))), ""},
		"large sectors":          {ashift(13, filled("50%", records("16k", "128k"))), fill + "records of 16k do not become smaller with compressibility 50% and sectors of 8k"},
		"records of a sector":    {filled("60%", records("4k", "128k")), fill + "write larger records, or a smaller pool.ashift"},
		"all records small":      {filled("50%", records("8k", "4k")), ""}, // no record is compared with one that compresses
		"small records, off":     {func(s *effectSpec) { filled("50%", records("8k", "128k"))(s); s.Target.ZFS.Dataset.Properties = nil }, ""},
		"compression of nothing": {having(filled("50%", comparing("compression", inTurn, ofOLTP)), properties{"recordsize": "8k"}), fill + "records of 8k"},
		"two shares": {func(s *effectSpec) {
			filled("50%", records("8k", "128k"))(s)
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "age", Fragment: &v1alpha1.FragmentPhase{Compressibility: "75%"}})
		}, ""},

		"zeros":                {lz4("rw=write", "zero_buffers=1"), job + "job [j] writes zeros"},
		"zeros, off":           {having(func(s *effectSpec) { measuring(s, jobFile("rw=write", "zero_buffers=1")) }, properties{"compression": "off"}), ""},
		"one block":            {lz4("rw=write", "bs=4k"), job + "job [j] writes the same block of 4k again and again, so that a record of 128k compresses"},
		"one block, refilled":  {lz4("rw=write", "bs=4k", "refill_buffers=1"), ""},
		"one block, at random": {lz4("rw=randwrite", "bs=4k", "overwrite=1"), ""},
		"one block, as large":  {lz4("rw=write", "bs=128k"), ""},
		"one block of several": {lz4("rw=write", "bsrange=4k-8k"), ""},
		"overwritten": {filled("50%", lz4("rw=randwrite", "filename=data")),
			job + "write buffer_compress_percentage=50 and buffer_compress_chunk=4k"},
		"overwritten alike":   {filled("50%", lz4("rw=randwrite", "filename=data", "buffer_compress_percentage=50")), ""},
		"only read":           {filled("50%", lz4("rw=randread", "filename=data")), ""},
		"overwritten, random": {lz4("rw=randwrite", "filename=data"), ""},
	})
}

// TestEffectsOfJobs: iodepth needs an engine that supports it, and a setting of the log needs transactions that write.
func TestEffectsOfJobs(t *testing.T) {
	const job = "warning: spec.phases[1].measure.workload.fio.jobFile: iodepth=32 of job [j] has no effect, because "
	const blocked = "warning: spec.phases[1].measure.workload.fio.jobFile: as containerd 2 does by default: "
	jobs := func(lines ...string) func(*effectSpec) {
		return func(s *effectSpec) {
			measuring(s, jobFile(append(lines, "iodepth=32", "rw=randread", "filename=data")...))
		}
	}
	device := func(change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) { s.Target.ZFS.Dataset.Type = "Volume"; change(s) }
	}
	reading := func(mode, name string, values ...v1alpha1.MatrixValue) func(*effectSpec) {
		return func(s *effectSpec) {
			measuring(s, v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{Mode: mode}})
			s.Matrix = v1alpha1.Matrix{settingPath(name): values}
		}
	}
	with := func(change func(*effectSpec), name string, value v1alpha1.PropertyValue) func(*effectSpec) {
		return func(s *effectSpec) {
			change(s)
			s.Phases[1].Measure.Workload.Postgres.Settings = map[string]v1alpha1.PropertyValue{name: value}
		}
	}
	const pages, checkpoints = "full_page_writes", "warning: spec.phases[1].measure.workload.postgres.settings: "
	foresee(t, map[string]foreseen{
		"psync, own files": {func(s *effectSpec) { measuring(s, jobFile("iodepth=32", "rw=write", "bs=128k")) },
			job + "with ioengine=psync a worker sends one request at a time: write numjobs=32 in its place and divide size by 32, because each worker has files of its own"},
		"psync":                   {jobs("ioengine=psync"), job + "with ioengine=psync a worker sends one request at a time: write numjobs=32 in its place"},
		"no engine":               {jobs(), job + "with ioengine=psync"},
		"libaio on ZFS":           {jobs("ioengine=libaio", "direct=1"), job + "ZFS serves a worker with ioengine=libaio one request at a time"},
		"io_uring":                {jobs("ioengine=io_uring"), blocked + "write ioengine=psync, and numjobs in place of iodepth"},
		"io_uring on a device":    {device(jobs("ioengine=io_uring", "direct=1")), blocked + "write ioengine=libaio and direct=1, or measure with 'kubectl storagebench run --local'"},
		"no depth":                {func(s *effectSpec) { measuring(s, jobFile("rw=randread", "iodepth=1", "filename=data")) }, ""},
		"psync on a device":       {device(jobs("ioengine=psync")), job + "with ioengine=psync a worker sends one request at a time: write ioengine=libaio and direct=1"},
		"libaio on a device":      {device(jobs("ioengine=libaio", "direct=1")), ""},
		"libaio, not direct":      {device(jobs("ioengine=libaio")), job + "ioengine=libaio waits for each request that is not direct: write direct=1"},
		"libaio, not buffered":    {device(jobs("ioengine=libaio", "buffered=0")), ""},
		"pages of reads":          {reading("SelectOnly", pages, "on", "off"), "warning: spec.matrix[phases.ma.settings.full_page_writes]: write mode: TPCBLike"},
		"pages of reads, one":     {reading("SelectOnly", pages, "off"), ""},
		"pages of writes":         {reading("", pages, "on", "off"), checkpoints + "full_page_writes acts on the pages that change after a checkpoint, and the runner sets checkpoint_timeout to 60s"},
		"compressed pages":        {reading("", "wal_compression", "off", "lz4"), checkpoints + "wal_compression acts"},
		"pages, by default":       {reading("", pages, "on"), ""},
		"pages, with checkpoints": {with(reading("", pages, "on", "off"), "checkpoint_timeout", "5min"), ""},
		"pages, with a log size":  {with(reading("", pages, "on", "off"), "max_wal_size", "1GB"), ""},
		"pages, for long": {func(s *effectSpec) {
			reading("", pages, "on", "off")(s)
			s.Phases[1].Measure.Workload.Postgres.Duration = runstest.Lasting(30 * time.Minute)
		}, ""},
		"memory of reads":         {reading("SelectOnly", "shared_buffers", "1GB", "2GB"), ""},
		"pages of reads, variant": {func(s *effectSpec) { reading("SelectOnly", pages)(s); s.Matrix = nil; s.Variants = settingPages() }, "warning: spec.variants[1].set[phases.ma.settings.full_page_writes]: "},
	})
}

func settingPath(setting string) string { return "phases.ma.settings." + setting }

func settingPages() []v1alpha1.Variant {
	return []v1alpha1.Variant{{Name: "on"},
		{Name: "off", Set: map[string]v1alpha1.MatrixValue{settingPath("full_page_writes"): "off"}}}
}

// TestSamplesHaveEffects: no sample compares settings whose effect it cannot show. (internal/cli has the experiments of the catalogue.)
func TestSamplesHaveEffects(t *testing.T) {
	targets, specs := map[string]v1alpha1.Target{}, map[string]*effectSpec{}
	names, err := fs.Glob(samples.Files, "*.yaml")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := samples.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var benchmark v1alpha1.StorageBenchmark
			var target v1alpha1.StorageTarget
			if err := yaml.Unmarshal([]byte(document), &benchmark); err == nil && benchmark.Kind == "StorageBenchmark" {
				specs[name+" "+benchmark.Name] = &benchmark.Spec
			} else if err := yaml.Unmarshal([]byte(document), &target); err == nil && target.Kind == "StorageTarget" {
				targets[target.Name] = target.Spec
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		design.ReplaceTargets(specs[name], targets)
		slots, err := design.Expand(specs[name], 1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, one := range Spec(specs[name], slots, nil).Warnings {
			t.Errorf("%s: %s: %s", name, one.Field, one.Message)
		}
	}
}
