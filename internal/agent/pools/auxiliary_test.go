package pools

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

// TestLabelsOfCacheAndSpare: the labels of cache devices and spares are cleared if their guids are recorded, and only after nothing else of
// the pool can be left.
func TestLabelsOfCacheAndSpare(t *testing.T) {
	marked := func(s *State, path string, state host.PoolState, vdev uint64) {
		disk := freeDisk(path)
		disk.Pools, disk.AfterPool = []host.PoolLabel{{State: state, VdevGUID: vdev}}, true
		s.Disks[path] = disk
	}
	ended := func(vdevs ...v1alpha1.VdevStatus) State {
		state := absentState()
		state.Pool.Spec.Cache, state.Pool.Spec.Spare = []v1alpha1.DevicePath{diskC}, []v1alpha1.DevicePath{diskD}
		state.Pool.Status.GUID, state.Pool.Status.Vdevs = "77", vdevs
		marked(&state, diskC, host.PoolCache, 501)
		marked(&state, diskD, host.PoolSpare, 502)
		return state
	}
	const diskE = "/dev/disk/by-id/e"
	cache, spare := v1alpha1.VdevStatus{Class: "cache", GUID: "501"}, v1alpha1.VdevStatus{Class: "spare", GUID: "502"}
	live := func(vdevs ...v1alpha1.VdevStatus) State {
		state := liveState()
		state.Live.Status.Vdevs = append(state.Live.Status.Vdevs, zfs.VdevStatus{Name: diskC, Class: "l2cache", GUID: "501"},
			zfs.VdevStatus{Name: "draid1-0-0", Class: "spare", GUID: "9"})
		state.Pool.Status.Vdevs = vdevs
		return state
	}
	clears := func(paths ...string) string {
		want := "ClearLabels"
		for _, path := range paths {
			want += " " + path
		}
		return want
	}
	for name, test := range map[string]struct {
		state  State
		change func(*State)
		want   string
	}{
		"both are left":       {ended(cache, spare), func(*State) {}, clears(diskC, diskD)},
		"one is not recorded": {ended(spare), func(*State) {}, clears(diskD)},
		"with a data disk": {ended(cache, spare), func(s *State) {
			s.Disks[diskA] = labelled(freeDisk(diskA), 77, host.PoolDestroyed)
		}, clears(diskA, diskC, diskD)},
		"a disk that an operation added": {ended(v1alpha1.VdevStatus{Name: diskE + "-part1"}), func(s *State) {
			s.Disks[diskE] = labelled(freeDisk(diskE), 77, host.PoolDestroyed)
		}, clears(diskE)},
		"an added disk still carries the pool": {ended(v1alpha1.VdevStatus{Name: diskE}), func(s *State) {
			s.Disks[diskE] = labelled(freeDisk(diskE), 77, host.PoolActive)
		}, ""},
		"an added disk carries another's": {ended(v1alpha1.VdevStatus{Name: diskE}), func(s *State) {
			s.Disks[diskE] = labelled(freeDisk(diskE), 78, host.PoolDestroyed)
		}, "RemoveFinalizer"},
		"an added disk is gone": {ended(v1alpha1.VdevStatus{Name: diskE}), func(*State) {}, "RemoveFinalizer"},
		"a data disk with something else since": {ended(spare), func(s *State) {
			disk := labelled(freeDisk(diskA), 77, host.PoolDestroyed)
			disk.Findings = []host.Finding{{Reason: host.PoolMember}, {Reason: host.HasHolders, Detail: "a1 is part of md0"}}
			s.Disks[diskA] = disk
		}, clears(diskD)},
		"a data disk whose labels were cleared in part": {ended(), func(s *State) {
			disk := labelled(freeDisk(diskA), 77, host.PoolDestroyed)
			disk.Findings = []host.Finding{{Reason: host.PoolRemains}}
			s.Disks[diskA] = disk
		}, clears(diskA)},
		"a data disk with another table since": {ended(), func(s *State) {
			disk := labelled(freeDisk(diskA), 77, host.PoolDestroyed)
			disk.AfterPool = false
			s.Disks[diskA] = disk
		}, "RemoveFinalizer"},
		"a spare with something else since": {ended(cache, spare), func(s *State) {
			disk := s.Disks[diskD]
			disk.Findings = []host.Finding{{Reason: host.ActivePool}, {Reason: host.Signature, Detail: "it has the signature of ext4"}}
			s.Disks[diskD] = disk
		}, clears(diskC)},
		"none of it was recorded, and not all is seen": {ended(), func(s *State) {
			s.Pool.Status.GUID = ""
			s.Disks[diskA] = labelled(freeDisk(diskA), 77, host.PoolActive)
		}, ""},
		"none of it was recorded, and none is there": {ended(), func(s *State) { s.Pool.Status.GUID = "" }, "RemoveFinalizer"},
		"none is recorded":                           {ended(), func(*State) {}, "RemoveFinalizer"},
		"the guid of another kind of vdev": {ended(v1alpha1.VdevStatus{Class: "data", GUID: "501"}), func(*State) {},
			"RemoveFinalizer"},
		"a data disk still carries the pool": {ended(cache), func(s *State) {
			s.Disks[diskA] = labelled(freeDisk(diskA), 77, host.PoolExported)
		}, ""},
		"a data disk is not seen": {ended(cache), func(s *State) {
			s.Disks[diskA] = Disk{Disk: host.Disk{Path: diskA},
				Refusal: &host.RefusedError{Findings: []host.Finding{{Reason: host.Missing}}}}
		}, ""},
		"recorded first":        {live(), func(*State) {}, ""},
		"recorded":              {live(cache), func(*State) {}, "DestroyPool"},
		"there is no place for": {live(), func(s *State) { said(s, "recording the guids of pool bench0 before it is destroyed") }, "DestroyPool"},
		"something else said":   {live(), func(s *State) { said(s, "pool bench0 is as asked") }, ""},
	} {
		test.change(&test.state)
		got := ""
		for _, action := range Plan(deletedState(test.state)).Actions {
			got = string(action.Kind)
			for _, disk := range action.Disks {
				got += " " + disk.Path
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// said sets the message of the previous turn.
func said(s *State, message string) {
	s.Pool.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: message}}
}
