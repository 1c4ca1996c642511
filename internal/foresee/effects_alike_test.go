package foresee

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestEffectsThatAreAlike: comparisons whose variants do the same.
func TestEffectsThatAreAlike(t *testing.T) {
	type values = v1alpha1.MatrixValues
	compressed := func(change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) { change(s); s.Phases[0].Fill.Compressibility = "60%" }
	}
	algorithms, scan := values{"off", "lz4", "zstd-3"}, v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}
	large := *ofSmall.DeepCopy()
	large.Metadata.FileSize = &v1alpha1.BlockSize{Quantity: resource.MustParse("64Ki")}
	const path = "warning: spec.matrix[dataset."
	foresee(t, map[string]foreseen{
		"algorithms":               {compressed(comparing("compression", algorithms, scan)), path + "compression]: any algorithm compresses"},
		"one of them and off":      {compressed(comparing("compression", values{"off", "lz4"}, scan)), ""},
		"algorithms on a database": {comparing("compression", algorithms, ofTables), path + "compression]: the rows of pgbench are mostly blanks"},
		"unknown jobs":             {compressed(comparing("compression", algorithms, elsewhere)), ""},
		"direct":                   {comparing("direct", values{"disabled", "standard"}, scan), path + "direct]: no phase requests direct I/O"},
		"direct always":            {comparing("direct", values{"disabled", "always"}, scan), ""},
		"direct jobs":              {comparing("direct", values{"disabled", "standard"}, jobFile("rw=read", "direct=1", "filename=data")), ""},
		"atime":                    {comparing("atime", values{"on", "off"}, ofSmall), path + "atime]: metadata phases read no files"},
		"atime, files are read":    {comparing("atime", values{"on", "off"}, ofSmall, scan), ""},
		"atime, files only read":   {comparing("atime", values{"on", "off"}, scan), path + "atime]: write relatime: off, and add a fio job that reads many small files"},
		"atime, each time":         {having(comparing("atime", values{"on", "off"}, ofSmall, scan), v1alpha1.Properties{"relatime": "off"}), ""},
		"atime, the same":          {having(func(*effectSpec) {}, v1alpha1.Properties{"atime": "off"}), ""},
		"recordsize":               {comparing("recordsize", values{"16k", "128k"}, ofSmall), path + "recordsize]: files of at most 4k"},
		"recordsize, larger files": {comparing("recordsize", values{"16k", "128k"}, large), ""},
	})
}

// TestCachesThatHoldNothing: a phase that expects its reads from memory would always be Invalid if no data stays there.
func TestCachesThatHoldNothing(t *testing.T) {
	warm := func(value string) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Dataset.Properties = v1alpha1.Properties{"primarycache": v1alpha1.PropertyValue(value)}
			s.Phases[1].Measure.Cache = v1alpha1.CacheWarm
		}
	}
	const field = "spec.phases[1].measure.cache: "
	bounded := func(limit v1alpha1.PropertyValue, fill *v1alpha1.FillPhase) func(*effectSpec) {
		return func(s *effectSpec) {
			warm("all")(s)
			s.Target.ZFS.ModuleParameters = map[string]v1alpha1.PropertyValue{"zfs_arc_max": limit}
			s.Phases[0].Fill = fill
		}
	}
	fill := &v1alpha1.FillPhase{Size: &v1alpha1.Amount{Quantity: resource.MustParse("2Gi")}}
	compressible := fill.DeepCopy()
	compressible.Compressibility = "50%"
	foresee(t, map[string]foreseen{
		"larger than the ARC": {bounded("1073741824", fill), field + "2Gi of data does not fit into the 1Gi of zfs_arc_max"},
		"compressible":        {bounded("1073741824", compressible), ""},
		"fits":                {bounded("4294967296", fill), ""},
		"unknown size":        {bounded("1073741824", &v1alpha1.FillPhase{To: "50%"}), ""},
		"all":                 {warm("all"), ""}, "none": {warm("none"), field + "primarycache: none"}, "metadata": {warm("metadata"), field + "primarycache: metadata"},
		"changed": {func(s *effectSpec) {
			warm("none")(s)
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "set", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
				SetProperty: &v1alpha1.SetPropertyAction{Dataset: "data", Properties: v1alpha1.LiveProperties{"primarycache": "all"}}}}})
		}, ""},
	})
}

