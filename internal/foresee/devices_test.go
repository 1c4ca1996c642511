package foresee

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
)

// TestDevices: a device has one use, and operations are followed in their order.
func TestDevices(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	type paths = []v1alpha1.DevicePath
	vdev := func(kind v1alpha1.VdevType, devices ...v1alpha1.DevicePath) v1alpha1.Vdev {
		return v1alpha1.Vdev{Type: kind, Devices: devices}
	}
	operate := func(s *spec, actions ...v1alpha1.PoolAction) {
		for _, action := range actions {
			name := v1alpha1.PhaseName("op" + string(rune('a'+len(s.Phases))))
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: name, Operate: &v1alpha1.OperatePhase{PoolAction: action}})
		}
	}
	add := func(one v1alpha1.Vdev) v1alpha1.PoolAction {
		added := &v1alpha1.AddVdevAction{Type: one.Type}
		for _, device := range one.Devices {
			added.Devices = append(added.Devices, v1alpha1.DiskRef(device))
		}
		return v1alpha1.PoolAction{AddVdev: added}
	}
	remove := func(device v1alpha1.DiskRef) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{RemoveVdev: &v1alpha1.RemoveVdevAction{Device: device}}
	}
	replace := func(device, with v1alpha1.DiskRef) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{ReplaceDevice: &v1alpha1.ReplaceDeviceAction{Device: device, With: with}}
	}
	offline := func(device v1alpha1.DiskRef) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{OfflineDevice: &v1alpha1.OfflineDeviceAction{Device: device, Duration: &v1alpha1.Duration{}}}
	}
	const a, b, c, d, e = "/dev/disk/by-id/a", "/dev/disk/by-id/b", "/dev/disk/by-id/c", "/dev/disk/by-id/d", "/dev/disk/by-id/e"
	named := func(s *spec) {
		s.Target.ZFS.Disks = map[string]v1alpha1.DevicePath{"own": a, "spare": b}
	}
	foresee(t, map[string]foreseen{
		"one use each": {func(s *spec) {
			s.Target.ZFS.Pool.Cache = paths{b}
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Pool: &v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{vdev("stripe", c)}}}}
		}, ""},
		"twice in a pool": {func(s *spec) { s.Target.ZFS.Pool.Cache, s.Target.ZFS.Pool.Spare = paths{b}, paths{a} },
			"spec.target.zfs.pool: /dev/disk/by-id/a is used twice, in vdevs and spare"},
		"twice in a pool, beside another": {func(s *spec) {
			s.Target.ZFS.Pool.Log, s.Target.ZFS.Pool.Cache = []v1alpha1.AuxiliaryVdev{{Devices: paths{b}}}, paths{b, c}
		}, "spec.target.zfs.pool: /dev/disk/by-id/b is used twice, in log and cache"},
		"in two pools": {func(s *spec) {
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Pool: &v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{vdev("stripe", a)}}}}
		}, "spec.target.zfs.volumes[0].pool: /dev/disk/by-id/a is also in vdevs of the pool of volume data"},
		"in two pools of a node": {func(s *spec) {
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Pool: &v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{vdev("stripe", b)}}}}
			s.Target.ZFS.PerNode = []v1alpha1.NodePool{{NodeName: "n", Pool: v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{vdev("stripe", b)}}}}
		}, "spec.target.zfs.volumes[0].pool: /dev/disk/by-id/b is also in"},
		"mixed redundancy": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("mirror", a, b), vdev("stripe", c)}
		}, "spec.target.zfs.pool: a mirror of 2 and a stripe of 1 devices are in one pool"},
		"special without redundancy": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("mirror", a, b)}
			s.Target.ZFS.Pool.Special = []v1alpha1.AuxiliaryVdev{{Devices: paths{c}}}
		}, "spec.target.zfs.pool: a stripe of 1 as special vdev survives the loss of another number of disks than the data vdevs"},
		"special without redundancy, on one node": {func(s *spec) {
			pool := v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{vdev("mirror", a, b)}, Special: []v1alpha1.AuxiliaryVdev{{Devices: paths{c}}}}
			s.Target.ZFS.PerNode = []v1alpha1.NodePool{{NodeName: "n", Pool: pool}}
		}, "spec.target.zfs.perNode[0].pool: a stripe of 1 as special vdev"},
		"a wider raidz, created": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("raidz1", a, b), vdev("raidz1", c, d, e)}
		}, ""},
		"a wider raidz, added": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("raidz1", a, b)}
			operate(s, add(vdev("raidz1", c, d, e)))
		}, "spec.phases[2]: OpenZFS before 2.4 adds no raidz1 of 3 to a pool with a raidz1 of 2 devices: add a raidz1 of 2"},
		"a mirror added to a raidz": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("raidz1", a, b, c)}
			operate(s, add(vdev("mirror", d, e)))
		}, ""},
		"log without redundancy": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("mirror", a, b)}
			s.Target.ZFS.Pool.Log = []v1alpha1.AuxiliaryVdev{{Devices: paths{c}}}
		}, ""},
		"a mirror beside a raidz of its redundancy": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("mirror", a, b), vdev("raidz1", c, d, e)}
		}, ""},
		"a mirror beside a raidz of more": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("mirror", a, b), vdev("raidz2", c, d, e)}
		}, "spec.target.zfs.pool: a mirror of 2 and a raidz2 of 3 devices"},
		"on the pool of another volume": {func(s *spec) {
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: "data"}}
			s.Phases[0].Fill = &v1alpha1.FillPhase{Size: &v1alpha1.Amount{Quantity: resource.MustParse("1Gi")}}
			operate(s, add(vdev("stripe", b)), remove(b))
			s.Phases[2].Volume = "log"
		}, ""},
		"on the pool of a volume that a phase makes": {func(s *spec) {
			operate(s, v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", As: "made"}}, add(vdev("stripe", b)), remove(c))
			s.Phases[3].Volume, s.Phases[4].Volume = "made", "made"
		}, "spec.phases[4]: /dev/disk/by-id/c is not in this pool by then: name one of /dev/disk/by-id/a, /dev/disk/by-id/b"},
		"added, then removed": {func(s *spec) { operate(s, add(vdev("stripe", b)), remove(b)) }, ""},
		"offline, of a mirror": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("mirror", a, b)}
			operate(s, offline(b), offline(a))
		}, ""},
		"offline, of a raidz": {func(s *spec) { s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("raidz1", a, b)}; operate(s, offline(b)) }, ""},
		"offline, of a mirrored log": {func(s *spec) {
			s.Target.ZFS.Pool.Log = []v1alpha1.AuxiliaryVdev{{Type: "mirror", Devices: paths{b, c}}}
			operate(s, offline(b))
		}, ""},
		"offline, of a stripe": {func(s *spec) { operate(s, offline(a)) }, "spec.phases[2]: /dev/disk/by-id/a is not in a mirror, raidz or draid"},
		"offline, of two disks": {func(s *spec) { s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("", a, b)}; operate(s, offline(a)) },
			"spec.phases[2]: /dev/disk/by-id/a is not in a mirror"},
		"offline, a cache":         {func(s *spec) { s.Target.ZFS.Pool.Cache = paths{b}; operate(s, offline(b)) }, "spec.phases[2]: /dev/disk/by-id/b is not in a mirror"},
		"offline, of another pool": {func(s *spec) { operate(s, offline(c)) }, "spec.phases[2]: /dev/disk/by-id/c is not in this pool by then"},
		"offline, a new one": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("mirror", a, b)}
			operate(s, replace(a, c), offline(c), offline(a))
		}, "spec.phases[4]: /dev/disk/by-id/a is not in this pool by then"},
		"by their names": {func(s *spec) { named(s); operate(s, replace("own", "spare"), replace("spare", "own")) }, ""},
		"a name that is a member": {func(s *spec) { named(s); operate(s, add(vdev("", "own"))) },
			"spec.phases[2]: /dev/disk/by-id/a is in vdevs of the pool of volume data by then: name a free device"},
		"a name used twice": {func(s *spec) { named(s); operate(s, add(vdev("", "spare")), replace("own", "spare")) },
			"spec.phases[3]: /dev/disk/by-id/b is in vdevs"},
		"removed before added": {func(s *spec) { operate(s, remove(b), add(vdev("stripe", b))) }, "spec.phases[2]: /dev/disk/by-id/b is not in this pool by then"},
		"added twice":          {func(s *spec) { operate(s, add(vdev("stripe", b)), add(vdev("", b))) }, "spec.phases[3]: /dev/disk/by-id/b is in vdevs of the pool"},
		"added without redundancy": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("mirror", a, b)}
			operate(s, add(vdev("stripe", c)))
		}, "spec.phases[2]: a mirror of 2 and a stripe of 1"},
		"a raidz expanded": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("raidz1", a, b)}
			operate(s, add(vdev("", c)))
		}, "spec.phases[2]: raidz expansion is not supported, and a pool of raidz1 takes no single disk: add a raidz1 of 2 free devices"},
		"a raidz added": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("raidz1", a, b)}
			operate(s, add(vdev("raidz1", c, "/dev/disk/by-id/d")))
		}, ""},
		"the only one removed": {func(s *spec) { operate(s, remove(a)) }, "spec.phases[2]: it is the only data vdev of the pool"},
		"a raidz removed": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("raidz1", a, b)}
			operate(s, remove(a))
		}, "spec.phases[2]: ZFS removes no data vdev from a pool of raidz1"},
		"one of a stripe removed": {func(s *spec) {
			s.Target.ZFS.Pool.Vdevs = []v1alpha1.Vdev{vdev("stripe", a, b)}
			operate(s, remove(b), add(vdev("stripe", b)))
		}, ""},
		"a log removed":       {func(s *spec) { s.Target.ZFS.Pool.Cache = paths{b}; operate(s, remove(b), add(vdev("stripe", b))) }, ""},
		"replaced and back":   {func(s *spec) { operate(s, replace(a, b), replace(b, a)) }, ""},
		"replaced by itself":  {func(s *spec) { s.Target.ZFS.Pool.Cache = paths{b}; operate(s, replace(a, b)) }, "spec.phases[2]: /dev/disk/by-id/b is in cache"},
		"replaced by a spare": {func(s *spec) { s.Target.ZFS.Pool.Spare = paths{b}; operate(s, replace(a, b)) }, "spec.phases[2]: /dev/disk/by-id/b is in spare"},
		"replaced, not there": {func(s *spec) { operate(s, replace(c, b)) }, "spec.phases[2]: /dev/disk/by-id/c is not in this pool by then: name one of /dev/disk/by-id/a"},
		"of the variant that has them": {func(s *spec) {
			s.Variants = []v1alpha1.Variant{{Name: "x"}, {Name: "y", Pool: &v1alpha1.PoolOverride{Vdevs: []v1alpha1.Vdev{vdev("stripe", b)}}}}
			operate(s, remove(c))
			s.Phases[2].OnlyFor = []v1alpha1.VariantName{"y"}
		}, "spec.phases[2]: name one of /dev/disk/by-id/b"},
	})
}

// TestDistributedSpares: an operation cannot name a distributed spare of a draid.
func TestDistributedSpares(t *testing.T) {
	for with, says := range map[v1alpha1.DiskRef]string{
		"draid2-0-0":        "draid2-0-0 is a distributed spare, and operations name only disks: write a free disk of zfs.disks",
		"/dev/disk/by-id/e": "",
	} {
		slot := design.Slot{Variant: "v", Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Pool: v1alpha1.PoolTemplate{
			Vdevs: []v1alpha1.Vdev{{Type: "draid2", Devices: []v1alpha1.DevicePath{"/a", "/b", "/c", "/d"}}}}}},
			Phases: []v1alpha1.Phase{{Name: "rebuild", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
				ReplaceDevice: &v1alpha1.ReplaceDeviceAction{Device: "/a", With: with}}}}}}
		err := checkDevices(&v1alpha1.StorageBenchmarkSpec{}, &slot)
		if (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: want %q, got %v", with, says, err)
		}
	}
}
