package foresee

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
)

// TestOverwrites: every device is listed, whatever its use in the pool is and whenever it is added.
func TestOverwrites(t *testing.T) {
	pool := func(devices ...v1alpha1.DevicePath) v1alpha1.PoolTemplate {
		return v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: devices}}}
	}
	own := pool("/w")
	slot := &design.Slot{Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Pool: pool("/a", "/b"),
		Volumes: []v1alpha1.AdditionalVolume{{Name: "wal", Pool: &own}, {Name: "beside", PoolOf: "wal"}},
		PerNode: []v1alpha1.NodePool{{NodeName: "n", Pool: pool("/x")}}}}}
	slot.Target.ZFS.Pool.Log = []v1alpha1.AuxiliaryVdev{{Devices: []v1alpha1.DevicePath{"/l"}}}
	slot.Target.ZFS.Pool.Special = []v1alpha1.AuxiliaryVdev{{Devices: []v1alpha1.DevicePath{"/s"}}}
	slot.Target.ZFS.Pool.Cache, slot.Target.ZFS.Pool.Spare = []v1alpha1.DevicePath{"/c"}, []v1alpha1.DevicePath{"/p"}
	slot.Phases = []v1alpha1.Phase{
		{Name: "add", Volume: "beside", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
			AddVdev: &v1alpha1.AddVdevAction{Devices: []v1alpha1.DiskRef{"/n"}}}}},
		{Name: "swap", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
			ReplaceDevice: &v1alpha1.ReplaceDeviceAction{Device: "/a", With: "/r"}}}},
		{Name: "spare", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
			ReplaceDevice: &v1alpha1.ReplaceDeviceAction{Device: "/b", With: "/p"}}}},
		{Name: "busy", Measure: &v1alpha1.MeasurePhase{Operate: &v1alpha1.PoolAction{
			ReplaceDevice: &v1alpha1.ReplaceDeviceAction{Device: "/r", With: "/q"}}}},
	}
	want := []Overwritten{
		{"/a", "", "data", "vdevs"}, {"/b", "", "data", "vdevs"}, {"/c", "", "data", "cache"}, {"/l", "", "data", "log"},
		{"/p", "", "data", "spare"}, {"/s", "", "data", "special"}, {"/x", "n", "data", "vdevs"}, {"/w", "", "wal", "vdevs"},
		{"/n", "", "wal", "added in phase add"}, {"/r", "", "data", "added in phase swap"}, {"/q", "", "data", "added in phase busy"},
	}
	if diff := cmp.Diff(want, Overwrites(slot)); diff != "" {
		t.Error(diff)
	}
	if all := Overwrites(&design.Slot{Target: v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}}}); len(all) > 0 {
		t.Error(all)
	}
}
