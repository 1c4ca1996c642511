package foresee

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
)

// targetField returns the field that has the target of a variant.
func targetField(spec *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) string {
	for i, variant := range spec.Variants {
		if variant.Target != nil && slot.Base == string(variant.Name) {
			return fmt.Sprintf("spec.variants[%d].target", i)
		}
	}
	return "spec.target"
}

// datasetAt returns the field of the dataset of the volume with index i. The first volume is that of the target itself.
func datasetAt(spec *v1alpha1.StorageBenchmarkSpec, slot *design.Slot, i int) string {
	at := targetField(spec, slot) + ".zfs."
	if i > 0 {
		at += fmt.Sprintf("volumes[%d].", i-1)
	}
	return at + "dataset"
}

// poolPlan is a pool of a target, as the operations of a run change it.
type poolPlan struct {
	volume, field string
	vdevs         []v1alpha1.Vdev
	others        map[v1alpha1.DevicePath]string // the uses of all other devices, such as spare
	mirrors       []v1alpha1.AuxiliaryVdev       // those of log and special vdevs
	special       []v1alpha1.Vdev
}

// checkDevices refuses devices that are used twice, and operations whose devices are not where the operation needs them. The API server
// checks neither pools with overrides applied, nor operations.
func checkDevices(spec *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	zfs := slot.Target.ZFS
	if zfs == nil {
		return nil
	}
	at := targetField(spec, slot) + ".zfs"
	f := &Foresight{}
	var others []*poolPlan
	for i := range zfs.Volumes {
		if pool := zfs.Volumes[i].Pool; pool != nil {
			others = append(others, planPool(string(zfs.Volumes[i].Name), fmt.Sprintf("%s.volumes[%d].pool", at, i), pool))
		}
	}
	plans := append([]*poolPlan{planPool(naming.VolumeData, at+".pool", &zfs.Pool)}, others...)
	sharedDevices(f, slot, plans)
	all := slices.Clone(plans)
	for i := range zfs.PerNode { // the pool of the node replaces the first one
		ofNode := planPool(naming.VolumeData, fmt.Sprintf("%s.perNode[%d].pool", at, i), &zfs.PerNode[i].Pool)
		sharedDevices(f, slot, append([]*poolPlan{ofNode}, others...))
		all = append(all, ofNode)
	}
	for _, plan := range all {
		if problem := plan.mixed(plan.vdevs); problem != "" {
			f.refuse(plan.field, problem+inVariant(slot))
		}
	}
	if len(f.mistakes) > 0 || len(zfs.PerNode) > 0 { // with perNode, a path refers to another disk on each node
		return f.Err()
	}
	return followDevices(slot, plans)
}

func inVariant(slot *design.Slot) string { return fmt.Sprintf(" (variant %q)", slot.Variant) }

func planPool(volume, field string, pool *v1alpha1.PoolTemplate) *poolPlan {
	plan := &poolPlan{volume: volume, field: field, vdevs: slices.Clone(pool.Vdevs), others: map[v1alpha1.DevicePath]string{}}
	for _, vdev := range pool.Log {
		plan.note("log", vdev.Devices)
	}
	for _, vdev := range slices.Concat(pool.Log, pool.Special) {
		if vdev.Type == "mirror" {
			plan.mirrors = append(plan.mirrors, vdev)
		}
	}
	for _, vdev := range pool.Special {
		plan.special = append(plan.special, v1alpha1.Vdev{Type: v1alpha1.VdevType(vdev.Type), Devices: vdev.Devices})
		plan.note("special", vdev.Devices)
	}
	plan.note("cache", pool.Cache)
	plan.note("spare", pool.Spare)
	return plan
}

func (p *poolPlan) note(as string, devices []v1alpha1.DevicePath) {
	for _, device := range devices {
		use := as
		if before, twice := p.others[device]; twice {
			use = before + " and " + as
		}
		p.others[device] = use
	}
}

// uses says what a device is used for in the pool. Empty if it is not in the pool.
func (p *poolPlan) uses(device v1alpha1.DevicePath) string {
	as := p.others[device]
	for _, vdev := range p.vdevs {
		if slices.Contains(vdev.Devices, device) {
			as = strings.TrimSuffix("vdevs and "+as, " and ")
		}
	}
	return as
}

func (p *poolPlan) devices() (all []v1alpha1.DevicePath) {
	for _, vdev := range p.vdevs {
		all = append(all, vdev.Devices...)
	}
	all = slices.AppendSeq(all, maps.Keys(p.others))
	slices.Sort(all)
	return slices.Compact(all)
}

