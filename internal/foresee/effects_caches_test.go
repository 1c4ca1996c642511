package foresee

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

var ofScan = v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}

func property(name string, value v1alpha1.PropertyValue) v1alpha1.Properties {
	return v1alpha1.Properties{name: value}
}

// limited keeps the ARC small.
func limited(change func(*effectSpec)) func(*effectSpec) {
	return func(s *effectSpec) {
		change(s)
		s.Target.ZFS.ModuleParameters = v1alpha1.ModuleParameters{"zfs_arc_max": "1073741824"}
	}
}

// TestJustWritten: the ARC holds files that fio has just written, unless it may not keep them, or they existed before.
func TestJustWritten(t *testing.T) {
	jobs := func(cache v1alpha1.CacheExpectation, lines ...string) func(*effectSpec) {
		return func(s *effectSpec) {
			measuring(s, jobFile(lines...))
			s.Phases[1].Measure.Cache = cache
		}
	}
	twice := func(name string) func(*effectSpec) {
		return func(s *effectSpec) {
			measuring(s, jobFile("rw=write", "bs=128k"), v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{
				JobFile: "[" + name + "]\nrw=randread\nsize=1m\n"}})
			s.Phases[2].Measure.Cache = v1alpha1.CacheCold
		}
	}
	zvol := func(change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Dataset.Type, s.Target.ZFS.Dataset.FSType = "Volume", "ext4"
			change(s)
		}
	}
	large := v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[j]\nrw=randread\nnumjobs=8\nsize=16g\n"}}
	const none, cold, warm = v1alpha1.CacheExpectation(""), v1alpha1.CacheCold, v1alpha1.CacheWarm
	const warns = "warning: spec.phases[1].measure.workload.fio.jobFile: job [j] reads files that fio has just written"
	const invalid = "warning: spec.phases[1].measure.workload.fio.jobFile: with cache: Cold the phase is then Invalid"
	foresee(t, map[string]foreseen{
		"reads":               {jobs(none, "rw=randread"), warns},
		"any cache":           {jobs(v1alpha1.CacheAny, "rw=randread"), warns},
		"reads the fill":      {jobs(none, "rw=randread", "filename=data"), ""},
		"writes":              {jobs(none, "rw=write", "bs=128k"), ""},
		"about the cache":     {jobs(warm, "rw=randread"), ""},
		"only metadata":       {having(jobs(none, "rw=randread"), property("primarycache", "metadata")), ""},
		"a small ARC":         {limited(jobs(none, "rw=randread")), ""},
		"direct":              {jobs(none, "rw=randread", "direct=1"), ""},
		"direct is disabled":  {having(jobs(none, "rw=randread", "direct=1"), property("direct", "disabled")), warns},
		"always direct":       {having(jobs(none, "rw=randread"), property("direct", "always")), ""},
		"direct on a volume":  {zvol(jobs(none, "rw=randread", "direct=1")), warns},
		"more than fits":      {func(s *effectSpec) { measuring(s, large) }, ""},
		"cold":                {jobs(cold, "rw=randread"), invalid},
		"cold, the fill":      {jobs(cold, "rw=randread", "filename=data"), ""},
		"cold, only metadata": {having(jobs(cold, "rw=randread"), property("primarycache", "metadata")), ""},
		"cold, a small ARC":   {limited(jobs(cold, "rw=randread")), ""},
		"cold, direct":        {jobs(cold, "rw=randread", "direct=1"), ""},
		"cold, kept":          {func(s *effectSpec) { jobs(cold, "rw=randread")(s); s.Target.ZFS.Reset = v1alpha1.ResetNone }, ""},
		"cold, made before":   {twice("j"), ""},
		"cold, other files":   {twice("k"), "warning: spec.phases[2].measure.workload.fio.jobFile: with cache: Cold the phase is then Invalid"},
	})
}

// TestReadFromMemory: settings that act on reads from disks show nothing if all data fits into memory.
func TestReadFromMemory(t *testing.T) {
	type values = v1alpha1.MatrixValues
	sized := func(size string, change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) {
			change(s)
			s.Target.ZFS.Dataset.Size = &v1alpha1.Size{Quantity: resource.MustParse(size)}
		}
	}
	comparingParameter := func(name string, all ...v1alpha1.Workload) func(*effectSpec) {
		return func(s *effectSpec) {
			measuring(s, all...)
			s.Matrix = v1alpha1.Matrix{"moduleParameters." + name: {"0", "1"}}
		}
	}
	layouts := func(all ...v1alpha1.Workload) func(*effectSpec) {
		return func(s *effectSpec) {
			measuring(s, all...)
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b", Pool: &v1alpha1.PoolOverride{Vdevs: []v1alpha1.Vdev{{Type: "mirror",
				Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a", "/dev/disk/by-id/b"}}}}}}
		}
	}
	reads, sums := *ofOLTP.DeepCopy(), values{"off", "sha256"}
	reads.OLTP.UpdatePercent = 0
	prefetch := comparingParameter("zfs_prefetch_disable", ofScan, reads)
	const says = "it acts on reads from disks, and all 10Gi of data may be in memory since the fill"
	foresee(t, map[string]foreseen{
		"prefetch":                {sized("20Gi", prefetch), "warning: spec.matrix[moduleParameters.zfs_prefetch_disable]: " + says},
		"prefetch, much data":     {sized("2Ti", prefetch), ""},
		"prefetch, unknown size":  {prefetch, ""},
		"prefetch, a small ARC":   {limited(sized("20Gi", prefetch)), ""},
		"prefetch, only metadata": {having(sized("20Gi", prefetch), property("primarycache", "metadata")), ""},
		"prefetch, cold": {func(s *effectSpec) {
			sized("20Gi", prefetch)(s)
			s.Phases[1].Measure.Cache = v1alpha1.CacheCold
		}, ""},
		"prefetch, emptied": {func(s *effectSpec) {
			sized("20Gi", prefetch)(s)
			empty := v1alpha1.Phase{Name: "empty", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
				ExportImport: &v1alpha1.ExportImportAction{}}}}
			s.Phases = []v1alpha1.Phase{s.Phases[0], empty, s.Phases[1]}
		}, ""},
		"prefetch of a database": {sized("20Gi", comparingParameter("zfs_prefetch_disable", ofTables)), ""},
		"streams":                {sized("20Gi", comparingParameter("zfetch_min_distance", ofScan)), "warning: spec.matrix[moduleParameters.zfetch_min_distance]: " + says},
		"another parameter":      {sized("20Gi", comparingParameter("zfs_txg_timeout", ofScan)), ""},
		"checksums":              {sized("20Gi", comparing("checksum", sums, ofScan, reads)), "warning: spec.matrix[dataset.checksum]: " + says},
		"checksums of writes":    {sized("20Gi", comparing("checksum", sums, ofScan, ofOLTP)), ""},
		"layouts":                {sized("20Gi", layouts(ofScan)), "warning: spec.variants[1].pool.vdevs: " + says},
		"layouts, written":       {sized("20Gi", layouts(ofScan, ofRedo)), ""},
	})
}

