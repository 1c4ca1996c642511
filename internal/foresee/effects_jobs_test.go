package foresee

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestEffectsOfPlaces: jobs of fio that measure a cache or an empty file, where a newcomer expects the disks.
func TestEffectsOfPlaces(t *testing.T) {
	const field = "warning: spec.phases[1].measure.workload.fio.jobFile: "
	jobs := func(lines ...string) func(*effectSpec) {
		return func(s *effectSpec) { measuring(s, jobFile(lines...)) }
	}
	onDevice := func(text string) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Dataset.Type = "Volume"
			measuring(s, v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[j]\n" + text}})
		}
	}
	small := func(change func(*effectSpec)) func(*effectSpec) {
		return having(change, v1alpha1.Properties{"recordsize": "8k"})
	}
	foresee(t, map[string]foreseen{
		"all read the same":      {jobs("rw=read", "numjobs=8", "filename=data"), field + "all 8 workers of job [j] read the same bytes"},
		"each its own part":      {jobs("rw=read", "numjobs=8", "filename=data", "size=1m", "offset_increment=1m"), ""},
		"each its own file":      {jobs("rw=read", "numjobs=8"), ""},
		"one worker":             {jobs("rw=read", "filename=data"), ""},
		"at random":              {jobs("rw=randread", "numjobs=8", "filename=data"), ""},
		"all read the device":    {onDevice("rw=read\nnumjobs=2\nsize=1m"), field + "all 2 workers"},
		"into an empty file":     {jobs("rw=randwrite", "bs=8k"), field + "job [j] writes into a file that is empty at first"},
		"into a file":            {jobs("rw=randwrite", "bs=8k", "overwrite=1"), ""},
		"into the fill":          {jobs("rw=randwrite", "bs=8k", "filename=data"), ""},
		"whole records":          {small(jobs("rw=randwrite", "bs=8k")), ""},
		"in order":               {jobs("rw=write", "bs=8k"), ""},
		"reads make the file":    {jobs("rw=randrw", "bs=8k"), ""},
		"reads the whole device": {onDevice("rw=randread"), field + "job [j] works on the whole device"},
		"writes parts of blocks": {onDevice("rw=randwrite\nbs=4k"), field + "job [j] works on the whole device"},
		"reads the fill":         {onDevice("rw=randread\nfilename=data"), ""},
		"reads a part":           {onDevice("rw=randread\nsize=1m"), ""},
		"fills the device":       {onDevice("rw=write"), ""},
	})
}
