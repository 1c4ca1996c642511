package pools

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// SpecLayout is the layout of a template.
func SpecLayout(template v1alpha1.PoolTemplate) zfs.Layout {
	var layout zfs.Layout
	for _, vdev := range template.Vdevs {
		made := zfs.Vdev{Type: vdevType(vdev.Type), Devices: Texts(vdev.Devices)}
		if vdev.DraidDataDevices != nil {
			made.DraidData = int(*vdev.DraidDataDevices)
		}
		if vdev.DraidSpares != nil {
			made.DraidSpares = int(*vdev.DraidSpares)
		}
		layout.Data = append(layout.Data, made)
	}
	for _, vdev := range template.Log {
		layout.Log = append(layout.Log, zfs.Vdev{Type: vdevType(vdev.Type), Devices: Texts(vdev.Devices)})
	}
	for _, vdev := range template.Special {
		layout.Special = append(layout.Special, zfs.Vdev{Type: vdevType(vdev.Type), Devices: Texts(vdev.Devices)})
	}
	layout.Cache, layout.Spare = Texts(template.Cache), Texts(template.Spare)
	return layout
}

func vdevType(asked v1alpha1.VdevType) zfs.VdevType {
	if asked == "" {
		return zfs.Stripe
	}
	return zfs.VdevType(asked)
}

// Texts are paths as plain text.
func Texts(paths []v1alpha1.DevicePath) []string {
	var all []string
	for _, path := range paths {
		all = append(all, string(path))
	}
	return all
}

// SameWords says whether the live pool has exactly the disks of the spec, under the same paths. Then no disk needs to be read.
func SameWords(pool *v1alpha1.BenchmarkPool, live *LivePool) bool {
	wanted := SpecDevices(pool)
	leaves := Disks(live.Status)
	for _, leaf := range leaves {
		if !slices.ContainsFunc(LeafPaths(leaf), func(path string) bool { return slices.Contains(wanted, path) }) {
			return false
		}
	}
	return len(leaves) == len(wanted)
}

// Disks are the leaves that are disks: the distributed spares of a draid are not, and an active hot spare is in the tree twice.
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
