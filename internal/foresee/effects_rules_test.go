package foresee

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestPrefetchingIsForReads: without a phase that reads, a comparison of prefetching shows nothing.
func TestPrefetchingIsForReads(t *testing.T) {
	type values = v1alpha1.MatrixValues
	archived := *ofRedo.DeepCopy()
	archived.Redo.Archive, archived.Redo.Duration = &v1alpha1.RedoArchive{}, runstest.Lasting(time.Minute)
	parameter := func(all ...v1alpha1.Workload) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Matrix = v1alpha1.Matrix{"moduleParameters.zfs_prefetch_disable": {"0", "1"}}
			measuring(s, all...)
		}
	}
	const says = ": it has almost no effect, because only reads are prefetched, and no phase measures reads"
	foresee(t, map[string]foreseen{
		"redo":          {comparing("prefetch", values{"all", "none"}, ofRedo), "warning: spec.matrix[dataset.prefetch]" + says},
		"writes of fio": {comparing("prefetch", values{"all", "none"}, jobFile("rw=write")), "warning: spec.matrix[dataset.prefetch]" + says},
		"a parameter":   {parameter(ofRedo), "warning: spec.matrix[moduleParameters.zfs_prefetch_disable]" + says},
		"an archive":    {comparing("prefetch", values{"all", "none"}, archived), ""},
		"metadata":      {comparing("prefetch", values{"all", "none"}, ofSmall), ""},
		"unknown jobs":  {comparing("prefetch", values{"all", "none"}, elsewhere), ""},
		"reads too":     {parameter(ofRedo, ofTables), ""},
		// Appends change parts of records, which ZFS reads from disk if they are not in memory.
		"primarycache": {comparing("primarycache", values{"all", "metadata"}, ofRedo), ""},
	})
}

// TestPaddedBlocks: small blocks of a volume take far more space on raidz than people expect.
func TestPaddedBlocks(t *testing.T) {
	volume := func(kind v1alpha1.VdevType, disks int, block string) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Dataset = &v1alpha1.DatasetTemplate{Type: "Volume", Size: &v1alpha1.Size{Quantity: resource.MustParse("20Gi")},
				Properties: v1alpha1.Properties{"volblocksize": v1alpha1.PropertyValue(block)}}
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{{Type: kind}}
			for i := range disks {
				s.Target.ZFS.Pool.Vdevs[0].Devices = append(s.Target.ZFS.Pool.Vdevs[0].Devices, v1alpha1.DevicePath(fmt.Sprintf("/dev/disk/by-id/%d", i)))
			}
		}
	}
	changed := func(change, more func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) { change(s); more(s) }
	}
	const at = "warning: spec.target.zfs.dataset.properties.volblocksize: on "
	foresee(t, map[string]foreseen{
		"4k on raidz2": {volume("raidz2", 6, "4k"), at + "raidz2 of 6 with sectors of 4k, parity and padding make a block 3 times as large, and " +
			"a large block only 1.5 times: write volblocksize: 16k or larger"},
		"8k on raidz2":      {volume("raidz2", 6, "8k"), at + "raidz2 of 6 with sectors of 4k, parity and padding make a block 3 times"},
		"16k on raidz2":     {volume("raidz2", 6, "16k"), ""},
		"4k on raidz1 of 3": {volume("raidz1", 3, "4k"), ""},
		"4k on a mirror":    {volume("mirror", 2, "4k"), ""},
		"unknown size":      {volume("raidz2", 6, "odd"), "spec.target.zfs.dataset.properties.volblocksize: is not one of its values"},
		"sectors of 512":    {changed(volume("raidz2", 6, "4k"), func(s *effectSpec) { s.Target.ZFS.Pool.Ashift = 9 }), ""},
		"what is compared":  {changed(volume("raidz2", 6, "4k"), func(s *effectSpec) { s.Matrix = v1alpha1.Matrix{"dataset.volblocksize": {"4k", "16k"}} }), ""},
		"the same in a matrix": {changed(volume("raidz2", 6, "4k"), func(s *effectSpec) { s.Matrix = v1alpha1.Matrix{"phases.fill.to": {"50%", "60%"}} }),
			at + "raidz2 of 6"},
	})
}
