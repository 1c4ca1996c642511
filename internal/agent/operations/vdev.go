package operations

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

// isDisk reports whether a leaf of the pool is the disk at a path: it has the same path or the same device number.
func (s State) isDisk(leaf zfs.VdevStatus, path string) bool {
	number := s.Disks[path].Number
	return slices.ContainsFunc(pools.LeafPaths(leaf), func(other string) bool {
		return other == path || number != "" && s.Disks[other].Number == number
	})
}

// leaf returns a disk of the pool and its top-level vdev.
func (s State) leaf(path string) (leaf, top zfs.VdevStatus, found bool) {
	for _, top := range s.Live.Status.Vdevs {
		for _, leaf := range pools.Disks(zfs.Status{Vdevs: []zfs.VdevStatus{top}}) {
			if s.isDisk(leaf, path) {
				return leaf, top, true
			}
		}
	}
	return zfs.VdevStatus{}, zfs.VdevStatus{}, false
}

// take applies the same rules to disks as a BenchmarkPool does: allowlist, claims of other pools, contents.
func (s State) take(paths []string) ([]pools.Disk, *obstacle) {
	pool := pools.State{Pool: s.Pool, Policy: s.Policy, Disks: s.Disks, Rivals: s.Rivals}
	taken, refused := pool.Take(paths)
	if refused != nil {
		return nil, refuses(refused.Reason, "%s", refused.Message)
	}
	return taken, nil
}

// OperationDevices returns the disks that an action names. Disks to be added come last.
func OperationDevices(action v1alpha1.PoolAction) (paths []string) {
	for _, disk := range operate.Disks(&action) {
		paths = append(paths, string(*disk))
	}
	return paths
}

// taking completes a stage whose command adds disks to the pool. It returns a failure if the pool may not have the disks.
func (s State) taking(devices []string, stage operationStage) operationStage {
	taken, refused := s.take(devices)
	if refused != nil {
		return failedStage(refused.reason, "%s", refused.message)
	}
	stage.disks = taken
	return stage
}