func sharedDevices(f *Foresight, slot *design.Slot, plans []*poolPlan) {
	for i, plan := range plans {
		for _, device := range plan.devices() {
			if uses := plan.uses(device); strings.Contains(uses, " and ") {
				f.refuse(plan.field, fmt.Sprintf("%s is used twice, in %s: name each device once%s", device, uses, inVariant(slot)))
			}
			for _, before := range plans[:i] {
				if use := before.uses(device); use != "" {
					f.refuse(plan.field, fmt.Sprintf("%s is also in %s of the pool of volume %s: give each pool its own devices%s", device, use,
						before.volume, inVariant(slot)))
				}
			}
		}
	}
}

// mixed refuses data and special vdevs that can lose different numbers of disks: zpool mixes them only with force.
func (p *poolPlan) mixed(data []v1alpha1.Vdev) string {
	if len(data) == 0 {
		return ""
	}
	words := func(vdev v1alpha1.Vdev) string {
		return fmt.Sprintf("a %s of %d", cmp.Or(vdev.Type, "stripe"), len(vdev.Devices))
	}
	first := data[0]
	for _, vdev := range data {
		if toleratedLosses(vdev) != toleratedLosses(first) {
			return fmt.Sprintf("%s and %s devices are in one pool, which ZFS creates only with force: let each vdev survive the loss of as many "+
				"devices", words(first), words(vdev))
		}
	}
	for _, vdev := range p.special {
		if survives := toleratedLosses(first); toleratedLosses(vdev) != survives {
			instead := "single disks"
			if survives > 0 {
				instead = fmt.Sprintf("a mirror of %d disks", survives+1)
			}
			return fmt.Sprintf("%s as special vdev survives the loss of another number of disks than the data vdevs, and ZFS creates such a pool "+
				"only with force: make special %s", words(vdev), instead)
		}
	}
	return ""
}

// toleratedLosses returns how many disks each top-level vdev can lose.
func toleratedLosses(vdev v1alpha1.Vdev) int {
	switch kind := string(vdev.Type); {
	case kind == "mirror":
		return len(vdev.Devices) - 1
	case isParity(vdev):
		return int(kind[len(kind)-1] - '0')
	}
	return 0
}

// isParity reports whether a vdev is a raidz or draid.
func isParity(vdev v1alpha1.Vdev) bool { return strings.Contains(string(vdev.Type), "raid") }

// unlike refuses to add a raidz or draid beside one of another type or width. OpenZFS creates a pool with both, but before 2.4 it does not
// add one to the other.
func (p *poolPlan) unlike(added v1alpha1.Vdev) string {
	for _, vdev := range p.vdevs {
		if isParity(added) && isParity(vdev) && (added.Type != vdev.Type || len(added.Devices) != len(vdev.Devices)) {
			return fmt.Sprintf("OpenZFS before 2.4 adds no %s of %d to a pool with a %s of %d devices: add a %s of %d", added.Type,
				len(added.Devices), vdev.Type, len(vdev.Devices), vdev.Type, len(vdev.Devices))
		}
	}
	return ""
}

// followDevices checks the operations of a run in their order.
func followDevices(slot *design.Slot, plans []*poolPlan) error {
	var problems []error
	pools := design.PoolsOf(slot)
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		on := pools[design.VolumeOf(phase)]
		at := slices.IndexFunc(plans, func(plan *poolPlan) bool { return plan.volume == on })
		if at < 0 {
			continue // there is no such volume, which is reported elsewhere
		}
		for _, action := range operate.Of(phase) {
			if problem := plans[at].after(action, plans); problem != "" {
				problems = append(problems, design.RefuseField(slot.PhaseField(i), v1alpha1.ReasonSpecInvalid,
					"phase %s of variant %q: %s on the pool of volume %s: %s", phase.Name, slot.Variant, operate.Name(*action), on, problem))
			}
		}
	}
	return errors.Join(problems...)
}

// after changes the devices as the action does, or returns why the action would fail and what to write instead.
func (p *poolPlan) after(action *v1alpha1.PoolAction, plans []*poolPlan) (problem string) {
	var named v1alpha1.DevicePath
	if disks := operate.Disks(action); len(disks) > 0 {
		named = v1alpha1.DevicePath(*disks[0])
	}
	switch {
	case action.AddVdev != nil:
		added := action.AddVdev.Vdev()
		for _, device := range added.Devices {
			if problem = taken(device, plans); problem != "" {
				return problem
			}
		}
		vdevs := append(slices.Clone(p.vdevs), added)
		if problem = cmp.Or(p.expands(added), p.mixed(vdevs), p.unlike(added)); problem == "" {
			p.vdevs = vdevs
		}
	case action.ReplaceDevice != nil:
		with := v1alpha1.DevicePath(action.ReplaceDevice.With)
		if problem = cmp.Or(distributed(with), p.absent(named)); problem == "" {
			problem = p.replace(named, with, plans)
		}
	case action.RemoveVdev != nil:
		if problem = p.absent(named); problem == "" {
			problem = p.remove(named)
		}
	case action.OfflineDevice != nil:
		return cmp.Or(p.absent(named), p.alone(named))
	case action.Trim != nil && named != "":
		return p.absent(named)
	}
	return problem // other actions name no device
}

