package foresee

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestQueuesBelowLeast: a maximum below the minimum of its kind has no effect. The default minimum of synchronous requests is 10.
func TestQueuesBelowLeast(t *testing.T) {
	with := func(given v1alpha1.ModuleParameters) func(*effectSpec) {
		return func(s *effectSpec) { s.Target.ZFS.ModuleParameters = given }
	}
	const reads, writes = "zfs_vdev_sync_read_max_active", "zfs_vdev_async_write_max_active"
	foresee(t, map[string]foreseen{
		"below the default": {with(v1alpha1.ModuleParameters{reads: "4"}), "warning: spec.target.zfs.moduleParameters." + reads +
			": it acts like 10, because zfs_vdev_sync_read_min_active is 10 by default, and ZFS fills the minimum first: write zfs_vdev_sync_read_min_active: \"4\" too"},
		"below one that is set": {with(v1alpha1.ModuleParameters{writes: "4", "zfs_vdev_async_write_min_active": "8"}),
			"warning: spec.target.zfs.moduleParameters." + writes + ": it acts like 8, because zfs_vdev_async_write_min_active is 8, and"},
		"both":                {with(v1alpha1.ModuleParameters{reads: "4", "zfs_vdev_sync_read_min_active": "4"}), ""},
		"at the default":      {with(v1alpha1.ModuleParameters{reads: "10", writes: "2"}), ""},
		"of all kinds":        {with(v1alpha1.ModuleParameters{"zfs_vdev_max_active": "4"}), ""},
		"a minimum by itself": {with(v1alpha1.ModuleParameters{"zfs_vdev_sync_read_min_active": "12"}), ""},
		"a value of a variant": {func(s *effectSpec) {
			s.Variants = []v1alpha1.Variant{{Name: "deep"}, {Name: "shallow", ModuleParameters: v1alpha1.ModuleParameters{reads: "4"}}}
		}, "warning: spec.variants[1].moduleParameters." + reads + ": it acts like 10"},
		"another value of a variant": {func(s *effectSpec) {
			with(v1alpha1.ModuleParameters{reads: "16"})(s)
			s.Variants = []v1alpha1.Variant{{Name: "deep"}, {Name: "shallow", ModuleParameters: v1alpha1.ModuleParameters{reads: "4"}}}
		}, "warning: spec.variants[1].moduleParameters." + reads + ": it acts like 10"},
		"a value of the matrix": {func(s *effectSpec) { s.Matrix = v1alpha1.Matrix{"moduleParameters." + reads: {"16", "4"}} },
			"warning: spec.matrix[moduleParameters." + reads + "]: it acts like 10"},
	})
}