// TestColdCacheDevices: a cache device has to be filled before it can show an effect.
func TestColdCacheDevices(t *testing.T) {
	cached := func(ramp time.Duration, all ...v1alpha1.Workload) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Pool.Cache = []v1alpha1.DevicePath{"/dev/disk/by-id/b"}
			s.Variants = []v1alpha1.Variant{{Name: "with"}, {Name: "without", Pool: &v1alpha1.PoolOverride{Cache: []v1alpha1.DevicePath{}}}}
			for i := range all {
				all[i] = *all[i].DeepCopy()
				if all[i].OLTP != nil {
					all[i].OLTP.RampUp, all[i].OLTP.Duration = runstest.Lasting(ramp), runstest.Lasting(6*time.Minute)
				}
			}
			measuring(s, all...)
		}
	}
	holding := func(size string, change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) {
			change(s)
			s.Phases[0].Fill = &v1alpha1.FillPhase{Size: &v1alpha1.Amount{Quantity: resource.MustParse(size)}}
		}
	}
	parameter := func(name string, value v1alpha1.PropertyValue, change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) {
			change(s)
			s.Target.ZFS.ModuleParameters = v1alpha1.ModuleParameters{name: value}
		}
	}
	const at = "warning: spec.target.zfs.pool.cache: "
	const empty, passed = at + "the cache devices are empty at first", at + "scans read hardly anything from the cache devices"
	foresee(t, map[string]foreseen{
		"no ramp":           {cached(0, ofOLTP), empty},
		"a short ramp":      {cached(time.Minute, ofScan, ofOLTP), empty},
		"a ramp":            {cached(10*time.Minute, ofOLTP), ""},
		"a second phase":    {cached(0, ofOLTP, ofOLTP), ""},
		"little data":       {holding("256Mi", cached(time.Minute, ofOLTP)), ""},
		"more data":         {holding("8Gi", cached(time.Minute, ofOLTP)), empty},
		"jobs":              {cached(0, jobFile("rw=randread", "filename=data", "runtime=60")), empty},
		"jobs with a ramp":  {cached(0, jobFile("rw=randread", "filename=data", "runtime=60", "ramp_time=600")), ""},
		"unknown jobs":      {cached(0, elsewhere), ""},
		"scans":             {cached(0, ofScan, ofScan), passed},
		"scans, prefetched": {parameter("l2arc_noprefetch", "0", cached(0, ofScan)), ""},
		"scans without":     {parameter("zfs_prefetch_disable", "1", cached(0, ofScan)), ""},
		"no reads":          {cached(0, ofRedo), ""},
		"in all variants":   {func(s *effectSpec) { cached(0, ofOLTP)(s); s.Variants = nil }, ""},
	})
}

// TestReadAgain: reads of blocks that oltp has read before come from the ARC.
func TestReadAgain(t *testing.T) {
	reading := func(cache v1alpha1.CacheExpectation, one v1alpha1.Workload) func(*effectSpec) {
		return func(s *effectSpec) {
			measuring(s, one)
			s.Phases[0].Fill = &v1alpha1.FillPhase{Size: &v1alpha1.Amount{Quantity: resource.MustParse("1Gi")}}
			s.Phases[1].Measure.Cache = cache
		}
	}
	const warns = "warning: spec.phases[1].measure.cache: oltp reads blocks again, then from the ARC"
	foresee(t, map[string]foreseen{
		"oltp":                {reading(v1alpha1.CacheCold, ofOLTP), warns},
		"oltp, any cache":     {reading(v1alpha1.CacheAny, ofOLTP), ""},
		"oltp, a small ARC":   {limited(reading(v1alpha1.CacheCold, ofOLTP)), ""},
		"oltp, only metadata": {having(reading(v1alpha1.CacheCold, ofOLTP), property("primarycache", "metadata")), ""},
		"scan":                {reading(v1alpha1.CacheCold, ofScan), ""},
	})
}