// expands returns a problem if a single disk would be added to a pool of raidz. Since 2.3, ZFS can attach one to a raidz vdev, but no
// operation does that.
func (p *poolPlan) expands(added v1alpha1.Vdev) string {
	if len(added.Devices) != 1 || len(p.vdevs) == 0 || !strings.HasPrefix(string(p.vdevs[0].Type), "raidz") {
		return ""
	}
	first := p.vdevs[0]
	return fmt.Sprintf("raidz expansion is not supported, and a pool of %s takes no single disk: add a %s of %d free devices", first.Type,
		first.Type, len(first.Devices))
}

var distributedSpare = regexp.MustCompile(`^draid[1-3]-[0-9]+-[0-9]+$`)

// distributed returns a problem if a device is a distributed spare of a draid, which has no path.
func distributed(device v1alpha1.DevicePath) string {
	if !distributedSpare.MatchString(string(device)) {
		return ""
	}
	return fmt.Sprintf("%s is a distributed spare, and operations name only disks: write a free disk of zfs.disks", device)
}

func taken(device v1alpha1.DevicePath, plans []*poolPlan) string {
	for _, plan := range plans {
		if use := plan.uses(device); use != "" {
			return fmt.Sprintf("%s is in %s of the pool of volume %s by then: name a free device", device, use, plan.volume)
		}
	}
	return ""
}

func (p *poolPlan) absent(device v1alpha1.DevicePath) string {
	if p.uses(device) != "" {
		return ""
	}
	var names []string
	for _, one := range p.devices() {
		names = append(names, string(one))
	}
	return fmt.Sprintf("%s is not in this pool by then: name one of %s", device, strings.Join(names, ", "))
}

// alone returns a problem if the pool would lose data without a device.
func (p *poolPlan) alone(device v1alpha1.DevicePath) string {
	has := func(devices []v1alpha1.DevicePath) bool { return len(devices) > 1 && slices.Contains(devices, device) }
	redundant := slices.ContainsFunc(p.vdevs, func(vdev v1alpha1.Vdev) bool {
		return cmp.Or(vdev.Type, "stripe") != "stripe" && has(vdev.Devices)
	})
	if redundant || slices.ContainsFunc(p.mirrors, func(vdev v1alpha1.AuxiliaryVdev) bool { return has(vdev.Devices) }) {
		return ""
	}
	return fmt.Sprintf("%s is not in a mirror, raidz or draid by then, and ZFS takes no disk offline that has the only copy of data: name a "+
		"disk of one, or write a vdev with redundancy into the target", device)
}

// replace replaces a disk with a free one. A spare is not free: ZFS keeps it as a spare, and the agent refuses it.
func (p *poolPlan) replace(old, with v1alpha1.DevicePath, plans []*poolPlan) string {
	if problem := taken(with, plans); problem != "" {
		return problem
	}
	vdevs := slices.Clone(p.vdevs)
	for i := range vdevs {
		vdevs[i].Devices = slices.Clone(vdevs[i].Devices)
		for j, device := range vdevs[i].Devices {
			if device == old {
				vdevs[i].Devices[j] = with
			}
		}
	}
	if as, other := p.others[old]; other {
		delete(p.others, old)
		p.others[with] = as
	}
	p.vdevs = vdevs
	return ""
}

// remove removes a vdev. ZFS moves the data of a data vdev to the others, which raidz and draid do not allow.
func (p *poolPlan) remove(device v1alpha1.DevicePath) string {
	if _, other := p.others[device]; other {
		delete(p.others, device)
		return ""
	}
	type vdevs = []v1alpha1.Vdev
	at := slices.IndexFunc(p.vdevs, func(vdev v1alpha1.Vdev) bool { return slices.Contains(vdev.Devices, device) })
	kind := cmp.Or(p.vdevs[at].Type, "stripe")
	switch {
	case strings.HasPrefix(string(kind), "raidz") || strings.HasPrefix(string(kind), "draid"):
		return fmt.Sprintf("ZFS removes no data vdev from a pool of %s: use stripe or mirror, or remove the phase", kind)
	case kind == "stripe" && len(p.vdevs[at].Devices) > 1: // each device is a vdev of its own
		devices := slices.DeleteFunc(slices.Clone(p.vdevs[at].Devices), func(one v1alpha1.DevicePath) bool { return one == device })
		p.vdevs = slices.Concat(p.vdevs[:at], vdevs{{Type: kind, Devices: devices}}, p.vdevs[at+1:])
	case len(p.vdevs) == 1:
		return "it is the only data vdev of the pool: add another one first, with addVdev"
	default:
		p.vdevs = slices.Concat(p.vdevs[:at], p.vdevs[at+1:])
	}
	return ""
}
