package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// place is where a disk stands in a live pool.
type place struct {
	// top is the position of its top-level vdev, class that vdev's.
	top   int
	class string
	leaf  zfs.VdevStatus
}

// members tells where disks of the spec are in the live pool, and which disks of that are not in the spec.
func (s PoolState) members() (there map[string]place, unnamed []place) {
	there = map[string]place{}
	wanted := SpecDevices(s.Pool)
	for top, vdev := range s.Live.Status.Vdevs {
		for _, leaf := range disks(zfs.Status{Vdevs: []zfs.VdevStatus{vdev}}) {
			known, at := false, place{top: top, class: vdev.Class, leaf: leaf}
			for _, path := range LeafPaths(leaf) {
				for _, asked := range wanted {
					number := s.Disks[asked].Number
					if asked != path && (number == "" || number != s.Disks[path].Number) {
						continue
					}
					// A hot spare at work stands in the place of a disk too: its own comes later.
					there[asked], known = at, true
				}
			}
			if !known {
				unnamed = append(unnamed, at)
			}
		}
	}
	return there, unnamed
}

// layoutChange is what there is to do until a live pool has the disks of the spec.
type layoutChange struct {
	// extra are vdevs of which no disk is in the pool.
	extra zfs.Layout
	// attach are disks that a mirror lacks, with a disk that is in it.
	attach []attachment
	// detach are disks of a mirror that has all others that the spec names.
	detach []zfs.VdevStatus
	// wrong is, in words, what is otherwise than asked and not to be mended here.
	wrong []string
}

type attachment struct {
	member zfs.VdevStatus
	path   string
}

// lacks says, in words, what is to be done.
func (c layoutChange) lacks() []string {
	var parts []string
	if missing := c.extra.Devices(); len(missing) > 0 {
		parts = append(parts, "the pool lacks "+strings.Join(missing, ", "))
	}
	for _, one := range c.attach {
		parts = append(parts, "a mirror lacks "+one.path)
	}
	for _, leaf := range c.detach {
		parts = append(parts, fmt.Sprintf("a mirror has %s, which the spec does not name", leaf.Name))
	}
	return parts
}

// growPool brings the disks of the pool to what the spec says: it adds vdevs, and attaches disks to mirrors and detaches them. It
// does so only if every disk of the pool is explained, else a disk that was replaced would come in a second time; and only after
// the spec has changed, else what an operation or an admin took out would come back.
func growPool(state PoolState) *PoolDecision {
	change := state.layoutChange()
	asked := change.lacks()
	if len(change.wrong) > 0 || len(asked) > 0 && !state.specChanged() {
		decision := poolStall(v1alpha1.ReasonPoolDrifted, "the disks of pool %s differ from the spec: %s. Correct the spec, or change the disks with a PoolOperation",
			state.Live.Name, strings.Join(append(change.wrong, asked...), "; "))
		return &decision
	}
	switch {
	case len(asked) == 0:
		return nil
	case len(change.extra.Devices()) > 0:
		return state.takes(change.extra.Devices(), fmt.Sprintf("adding %s to pool %s", strings.Join(change.extra.Devices(), ", "), state.Live.Name), PoolAction{
			Kind: GrowPool, Create: zfs.PoolSpec{Name: state.Live.Name, Layout: change.extra, Ashift: int(state.Pool.Spec.Ashift)}})
	case len(change.attach) > 0: // one by one: the data is rebuilt onto each
		next := change.attach[0]
		return state.takes([]string{next.path}, fmt.Sprintf("attaching %s to the mirror of %s in pool %s", next.path, next.member.Name, state.Live.Name),
			PoolAction{Kind: AttachDisk, Member: memberName(next.member), Device: next.path})
	}
	leaf := change.detach[0]
	decision := poolAct(fmt.Sprintf("detaching %s from its mirror in pool %s", leaf.Name, state.Live.Name),
		PoolAction{Kind: DetachDisk, GUID: state.Live.GUID, Member: memberName(leaf)})
	return &decision
}

