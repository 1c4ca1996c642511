package pools

import (
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// also adds a finding to a disk with labels.
func also(disk Disk, reason host.Reason) Disk {
	disk.Findings = append(disk.Findings, host.Finding{Reason: reason, Detail: string(reason)})
	disk.Refusal = &host.RefusedError{Path: disk.Path, Findings: disk.Findings}
	return disk
}

func unseen(path string, reason host.Reason) Disk {
	return Disk{Disk: host.Disk{Path: path}, Refusal: &host.RefusedError{Path: path, Findings: []host.Finding{{Reason: reason, Detail: string(reason)}}}}
}

// auxiliary is a disk with the label of a cache device or spare.
func auxiliary(disk Disk, state host.PoolState, guid uint64) Disk {
	disk = labelled(disk, 0, state)
	disk.Pools[0] = host.PoolLabel{State: state, VdevGUID: guid}
	return disk
}

// TestDisksThatLeft: C, a data disk of guid 501, and D, a cache device of guid 502, are in the status but no longer in the pool.
func TestDisksThatLeft(t *testing.T) {
	const alias = "/dev/disk/by-id/alias"
	for name, test := range map[string]struct {
		change func(*State)
		// clears are the disks whose labels are cleared, left those that are remembered, and lost is what is reported about others.
		clears, left, lost string
	}{
		"both have labels": {func(*State) {}, diskC + " " + diskD, diskC + " " + diskD, ""},
		"none has":         {func(s *State) { s.Disks[diskC], s.Disks[diskD] = freeDisk(diskC), freeDisk(diskD) }, "", "", ""},
		"the pool has one again": {func(s *State) {
			s.Live.Status.Vdevs = append(s.Live.Status.Vdevs, leaf(diskC))
		}, diskD, diskD, ""},
		"the pool has one by another path": {func(s *State) {
			s.Live.Status.Vdevs, s.Disks[alias] = append(s.Live.Status.Vdevs, leaf(alias)), s.Disks[diskC]
		}, diskD, diskD, ""},
		"the pool has one by another path that is unknown": {func(s *State) {
			s.Live.Status.Vdevs = append(s.Live.Status.Vdevs, zfs.VdevStatus{Name: "sdc1", GUID: "501", State: zfs.StateOnline})
		}, diskD, diskD, ""},
		"a disk of the pool by another path, before guids": {func(s *State) {
			s.Disks[diskC] = also(labelled(freeDisk(diskC), 77, host.PoolActive), host.InUse)
		}, diskD, diskD, ""},
		"one was only recorded": {func(s *State) {
			s.Pool.Status.Vdevs = s.Pool.Status.Vdevs[:0]
			s.Pool.Status.Joining = []v1alpha1.DevicePath{diskC}
		}, diskC, diskC, ""},
		"a recorded disk with the label of an unknown cache device": {func(s *State) {
			s.Pool.Status.Vdevs = s.Pool.Status.Vdevs[:0]
			s.Pool.Status.Joining = []v1alpha1.DevicePath{diskD}
		}, "", "", ""},
		"of another pool": {func(s *State) { s.Disks[diskC] = takenOut(freeDisk(diskC), 78) }, diskD, diskD, ""},
		"another cache device": {func(s *State) { s.Disks[diskD] = auxiliary(freeDisk(diskD), host.PoolCache, 503) }, diskC, diskC,
			""},
		"a data disk whose guid a cache device has now": {func(s *State) {
			s.Disks[diskC] = auxiliary(freeDisk(diskC), host.PoolCache, 501)
		}, diskD, diskD, ""},
		"with another pool's label": {func(s *State) {
			disk := s.Disks[diskC]
			disk.Pools = append(disk.Pools, host.PoolLabel{GUID: 78, State: host.PoolDestroyed, Txg: 4})
			s.Disks[diskC] = disk
		}, diskD, diskD, "other contents"},
		"with a file system":   {func(s *State) { s.Disks[diskC] = also(s.Disks[diskC], host.Signature) }, diskD, diskD, "other contents"},
		"with unknown data":    {func(s *State) { s.Disks[diskC] = also(s.Disks[diskC], host.UnknownData) }, diskD, diskD, "other contents"},
		"with another table":   {func(s *State) { disk := s.Disks[diskC]; disk.AfterPool = false; s.Disks[diskC] = disk }, diskD, diskD, "other contents"},
		"as if it were in":     {func(s *State) { s.Disks[diskC] = labelled(freeDisk(diskC), 77, host.PoolActive) }, diskD, diskD, "still says that the disk is in the pool"},
		"silent":               {func(s *State) { s.Disks[diskC] = unseen(diskC, host.Silent) }, diskD, diskD, "cannot be cleared"},
		"not readable":         {func(s *State) { s.Disks[diskC] = also(freeDisk(diskC), host.Unreadable) }, diskD, diskD, "cannot be cleared"},
		"not granted":          {func(s *State) { s.Policy = DevicePolicy{{Pattern: diskD}} }, diskD, diskD, "not granted"},
		"granted to others":    {func(s *State) { s.Policy = DevicePolicy{{Pattern: diskD}, {Namespace: "lab", Pattern: diskC}} }, diskD, diskD, "not granted"},
		"not there":            {func(s *State) { s.Disks[diskC] = unseen(diskC, host.Missing) }, diskD, diskC + " " + diskD, ""},
		"in use":               {func(s *State) { s.Disks[diskC] = also(s.Disks[diskC], host.InUse) }, diskD, diskC + " " + diskD, ""},
		"users not found out":  {func(s *State) { s.Disks[diskC] = also(s.Disks[diskC], host.Unreadable) }, diskD, diskC + " " + diskD, ""},
		"an older spec":        {func(s *State) { s.Live.change(PropertySpec, "9", "local") }, "", diskC + " " + diskD, ""},
		"cleared in part only": {func(s *State) { s.Disks[diskC] = also(s.Disks[diskC], host.PoolRemains) }, diskC + " " + diskD, diskC + " " + diskD, ""},
		"a rival asks for one": {func(s *State) {
			s.Rivals = []v1alpha1.BenchmarkPool{rivalFor(func(p *v1alpha1.BenchmarkPool) { p.Spec.Vdevs[0] = mirrorOf(diskC) })}
		}, diskC + " " + diskD, diskC + " " + diskD, ""},
		"a rival has one, by another path": {func(s *State) {
			s.Disks[alias] = s.Disks[diskC]
			s.Rivals = []v1alpha1.BenchmarkPool{rivalFor(func(p *v1alpha1.BenchmarkPool) {
				p.Status.Vdevs = []v1alpha1.VdevStatus{{Name: alias + "-part1"}}
			})}
		}, diskD, diskC + " " + diskD, ""},
		"a rival may have one": {func(s *State) {
			s.Rivals = []v1alpha1.BenchmarkPool{rivalFor(func(p *v1alpha1.BenchmarkPool) { p.Status.Joining = []v1alpha1.DevicePath{diskC} })}
		}, diskD, diskC + " " + diskD, ""},
		"unhealthy":   {func(s *State) { s.Live.Status.Vdevs[0].Children[1].State = zfs.StateFaulted }, diskC + " " + diskD, diskC + " " + diskD, ""},
		"not our own": {func(s *State) { s.Live.change(naming.PropertyUID, "uid-0", "local"); s.Pool.Status.GUID = "" }, "", "", ""},
	} {
		for _, deleted := range []bool{false, true} {
			state := liveState()
			state.Pool.Status.Vdevs = []v1alpha1.VdevStatus{{Name: "mirror-1", State: "ONLINE"}, {Name: diskA + "-part1", Parent: "mirror-0"},
				{Name: diskC + "-part1", Parent: "mirror-1", Class: "data", GUID: "501"}, {Name: diskD + "-part1", Class: "cache", GUID: "502"}}
			state.Disks[diskC] = takenOut(freeDisk(diskC), 77)
			state.Disks[diskD] = auxiliary(freeDisk(diskD), host.PoolCache, 502)
			test.change(&state)
			if deleted {
				state = deletedState(state)
			}
			decision := Plan(state)
			var clears, left []string
			for _, action := range decision.Actions {
				for _, disk := range action.Disks {
					clears = append(clears, disk.Path)
				}
				if action.Kind != ClearLeftLabels && len(action.Disks) > 0 || action.Kind == ClearLeftLabels && action.GUID != "77" {
					t.Errorf("%s: %+v", name, action)
				}
			}
			for _, disk := range decision.Left {
				left = append(left, disk.Vdev.Name)
				if waits := !slices.Contains(clears, disk.Vdev.Name); waits != (disk.Why != "") || disk.Vdev.State != StateLeft ||
					!slices.Contains(objects.ClaimedDevices(state.Pool), disk.Vdev.Name) {
					t.Errorf("%s: %+v", name, disk)
				}
			}
			lost := strings.Join(decision.Lost, "\n")
			if strings.Join(clears, " ") != test.clears || strings.Join(left, " ") != test.left || !strings.Contains(lost, test.lost) ||
				(lost != "") != (test.lost != "") {
				t.Errorf("%s, deleted %v: cleared are %q, left %q, lost %q", name, deleted, clears, left, lost)
			}
		}
	}
}

// TestRememberedDisksAtTheEnd: the status still names a disk that had left the pool when the pool was destroyed.
func TestRememberedDisksAtTheEnd(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*State)
		want, reason string
	}{
		"its label is left":    {func(*State) {}, "ClearLabels", v1alpha1.ReasonPoolChanging},
		"users not found out":  {func(s *State) { s.Disks[diskC] = also(s.Disks[diskC], host.Unreadable) }, "", v1alpha1.ReasonPoolLost},
		"not there":            {func(s *State) { s.Disks[diskC] = unseen(diskC, host.Missing) }, "RemoveFinalizer", v1alpha1.ReasonPoolChanging},
		"in use":               {func(s *State) { s.Disks[diskC] = also(s.Disks[diskC], host.InUse) }, "RemoveFinalizer", v1alpha1.ReasonPoolChanging},
		"cleared":              {func(s *State) { s.Disks[diskC] = freeDisk(diskC) }, "RemoveFinalizer", v1alpha1.ReasonPoolChanging},
		"another pool's label": {func(s *State) { s.Disks[diskC] = takenOut(freeDisk(diskC), 78) }, "RemoveFinalizer", v1alpha1.ReasonPoolChanging},
		"a rival has it": {func(s *State) {
			s.Rivals = []v1alpha1.BenchmarkPool{rivalFor(func(p *v1alpha1.BenchmarkPool) { p.Status.Vdevs = []v1alpha1.VdevStatus{{Name: diskC}} })}
		}, "RemoveFinalizer", v1alpha1.ReasonPoolChanging},
	} {
		state := absentState()
		state.Pool.Status.GUID = "77"
		state.Pool.Status.Vdevs = []v1alpha1.VdevStatus{{Name: diskC, Class: "cache", GUID: "502", State: StateLeft}}
		state.Disks[diskC] = auxiliary(freeDisk(diskC), host.PoolCache, 502)
		test.change(&state)
		t.Run(name, func(t *testing.T) { expectPool(t, Plan(deletedState(state)), test.want, test.reason, "") })
	}
}
