package pools

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

// StateLeft is the state that the status shows for a disk that is no longer in the pool and whose label could not be cleared yet. ZFS has
// no state of that name.
const StateLeft = "LEFT"

// LeftDisk is a disk that has left the live pool. The status keeps naming it until it no longer has a label of the pool.
type LeftDisk struct {
	// Vdev is named after the whole disk. Its guid identifies the label of a cache device or spare.
	Vdev v1alpha1.VdevStatus
	// Why says why its label stays for now. Empty if the decision clears the label.
	Why string
}

// Gone returns the disks that the status names, or that were to join the pool, but that the live pool does not have under that guid or
// path.
func Gone(pool *v1alpha1.BenchmarkPool, live *LivePool) (gone []v1alpha1.VdevStatus) {
	known := map[string]bool{"": true}
	for _, leaf := range live.Status.Leaves() {
		known[leaf.GUID] = true
		for _, path := range LeafPaths(leaf) {
			known[path] = true
		}
	}
	named := slices.Clone(pool.Status.Vdevs)
	for _, path := range pool.Status.Joining {
		named = append(named, v1alpha1.VdevStatus{Name: string(path)})
	}
	for _, vdev := range named {
		path := objects.WholeDisk(vdev.Name)
		if !strings.HasPrefix(path, "/dev/") || known[path] || vdev.GUID != "" && known[vdev.GUID] {
			continue
		}
		known[path] = true
		gone = append(gone, v1alpha1.VdevStatus{Name: path, Class: vdev.Class, GUID: vdev.GUID, State: StateLeft})
	}
	return gone
}

// withLeft adds to a decision about our live pool what to do with the disks that have left it. ZFS leaves a label on such a disk, which
// would prevent every later pool from taking the disk. The label is cleared now, because once the pool is deleted, nothing shows any more
// that the disk was in it. The pool does not wait for these disks: the status remembers a disk whose label cannot be cleared yet.
func (s State) withLeft(decision Decision) Decision {
	clears := Action{Kind: ClearLeftLabels, GUID: s.Live.GUID}
	for _, vdev := range Gone(s.Pool, s.Live) {
		disk := s.Disks[vdev.Name]
		if s.within(disk) {
			continue
		}
		own, lost := s.leftLabel(vdev, disk)
		if lost != "" {
			decision.Lost = append(decision.Lost, fmt.Sprintf("disk %s has left pool %s, and %s", vdev.Name, s.Live.Name, lost))
		}
		if !own {
			continue
		}
		left := LeftDisk{Vdev: vdev, Why: s.obstacle(disk)}
		if left.Why == "" {
			clears.Disks, clears.Auxiliary = append(clears.Disks, disk), append(clears.Auxiliary, auxiliaryOf(vdev)...)
		}
		decision.Left = append(decision.Left, left)
	}
	if len(clears.Disks) > 0 {
		decision.Actions = append([]Action{clears}, decision.Actions...)
	}
	return decision
}

// within reports whether a disk is in the live pool, under any path.
func (s State) within(disk Disk) bool {
	return disk.Number != "" && slices.ContainsFunc(s.Live.Status.Leaves(), func(leaf zfs.VdevStatus) bool {
		return slices.ContainsFunc(LeafPaths(leaf), func(path string) bool { return s.Disks[path].Number == disk.Number })
	})
}

// leftLabel reports whether a disk that has left the pool has, or may have, a label of the pool that can be cleared, now or later. lost
// says why a label that the disk has, or may have, stays for good.
func (s State) leftLabel(vdev v1alpha1.VdevStatus, disk Disk) (own bool, lost string) {
	ours := func(label host.PoolLabel) bool {
		return label.Left() && OwnLabel(label, s.Live.GUID) || OwnAuxiliary(label, auxiliaryOf(vdev))
	}
	member := func(label host.PoolLabel) bool {
		return !ours(label) && strconv.FormatUint(label.GUID, 10) == s.Live.GUID
	}
	switch {
	case !s.Policy.Allows(s.Pool.Spec.Namespace, vdev.Name):
		return false, "is not granted, so the agent does not check whether it has a label of the pool"
	case disk.silent() || disk.Number != "" && len(disk.Pools) == 0 && errors.Is(disk.Refusal, host.Unreadable):
		return false, fmt.Sprintf("may have a label of the pool that cannot be cleared: %v", disk.Refusal)
	case disk.missing() && len(disk.Pools) == 0:
		return true, ""
	case slices.ContainsFunc(disk.Pools, member) && !errors.Is(disk.Refusal, host.InUse): // if in use, the pool has it by another path
		return false, "its label is not cleared, because it still says that the disk is in the pool: ZFS could not update it when the disk left"
	case !slices.ContainsFunc(disk.Pools, ours):
		return false, ""
	case slices.ContainsFunc(disk.Pools, func(label host.PoolLabel) bool { return !ours(label) }), !disk.AfterPool,
		slices.ContainsFunc(disk.Findings, func(f host.Finding) bool { return f.Reason.Contents() && f.Reason != host.PoolMember }):
		return false, "has other contents now: its labels are not cleared"
	}
	return true, ""
}

// obstacle returns why the label of a disk that has left the pool is not cleared now, or "" if it can be cleared.
func (s State) obstacle(disk Disk) string {
	holder := s.holder(disk.Path)
	switch {
	case s.Live.ReadOnly():
		return "the pool is imported read-only"
	case olderSpec(s) != nil:
		return "the spec is older than the pool"
	case holder != "":
		return "BenchmarkPool " + holder + " has it too"
	case disk.missing(), !OnlyLabels(disk.Disk):
		return fmt.Sprint(disk.Refusal)
	}
	return ""
}

// holder returns the name of another BenchmarkPool that has a disk or may have it, or "" if there is none. A BenchmarkPool that only
// requests the disk does not count: it waits until our label is cleared.
func (s State) holder(path string) string {
	for i := range s.Rivals {
		rival := &s.Rivals[i]
		claimed := s.claims(rival, path)
		if claimed != "" && (holdsDisk(rival, claimed) || slices.Contains(rival.Status.Joining, v1alpha1.DevicePath(claimed))) {
			return rival.Name
		}
	}
	return ""
}

// auxiliaryOf returns the guid of a cache device or spare, or nil for other vdevs. The label of such a disk names no pool, only this guid.
func auxiliaryOf(vdev v1alpha1.VdevStatus) []string {
	if vdev.GUID != "" && (vdev.Class == "cache" || vdev.Class == "spare") {
		return []string{vdev.GUID}
	}
	return nil
}
