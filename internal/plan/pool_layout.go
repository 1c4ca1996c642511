package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// specLayout is the layout that a template asks for.
func specLayout(template v1alpha1.PoolTemplate) zfs.Layout {
	var layout zfs.Layout
	for _, vdev := range template.Vdevs {
		made := zfs.Vdev{Type: vdevType(vdev.Type), Devices: texts(vdev.Devices)}
		if vdev.DraidDataDevices != nil {
			made.DraidData = int(*vdev.DraidDataDevices)
		}
		if vdev.DraidSpares != nil {
			made.DraidSpares = int(*vdev.DraidSpares)
		}
		layout.Data = append(layout.Data, made)
	}
	for _, vdev := range template.Log {
		layout.Log = append(layout.Log, zfs.Vdev{Type: vdevType(vdev.Type), Devices: texts(vdev.Devices)})
	}
	for _, vdev := range template.Special {
		layout.Special = append(layout.Special, zfs.Vdev{Type: vdevType(vdev.Type), Devices: texts(vdev.Devices)})
	}
	layout.Cache, layout.Spare = texts(template.Cache), texts(template.Spare)
	return layout
}

func vdevType(asked v1alpha1.VdevType) zfs.VdevType {
	if asked == "" {
		return zfs.Stripe
	}
	return zfs.VdevType(asked)
}

func texts(paths []v1alpha1.DevicePath) []string {
	var all []string
	for _, path := range paths {
		all = append(all, string(path))
	}
	return all
}

// SameWords says whether every disk of the spec, and no other, stands in the live pool under the very path of the spec.
// Then no disk needs to be looked at.
func SameWords(pool *v1alpha1.BenchmarkPool, live *LivePool) bool {
	wanted := SpecDevices(pool)
	leaves := disks(live.Status)
	for _, leaf := range leaves {
		if !slices.ContainsFunc(LeafPaths(leaf), func(path string) bool { return slices.Contains(wanted, path) }) {
			return false
		}
	}
	return len(leaves) == len(wanted)
}

// disks are the leaves that are disks: a draid's own spares are none, and a hot spare at work stands in the tree twice.
func disks(status zfs.Status) []zfs.VdevStatus {
	var found []zfs.VdevStatus
	for _, leaf := range status.Leaves() {
		twice := slices.ContainsFunc(found, func(other zfs.VdevStatus) bool { return other.Name == leaf.Name })
		if !twice && !strings.HasPrefix(leaf.Name, "draid") {
			found = append(found, leaf)
		}
	}
	return found
}

// place is where a disk stands in a live pool.
type place struct {
	// top is the position of its top-level vdev, class that vdev's.
	top   int
	class string
}

// members tells where disks of the spec are in the live pool, and which disks of that are not in the spec.
func (s PoolState) members() (there map[string]place, unnamed []string) {
	there = map[string]place{}
	wanted := SpecDevices(s.Pool)
	for top, vdev := range s.Live.Status.Vdevs {
		for _, leaf := range disks(zfs.Status{Vdevs: []zfs.VdevStatus{vdev}}) {
			known := false
			for _, path := range LeafPaths(leaf) {
				for _, asked := range wanted {
					number := s.Disks[asked].Number
					if asked != path && (number == "" || number != s.Disks[path].Number) {
						continue
					}
					// A hot spare at work stands in the place of a disk too: its own comes later.
					there[asked], known = place{top: top, class: vdev.Class}, true
				}
			}
			if !known {
				unnamed = append(unnamed, leaf.Name)
			}
		}
	}
	return there, unnamed
}

// growPool adds the vdevs of the spec that are not in the pool. It does so only if every disk of the pool is explained:
// else a disk that was replaced would come in a second time.
func growPool(state PoolState) *PoolDecision {
	there, unnamed := state.members()
	extra, wrong := newVdevs(specLayout(state.Pool.Spec.PoolTemplate), there)
	if len(unnamed) > 0 || len(wrong) > 0 {
		var parts []string
		if len(unnamed) > 0 {
			parts = append(parts, fmt.Sprintf("the pool has %s, which the spec does not name", strings.Join(unnamed, ", ")))
		}
		parts = append(parts, wrong...)
		decision := poolStall(v1alpha1.ReasonPoolDrifted, "the disks of pool %s differ from the spec: %s. Correct the spec, or replace disks with a PoolOperation",
			state.Live.Name, strings.Join(parts, "; "))
		return &decision
	}
	if len(extra.Devices()) == 0 {
		return nil
	}
	taken, refused := state.take(extra.Devices())
	if refused != nil {
		return refused
	}
	decision := poolAct("adding "+strings.Join(extra.Devices(), ", ")+" to pool "+state.Live.Name,
		PoolAction{Kind: GrowPool, GUID: state.Live.GUID, Disks: taken,
			Create: zfs.PoolSpec{Name: state.Live.Name, Layout: extra, Ashift: int(state.Pool.Spec.Ashift)}})
	return &decision
}

// newVdevs are the vdevs of which no disk is in the pool, and, in words, those that are there only in part or otherwise
// than asked. A stripe is one vdev for each of its disks.
func newVdevs(asked zfs.Layout, there map[string]place) (extra zfs.Layout, wrong []string) {
	absent := func(devices []string, class string) (missing []string) {
		for _, path := range devices {
			if at, found := there[path]; !found {
				missing = append(missing, path)
			} else if at.class != class {
				wrong = append(wrong, fmt.Sprintf("%s is of class %s, not %s", path, at.class, class))
			}
		}
		return missing
	}
	pick := func(vdevs []zfs.Vdev, class string) (picked []zfs.Vdev) {
		for _, vdev := range vdevs {
			missing := absent(vdev.Devices, class)
			switch {
			case vdev.Type != zfs.Stripe && len(missing) == 0:
				if scattered(vdev.Devices, there) {
					wrong = append(wrong, fmt.Sprintf("%s are not in one %s", strings.Join(vdev.Devices, ", "), vdev.Type))
				}
			case len(missing) == 0:
			case vdev.Type == zfs.Stripe || len(missing) == len(vdev.Devices):
				vdev.Devices = missing
				picked = append(picked, vdev)
			default:
				wrong = append(wrong, fmt.Sprintf("%s of a %s are not in the pool, the others are", strings.Join(missing, ", "), vdev.Type))
			}
		}
		return picked
	}
	extra.Data, extra.Log, extra.Special = pick(asked.Data, "normal"), pick(asked.Log, "log"), pick(asked.Special, "special")
	extra.Cache, extra.Spare = absent(asked.Cache, "l2cache"), absent(asked.Spare, "spare")
	return extra, wrong
}

// scattered says whether disks are in more than one top-level vdev.
func scattered(devices []string, there map[string]place) bool {
	return slices.ContainsFunc(devices, func(path string) bool { return there[path].top != there[devices[0]].top })
}