// TestSmallBlocksAlike: a special vdev takes small blocks only if some are written.
func TestSmallBlocksAlike(t *testing.T) {
	type values = v1alpha1.MatrixValues
	limits := func(record v1alpha1.PropertyValue, all ...v1alpha1.Workload) func(*effectSpec) {
		return func(s *effectSpec) {
			comparing("special_small_blocks", values{"0", "16k", "32k"}, all...)(s)
			s.Target.ZFS.Pool.Special = []v1alpha1.AuxiliaryVdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/b"}}}
			s.Target.ZFS.Dataset.Properties = v1alpha1.Properties{"recordsize": record, "compression": "lz4"}
		}
	}
	compressed := func(share v1alpha1.Share, change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) { change(s); s.Phases[0].Fill.Compressibility = share }
	}
	const path = "warning: spec.matrix[dataset.special_small_blocks]: "
	large := *ofSmall.DeepCopy()
	large.Metadata.FileSize = &v1alpha1.BlockSize{Quantity: resource.MustParse("64Ki")}
	foresee(t, map[string]foreseen{
		"large records":      {limits("128k", ofOLTP, ofScan), path + "its values act alike, because no phase writes blocks of at most 32k"},
		"large files":        {limits("128k", large), path + "its values act alike"},
		"jobs on the fill":   {limits("128k", jobFile("rw=randread", "filename=data")), path + "its values act alike"},
		"small files":        {limits("128k", ofOLTP, ofSmall), ""},
		"a database":         {limits("128k", ofTables), ""},
		"own files of jobs":  {limits("128k", jobFile("rw=write", "bs=128k")), ""},
		"small records":      {limits("32k", ofOLTP), path + "with recordsize 32k, the special vdev takes all data"},
		"smaller, as 32k":    {compressed("85%", limits("128k", ofOLTP)), path + "compressed to at most 24k, the special vdev takes all data: write a smaller value, such as 16k"},
		"as large as before": {compressed("50%", limits("128k", ofOLTP)), path + "its values act alike"},
	})
}

// TestNothingClones: copy does not clone blocks.
func TestNothingClones(t *testing.T) {
	of := func(values ...v1alpha1.MatrixValue) func(*effectSpec) {
		return func(s *effectSpec) { s.Matrix = v1alpha1.Matrix{"moduleParameters.zfs_bclone_enabled": values} }
	}
	foresee(t, map[string]foreseen{
		"on and off": {of("0", "1"), "warning: spec.matrix[moduleParameters.zfs_bclone_enabled]: copy reads and writes all data"},
		"on":         {of("1"), ""},
		"a variant": {func(s *effectSpec) {
			s.Variants = []v1alpha1.Variant{{Name: "off", ModuleParameters: v1alpha1.ModuleParameters{"zfs_bclone_enabled": "0"}}, {Name: "default"}}
		}, "warning: spec.variants[0].moduleParameters.zfs_bclone_enabled: it has no effect"},
	})
}

// TestLevelsOfVolumes: a volume of a large pool may be full although the pool is not.
func TestLevelsOfVolumes(t *testing.T) {
	levels := func(size, of string) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Matrix = v1alpha1.Matrix{"phases.fill.to": {"50%", "90%"}}
			s.Phases[0].Fill.Of = of
			if size != "" {
				s.Target.ZFS.Dataset.Size = &v1alpha1.Size{Quantity: resource.MustParse(size)}
			}
			rounds := int32(1)
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "age", Fragment: &v1alpha1.FragmentPhase{Until: "Rounds", Rounds: &rounds}})
		}
	}
	foresee(t, map[string]foreseen{
		"of a volume":      {levels("40Gi", ""), "warning: spec.phases[0].fill.to: remove size from the dataset and write of: Pool"},
		"of a pool":        {levels("", "Pool"), ""},
		"of all of a pool": {levels("", ""), ""},
		"one level":        {func(s *effectSpec) { levels("40Gi", "")(s); s.Matrix = nil }, ""},
		"not aged":         {func(s *effectSpec) { levels("40Gi", "")(s); s.Phases = s.Phases[:2] }, ""},
		"on a shared pool": {func(s *effectSpec) {
			levels("40Gi", "")(s)
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: "data"}}
		}, ""},
	})
}

// TestUnflushedVolumes: a device with sync: disabled does not say when its writes are on the disks.
func TestUnflushedVolumes(t *testing.T) {
	unsynced := func(kind string, given v1alpha1.Workload) func(*effectSpec) {
		return func(s *effectSpec) {
			measuring(s, given)
			s.Target.ZFS.Dataset.Type, s.Target.ZFS.Dataset.Properties = kind, v1alpha1.Properties{"sync": "disabled"}
		}
	}
	lasting, reads := *ofOLTP.DeepCopy(), *ofOLTP.DeepCopy()
	lasting.OLTP.Duration, reads.OLTP.UpdatePercent = runstest.Lasting(10*time.Minute), 0
	const warns = "warning: spec.target.zfs.dataset.properties.sync: write a duration of 10m or longer, or type: Filesystem"
	foresee(t, map[string]foreseen{
		"updates":          {unsynced("Volume", ofOLTP), warns},
		"for long":         {unsynced("Volume", lasting), ""},
		"reads":            {unsynced("Volume", reads), ""},
		"of a file system": {unsynced("Filesystem", ofOLTP), ""},
		"jobs":             {unsynced("Volume", jobFile("rw=write", "filename=data", "runtime=60", "direct=1")), warns},
		"little at a time": {func(s *effectSpec) {
			unsynced("Volume", ofOLTP)(s)
			s.Target.ZFS.ModuleParameters = v1alpha1.ModuleParameters{"zfs_dirty_data_max": "16777216"}
		}, ""},
	})
}
