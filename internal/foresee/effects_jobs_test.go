package foresee

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestEffectsOfPlaces: jobs of fio that measure a cache or an empty file, where a newcomer expects the disks.
func TestEffectsOfPlaces(t *testing.T) {
	const field = "warning: spec.phases[1].measure.workload.fio.jobFile: "
	const written = field + "job [j] reads files that fio has just written"
	jobs := func(lines ...string) func(*effectSpec) {
		return func(s *effectSpec) { measuring(s, jobFile(lines...)) }
	}
	onDevice := func(text string) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Dataset.Type = "Volume"
			measuring(s, v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[j]\ndirect=1\n" + text}})
		}
	}
	small := func(change func(*effectSpec)) func(*effectSpec) {
		return having(change, v1alpha1.Properties{"recordsize": "8k"})
	}
	foresee(t, map[string]foreseen{
		"all read the same":      {jobs("rw=read", "numjobs=8", "filename=data"), field + "all 8 workers of job [j] read the same bytes"},
		"each its own part":      {jobs("rw=read", "numjobs=8", "filename=data", "size=1m", "offset_increment=1m"), ""},
		"each its own file":      {jobs("rw=read", "numjobs=8"), written},
		"one worker":             {jobs("rw=read", "filename=data"), ""},
		"at random":              {jobs("rw=randread", "numjobs=8", "filename=data"), ""},
		"all read the device":    {onDevice("rw=read\nnumjobs=2\nsize=1m"), field + "all 2 workers"},
		"into an empty file":     {jobs("rw=randwrite", "bs=8k"), field + "job [j] writes into a file that is empty at first"},
		"into a file":            {jobs("rw=randwrite", "bs=8k", "overwrite=1"), ""},
		"into the fill":          {jobs("rw=randwrite", "bs=8k", "filename=data"), ""},
		"whole records":          {small(jobs("rw=randwrite", "bs=8k")), ""},
		"in order":               {jobs("rw=write", "bs=8k"), ""},
		"reads make the file":    {jobs("rw=randrw", "bs=8k"), written},
		"reads the whole device": {onDevice("rw=randread"), field + "job [j] works on the whole device"},
		"writes parts of blocks": {onDevice("rw=randwrite\nbs=4k"), field + "job [j] works on the whole device"},
		"reads the fill":         {onDevice("rw=randread\nfilename=data"), ""},
		"reads a part":           {onDevice("rw=randread\nsize=1m"), ""},
		"fills the device":       {onDevice("rw=write"), ""},
	})
}

// TestUntimedJobs: jobs whose latencies fio cannot measure are reported before the run.
func TestUntimedJobs(t *testing.T) {
	const warns = "warning: spec.phases[1].measure.workload.fio.jobFile: "
	jobs := func(lines ...string) func(*effectSpec) {
		return func(s *effectSpec) { measuring(s, jobFile(append(lines, "filename=data")...)) }
	}
	foresee(t, map[string]foreseen{
		"paced":           {jobs("rw=randread", "rate_iops=200"), warns + "latencies will be left out: rate or rate_iops of j paces"},
		"no limit":        {jobs("rw=randread", "rate_iops=0"), ""},
		"syncs of libaio": {jobs("rw=write", "ioengine=libaio", "fdatasync=1"), warns + "latencies of syncs will be left out: with ioengine=libaio"},
		"reads of libaio": {jobs("rw=randread", "ioengine=libaio", "fsync=1"), ""},
		"syncs of psync":  {jobs("rw=write", "fdatasync=1"), ""},
	})
}

// TestBufferedJobs: on storage other than ZFS, a job without direct=1 measures the memory of the node.
func TestBufferedJobs(t *testing.T) {
	const buffered = "warning: spec.phases[1].measure.workload.fio.jobFile: job [j] goes through the page cache of the node"
	class := func(change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target = v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{Name: "fast", Size: v1alpha1.Size{Quantity: resource.MustParse("2Gi")}}}
			s.Variants, s.Matrix = nil, nil
			change(s)
		}
	}
	jobs := func(lines ...string) func(*effectSpec) {
		return func(s *effectSpec) { measuring(s, jobFile(lines...)) }
	}
	cached := func(s *effectSpec) {
		jobs("rw=randread")(s)
		s.Phases[1].Measure.Cache = v1alpha1.CacheWarm
	}
	anyCache := func(s *effectSpec) { // the default of the API server
		jobs("rw=randread")(s)
		s.Phases[1].Measure.Cache = v1alpha1.CacheAny
	}
	onZvol := func(s *effectSpec) {
		s.Target.ZFS.Dataset.Type, s.Target.ZFS.Dataset.FSType = "Volume", "ext4"
		jobs("rw=randread", "filename=data")(s)
	}
	foresee(t, map[string]foreseen{
		"reads":               {class(jobs("rw=randread")), buffered},
		"writes":              {class(jobs("rw=write")), buffered},
		"direct":              {class(jobs("rw=randread", "direct=1")), ""},
		"not buffered":        {class(jobs("rw=randread", "buffered=0")), ""},
		"about the cache":     {class(cached), ""},
		"about no cache":      {class(anyCache), buffered},
		"synced at its end":   {class(jobs("rw=write", "fsync_on_close=1")), buffered},
		"synced":              {class(jobs("rw=write", "fdatasync=1")), ""},
		"reads beside syncs":  {class(jobs("rw=randrw", "fdatasync=1")), buffered},
		"ext4 on a device":    {onZvol, buffered},
		"ZFS":                 {jobs("rw=randread", "filename=data"), ""},
		"said to be too deep": {class(jobs("rw=randread", "ioengine=libaio", "iodepth=8")), "warning: spec.phases[1].measure.workload.fio.jobFile: iodepth=8"},
	})
}
