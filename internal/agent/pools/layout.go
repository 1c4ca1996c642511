package pools

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/zfs"
)

// SameDisks reports whether the live pool has exactly the disks of the spec, under the same paths. If it has, no disk needs to be read.
func SameDisks(pool *v1alpha1.BenchmarkPool, live *LivePool) bool {
	wanted := objects.SpecDevices(pool)
	leaves := Disks(live.Status)
	for _, leaf := range leaves {
		if !slices.ContainsFunc(LeafPaths(leaf), func(path string) bool { return slices.Contains(wanted, path) }) {
			return false
		}
	}
	return len(leaves) == len(wanted)
}

// Disks returns the leaves that are disks, each once: the distributed spares of a draid are not disks, and an active hot spare is in the
// tree twice.
func Disks(status zfs.Status) []zfs.VdevStatus {
	var found []zfs.VdevStatus
	for _, leaf := range status.Leaves() {
		twice := slices.ContainsFunc(found, func(other zfs.VdevStatus) bool { return other.Name == leaf.Name })
		if !twice && !strings.HasPrefix(leaf.Name, "draid") {
			found = append(found, leaf)
		}
	}
	return found
}
