package pools

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// place is the position of a disk in a live pool.
type place struct {
	// top is the position of its top-level vdev, and class is the class of that vdev.
	top   int
	class string
	leaf  zfs.VdevStatus
}

// members finds the disks of the spec in the live pool, and the disks of the pool that are not in the spec.
func (s State) members() (there map[string]place, unnamed []place) {
	there = map[string]place{}
	wanted := objects.SpecDevices(s.Pool)
	for top, vdev := range s.Live.Status.Vdevs {
		for _, leaf := range Disks(zfs.Status{Vdevs: []zfs.VdevStatus{vdev}}) {
			known, at := false, place{top: top, class: vdev.Class, leaf: leaf}
			for _, path := range LeafPaths(leaf) {
				for _, asked := range wanted {
					number := s.Disks[asked].Number
					if asked != path && (number == "" || number != s.Disks[path].Number) {
						continue
					}
					// An active hot spare has a place too. The disk's own place comes later and replaces it.
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

// layoutChange describes what remains to be done until a live pool has the disks of the spec.
type layoutChange struct {
	// extra are vdevs without any disk in the pool.
	extra zfs.Layout
	// attach are disks to attach to a mirror, each with a disk that is already in that mirror.
	attach []attachment
	// detach are disks to detach from a mirror that has all of its disks of the spec.
	detach []zfs.VdevStatus
	// wrong describes differences that cannot be repaired here.
	wrong []string
}

type attachment struct {
	member zfs.VdevStatus
	path   string
}

// lacks returns descriptions of what remains to be done.
func (c layoutChange) lacks() []string {
	var parts []string
	if missing := c.extra.Devices(); len(missing) > 0 {
		parts = append(parts, "the pool lacks "+strings.Join(missing, ", "))
	}
	for _, one := range c.attach {
		parts = append(parts, "a mirror lacks "+one.path)
	}
	for _, leaf := range c.detach {
		parts = append(parts, fmt.Sprintf("a mirror has %s, which the spec does not list", leaf.Name))
	}
	return parts
}

// growPool changes the disks of the pool to those of the spec: it adds vdevs, and attaches disks to mirrors and detaches them. It does so
// only if every disk of the pool is accounted for: otherwise a disk that was replaced would be added again. It also requires that the disks
// of the spec have changed: otherwise disks that an operation or an admin removed would return.
func growPool(state State) *Decision {
	change := state.layoutChange()
	asked := change.lacks()
	if len(change.wrong) > 0 || len(asked) > 0 && !state.disksChanged() {
		return new(stall(v1alpha1.ReasonPoolDisksDiffer,
			"the disks of pool %s differ from the spec: %s. Correct the spec, or change the disks with a PoolOperation",
			state.Live.Name, strings.Join(append(change.wrong, asked...), "; ")))
	}
	switch {
	case len(asked) == 0:
		return state.sayDisks()
	case len(change.attach) > 0: // one by one: each needs a rebuild
		next := change.attach[0]
		return state.takes([]string{next.path}, fmt.Sprintf("attaching %s to the mirror of %s in pool %s", next.path, next.member.Name,
			state.Live.Name),
			Action{Kind: AttachDisk, Member: MemberName(next.member), Device: next.path})
	case len(change.detach) > 0:
		return state.detach(change.detach[0])
	}
	devices := change.extra.Devices()
	return state.takes(devices, fmt.Sprintf("adding %s to pool %s", strings.Join(devices, ", "), state.Live.Name), Action{
		Kind: GrowPool, Create: zfs.PoolSpec{Name: state.Live.Name, Layout: change.extra, Ashift: int(state.Pool.Spec.Ashift)}})
}

// detach removes a disk from its mirror, unless the pool has data errors or other disks have errors: then this disk may have the only good
// copy. ZFS tracks the writes that disks have missed, and refuses to detach the last disk that has these writes.
func (s State) detach(leaf zfs.VdevStatus) *Decision {
	if troubles := DoubtsWithout(s.Live.Status, leaf); len(troubles) > 0 {
		return new(stall(v1alpha1.ReasonPoolUnhealthy,
			"%s is not detached from pool %s, which has %s: scrub the pool, see 'zpool status -v', and run 'zpool clear' when all is well",
			leaf.Name, s.Live.Name, strings.Join(troubles, ", ")))
	}
	return new(act(fmt.Sprintf("detaching %s from its mirror in pool %s", leaf.Name, s.Live.Name),
		Action{Kind: DetachDisk, GUID: s.Live.GUID, Member: MemberName(leaf)}))
}

// DoubtsWithout returns reasons to doubt that a pool would still have all of its data without one of its disks.
func DoubtsWithout(status zfs.Status, leaf zfs.VdevStatus) (doubts []string) {
	if status.DataErrors != 0 {
		doubts = append(doubts, "data errors")
	}
	for _, other := range status.Leaves() {
		if Identity(other) != Identity(leaf) && other.ReadErrors+other.WriteErrors+other.ChecksumErrors > 0 {
			doubts = append(doubts, "errors on "+other.Name)
		}
	}
	return doubts
}

// sayDisks records on the pool that it has the disks of the spec.
func (s State) sayDisks() *Decision {
	if !s.disksChanged() {
		return nil
	}
	return new(act("noting on pool "+s.Live.Name+" that its disks match the spec", Action{Kind: SetPoolProperties, GUID: s.Live.GUID,
		Settings: []naming.Setting{{Dataset: s.Live.Name, Name: naming.PropertyDisks, Value: layoutMark(s.Pool)}}}))
}

// takes returns the decision to run an action that adds disks, or the reason why the pool may not have them.
func (s State) takes(devices []string, message string, action Action) *Decision {
	taken, refused := s.Take(devices)
	if refused != nil {
		return refused
	}
	action.GUID, action.Disks = s.Live.GUID, taken
	return new(act(message, Action{Kind: RecordDisks, Disks: taken}, action))
}

// disksChanged reports whether the disks of the spec differ from those that the pool was last changed to.
func (s State) disksChanged() bool {
	mark, _ := s.Live.Property(s.Live.Name, naming.PropertyDisks)
	return !mark.Local() || mark.Value != layoutMark(s.Pool)
}

// layoutMark returns a short hash of the layout of the spec.
func layoutMark(pool *v1alpha1.BenchmarkPool) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%+v", objects.SpecLayout(pool.Spec.PoolTemplate))))[:16]
}

// layoutChange compares the disks of the live pool with the spec. In the live pool, each disk of a stripe is a vdev of its own.
func (s State) layoutChange() layoutChange {
	there, unnamed := s.members()
	asked := objects.SpecLayout(s.Pool.Spec.PoolTemplate)
	change := layoutChange{wrong: append(twice(asked.Devices(), there), s.misplaced(asked, there)...)}
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
			case len(missing) == 0 && vdev.Type == zfs.Stripe && len(vdev.Devices) > 1:
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
	change.extra.Data, change.extra.Log, change.extra.Special = pick(asked.Data, "normal"), pick(asked.Log, "log"),
		pick(asked.Special, "special")
	change.extra.Cache, change.extra.Spare = absent(asked.Cache, "l2cache"), absent(asked.Spare, "spare")
	for _, at := range unnamed {
		change.wrong = append(change.wrong, fmt.Sprintf("the pool has %s, which the spec does not list", at.leaf.Name))
	}
	return change
}

// detachable adds to the change the unlisted disks of the mirror at the given position, and returns the other unlisted disks.
func (s State) detachable(change *layoutChange, top int, unnamed []place) (rest []place) {
	vdev := s.Live.Status.Vdevs[top]
	for _, at := range unnamed {
		child := slices.ContainsFunc(vdev.Children, func(child zfs.VdevStatus) bool { return Identity(child) == Identity(at.leaf) })
		if at.top == top && child && strings.HasPrefix(vdev.Name, "mirror") {
			change.detach = append(change.detach, at.leaf)
		} else {
			rest = append(rest, at)
		}
	}
	return rest
}

// attachable adds to the change the disks that a mirror lacks. Other vdevs cannot grow by a disk.
func (s State) attachable(change *layoutChange, vdev zfs.Vdev, missing []string, there map[string]place) {
	var present []string
	for _, path := range vdev.Devices {
		if !slices.Contains(missing, path) {
			present = append(present, path)
		}
	}
	if vdev.Type != zfs.Mirror {
		change.wrong = append(change.wrong, fmt.Sprintf("%s of a %s are missing in the pool", strings.Join(missing, ", "), vdev.Type))
		return
	}
	for _, path := range missing {
		change.attach = append(change.attach, attachment{member: there[present[0]].leaf, path: path})
	}
}

// twice returns descriptions of the paths of the spec that lead to the same disk.
func twice(asked []string, there map[string]place) (wrong []string) {
	for i, path := range asked {
		for _, other := range asked[:i] {
			a, found := there[path]
			if b, too := there[other]; found && too && Identity(a.leaf) == Identity(b.leaf) {
				wrong = append(wrong, fmt.Sprintf("%s and %s are the same disk", other, path))
			}
		}
	}
	return wrong
}

// misplaced returns descriptions of the vdevs of the spec that differ in the pool: they have another type, are spread over more than one
// vdev, or share a vdev with the disks of another vdev of the spec.
func (s State) misplaced(asked zfs.Layout, there map[string]place) (wrong []string) {
	owner := map[int]int{}
	for number, vdev := range slices.Concat(asked.Data, asked.Log, asked.Special) {
		tops := map[int]bool{}
		for _, path := range vdev.Devices {
			at, found := there[path]
			if !found {
				continue
			}
			top := s.Live.Status.Vdevs[at.top]
			if first, known := owner[at.top]; known && first != number {
				wrong = append(wrong, fmt.Sprintf("%s is in %s with disks of another vdev of the spec", path, top.Name))
			} else if !fits(vdev, top) {
				wrong = append(wrong, fmt.Sprintf("%s is in %s, not in a %s", path, top.Name, vdev.Type))
			}
			owner[at.top], tops[at.top] = number, true
		}
		if len(tops) > 1 && (vdev.Type != zfs.Stripe) {
			wrong = append(wrong, fmt.Sprintf("%s are not in the same %s", strings.Join(vdev.Devices, ", "), vdev.Type))
		}
	}
	return wrong
}

// fits reports whether a top-level vdev is as requested, or can be converted to that: a single disk and a mirror can be converted to each
// other.
func fits(vdev zfs.Vdev, top zfs.VdevStatus) bool {
	alone := len(top.Children) == 0
	switch {
	case vdev.Type == zfs.Stripe && len(vdev.Devices) > 1:
		return alone
	case vdev.Type == zfs.Stripe || vdev.Type == zfs.Mirror:
		return alone || strings.HasPrefix(top.Name, "mirror")
	}
	return strings.HasPrefix(top.Name, string(vdev.Type))
}

// Identity returns the guid of a vdev or, before OpenZFS 2.3, which does not report guids, its name.
func Identity(vdev zfs.VdevStatus) string {
	return cmp.Or(vdev.GUID, vdev.Name)
}

// MemberName returns the name of a vdev for commands.
func MemberName(vdev zfs.VdevStatus) string { return objects.WholeDisk(Identity(vdev)) }
