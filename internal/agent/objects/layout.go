package objects

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// SpecLayout returns the layout of a template.
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

func vdevType[T v1alpha1.VdevType | v1alpha1.AuxiliaryVdevType](asked T) zfs.VdevType {
	if asked == "" {
		return zfs.Stripe
	}
	return zfs.VdevType(asked)
}

// Texts converts paths to strings.
func Texts(paths []v1alpha1.DevicePath) []string {
	var all []string
	for _, path := range paths {
		all = append(all, string(path))
	}
	return all
}

// SpecDevices returns the paths of all disks in the spec of a BenchmarkPool.
func SpecDevices(pool *v1alpha1.BenchmarkPool) []string {
	return SpecLayout(pool.Spec.PoolTemplate).Devices()
}

// ClaimedDevices returns the disks of the spec, and those that the pool has or may have although they are not in the spec.
func ClaimedDevices(pool *v1alpha1.BenchmarkPool) []string {
	claimed := SpecDevices(pool)
	others := Texts(pool.Status.Joining)
	for _, vdev := range pool.Status.Vdevs {
		others = append(others, WholeDisk(vdev.Name))
	}
	for _, path := range others {
		if strings.HasPrefix(path, "/dev/") && !slices.Contains(claimed, path) {
			claimed = append(claimed, path)
		}
	}
	return claimed
}

// WholeDisk returns the path of a disk, given that path or the path of the disk's first partition, which ZFS uses.
func WholeDisk(path string) string { return strings.TrimSuffix(path, "-part1") }