// takes is an action that takes disks, if they may be taken.
func (s PoolState) takes(devices []string, message string, action PoolAction) *PoolDecision {
	taken, refused := s.take(devices)
	if refused != nil {
		return refused
	}
	action.GUID, action.Disks = s.Live.GUID, taken
	decision := poolAct(message, action)
	return &decision
}

// specChanged says whether the spec is another than the one that the pool was last brought to.
func (s PoolState) specChanged() bool {
	mark, _ := s.Live.Property(s.Live.Name, PropertyGeneration)
	return mark.Value != strconv.FormatInt(s.Pool.Generation, 10)
}

// layoutChange compares the disks of the live pool with the spec. A stripe is one vdev for each of its disks.
func (s PoolState) layoutChange() layoutChange {
	there, unnamed := s.members()
	asked := specLayout(s.Pool.Spec.PoolTemplate)
	var change layoutChange
	absent := func(devices []string, class string) (missing []string) {
		for _, path := range devices {
			if at, found := there[path]; !found {
				missing = append(missing, path)
			} else if at.class != class {
				change.wrong = append(change.wrong, fmt.Sprintf("%s is of class %s, not %s", path, at.class, class))
			}
		}
		return missing
	}
	pick := func(vdevs []zfs.Vdev, class string) (picked []zfs.Vdev) {
		for _, vdev := range vdevs {
			missing := absent(vdev.Devices, class)
			switch {
			case len(missing) == 0 && (vdev.Type == zfs.Stripe && len(vdev.Devices) > 1):
			case len(missing) == 0 && scattered(vdev.Devices, there):
				change.wrong = append(change.wrong, fmt.Sprintf("%s are not in one %s", strings.Join(vdev.Devices, ", "), vdev.Type))
			case len(missing) == 0:
				unnamed = s.detachable(&change, there[vdev.Devices[0]].top, unnamed)
			case vdev.Type == zfs.Stripe || len(missing) == len(vdev.Devices):
				vdev.Devices = missing
				picked = append(picked, vdev)
			default:
				s.attachable(&change, vdev, missing, there)
			}
		}
		return picked
	}
	change.extra.Data, change.extra.Log, change.extra.Special = pick(asked.Data, "normal"), pick(asked.Log, "log"), pick(asked.Special, "special")
	change.extra.Cache, change.extra.Spare = absent(asked.Cache, "l2cache"), absent(asked.Spare, "spare")
	for _, at := range unnamed {
		change.wrong = append(change.wrong, fmt.Sprintf("the pool has %s, which the spec does not name", at.leaf.Name))
	}
	return change
}

// detachable takes those of the unnamed disks that the mirror with that position does not need.
func (s PoolState) detachable(change *layoutChange, top int, unnamed []place) (rest []place) {
	vdev := s.Live.Status.Vdevs[top]
	for _, at := range unnamed {
		child := slices.ContainsFunc(vdev.Children, func(child zfs.VdevStatus) bool { return identity(child) == identity(at.leaf) })
		if at.top == top && child && strings.HasPrefix(vdev.Name, "mirror") {
			change.detach = append(change.detach, at.leaf)
		} else {
			rest = append(rest, at)
		}
	}
	return rest
}

// attachable takes the disks that a mirror lacks. Other vdevs do not grow by a disk.
func (s PoolState) attachable(change *layoutChange, vdev zfs.Vdev, missing []string, there map[string]place) {
	var present []string
	for _, path := range vdev.Devices {
		if !slices.Contains(missing, path) {
			present = append(present, path)
		}
	}
	if vdev.Type != zfs.Mirror || scattered(present, there) {
		change.wrong = append(change.wrong, fmt.Sprintf("%s of a %s are not in the pool, the others are", strings.Join(missing, ", "), vdev.Type))
		return
	}
	for _, path := range missing {
		change.attach = append(change.attach, attachment{member: there[present[0]].leaf, path: path})
	}
}

// scattered says whether disks are in more than one top-level vdev.
func scattered(devices []string, there map[string]place) bool {
	return slices.ContainsFunc(devices, func(path string) bool { return there[path].top != there[devices[0]].top })
}
