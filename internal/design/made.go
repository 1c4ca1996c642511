package design

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
)

// mostMade limits the volumes that the phases of a benchmark can make, so that all datasets of a pool fit into one BenchmarkPool.
const mostMade = 8

// presence tracks, phase by phase, which volumes exist.
type presence struct {
	slot *Slot
	all  []volume.RunVolume
	// there says which volumes exist now. gone names the phase that destroyed a volume.
	there map[v1alpha1.VolumeName]bool
	gone  map[v1alpha1.VolumeName]v1alpha1.PhaseName
}

func newPresence(slot *Slot) *presence {
	p := &presence{slot, slot.Volumes(), map[v1alpha1.VolumeName]bool{}, map[v1alpha1.VolumeName]v1alpha1.PhaseName{}}
	for _, one := range p.all {
		p.there[v1alpha1.VolumeName(one.Name)] = one.MadeIn == ""
	}
	return p
}

// find returns the volume with the given name, or nil if there never is one.
func (p *presence) find(name v1alpha1.VolumeName) *volume.RunVolume {
	at := slices.IndexFunc(p.all, func(one volume.RunVolume) bool { return one.Name == string(name) })
	if at < 0 {
		return nil
	}
	return &p.all[at]
}

// on returns the existing volumes on the pool of a volume.
func (p *presence) on(name v1alpha1.VolumeName) (on []volume.RunVolume) {
	own := p.find(name)
	if own == nil {
		return nil
	}
	for _, one := range volume.On(p.all, own.PoolOf) {
		if p.there[v1alpha1.VolumeName(one.Name)] {
			on = append(on, one)
		}
	}
	return on
}

// after applies a phase.
func (p *presence) after(phase *v1alpha1.Phase) {
	for _, action := range operate.Of(phase) {
		if destroy := action.DestroyDataset; destroy != nil {
			for _, one := range p.on(VolumeOf(phase)) {
				if path := naming.RunDataset(one.Name); path == destroy.Dataset || below(path, destroy.Dataset) {
					p.there[v1alpha1.VolumeName(one.Name)] = false
					p.gone[v1alpha1.VolumeName(one.Name)] = phase.Name
				}
			}
		}
	}
	for _, one := range p.all {
		if one.MadeIn == phase.Name {
			p.there[v1alpha1.VolumeName(one.Name)] = true
		}
	}
}

// absent says why a volume does not exist for a phase. It returns "" if it exists.
func (p *presence) absent(name v1alpha1.VolumeName) string {
	one := p.find(name)
	switch destroyer, gone := p.gone[name]; {
	case one == nil && p.slot.Target.ZFS == nil:
		return fmt.Sprintf("works on volume %q, which the target does not have: write volume: data, for only a zfs target has several", name)
	case one == nil:
		return fmt.Sprintf("works on volume %q, which the target does not have: add it to target.zfs.volumes, make it in an earlier phase "+
			"with as, or write volume: data", name)
	case p.there[name]:
		return ""
	case gone:
		return fmt.Sprintf("works on volume %s, whose dataset is destroyed by the earlier phase %s: move it before that phase, or name "+
			"another volume",
			name, destroyer)
	}
	return fmt.Sprintf("works on volume %s, which phase %s makes later: move it after that phase", name, one.MadeIn)
}

// checkMade returns errors for volumes that a phase cannot make.
func checkMade(slot *Slot) error {
	var problems []error
	taken, made := map[v1alpha1.VolumeName]bool{}, 0
	if slot.Target.ZFS == nil {
		return nil // it has no pool: another check reports that
	}
	for _, name := range volumeNames(slot.Target.ZFS) {
		taken[v1alpha1.VolumeName(name)] = true
	}
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		for _, action := range operate.Of(phase) {
			name, from, _ := operate.As(action)
			if name == "" {
				continue
			}
			if problem := volumeNotMakeable(slot, phase, from, taken[name], made); problem != "" {
				problems = append(problems, slot.refusePhase(i, "phase %s of variant %q makes volume %s, %s", phase.Name, slot.Variant, name, problem))
			}
			taken[name], made = true, made+1
		}
	}
	return errors.Join(problems...)
}

// volumeNotMakeable says why a phase cannot make a volume from a dataset. It returns "" if it can.
func volumeNotMakeable(slot *Slot, phase *v1alpha1.Phase, from v1alpha1.DatasetPath, taken bool, made int) string {
	pools := PoolsOf(slot)
	isDevice := slices.ContainsFunc(slot.Volumes(), func(one volume.RunVolume) bool {
		return one.PoolOf == pools[VolumeOf(phase)] && naming.RunDataset(one.Name) == from && one.Dataset.Type == naming.DatasetVolume
	})
	switch {
	case phase.Operate == nil:
		return "beside a workload: use 'to' instead of 'as', or make it in a phase with operate"
	case taken:
		return "and another volume has this name: choose another one in as"
	case isDevice:
		return fmt.Sprintf("of dataset %s, which is a device: 'as' makes volumes of type Filesystem; use 'to' instead of 'as'", from)
	case made >= mostMade:
		return fmt.Sprintf("and earlier phases make %d: that is the limit of one benchmark; use 'to' instead of 'as'", mostMade)
	}
	return ""
}

// misplaces says why workloads would not find the data that a phase copies to a volume: each provisioner keeps data in a different folder
// of the dataset. It returns "" if they would find it, or if a provisioner is not known yet.
func misplaces(slot *Slot, phase *v1alpha1.Phase) string {
	if phase.Operate == nil {
		return ""
	}
	as, _, toVolume := operate.As(&phase.Operate.PoolAction)
	if _, _, copies := CopiesFill(slot, phase); !copies && as == "" {
		return ""
	}
	own, volumes := VolumeOf(phase), newPresence(slot)
	source, target := volumes.find(own), volumes.find(cmp.Or(toVolume, own))
	if source == nil || target == nil {
		return "" // another check reports that
	}
	from, to := source.Dataset.Provisioner, target.Dataset.Provisioner
	switch {
	case from == to || from == "" || to == "" || as != "" && to != volume.WithoutDriver: // another check refuses as on a driver's pool
		return ""
	case as != "":
		return fmt.Sprintf("makes volume %s of a dataset of provisioner %s, whose data workloads would not find there: write provisioner: %s in "+
			"the dataset of volume %s, or 'to', not 'as'", as, from, volume.WithoutDriver, own)
	}
	return fmt.Sprintf("copies the data of volume %s to volume %s, but workloads would not find it there, because the provisioners are "+
		"%s and %s: write the same one in the datasets of both, or another dataset in to", own, toVolume, from, to)
}

// Holding tracks the contents of volumes, such as the data of a fill, through copies, clones and replicas.
type Holding[T comparable] struct {
	slot *Slot
	// On has the current contents of each volume.
	On map[v1alpha1.VolumeName]T
	// snapshots are the contents of snapshots, as VOLUME@SNAPSHOT.
	snapshots map[string]T
}

// NewHolding returns the state before the first phase of a slot: all volumes are empty.
func NewHolding[T comparable](slot *Slot) *Holding[T] {
	return &Holding[T]{slot, map[v1alpha1.VolumeName]T{}, map[string]T{}}
}

// After applies the operations of a phase.
func (h *Holding[T]) After(phase *v1alpha1.Phase) {
	own, pools := VolumeOf(phase), PoolsOf(h.slot)
	for _, action := range operate.Of(phase) {
		taken := action.Snapshot
		for name, pool := range pools {
			path := naming.RunDataset(string(name))
			if taken != nil && pool == pools[own] && (path == taken.Dataset || taken.Recursive && below(path, taken.Dataset)) {
				h.snapshots[string(name)+"@"+string(taken.Name)] = h.On[name]
			}
		}
	}
	from, to, copies := CopiesFill(h.slot, phase)
	if !copies {
		return
	}
	var nothing T
	held := h.On[from]
	if clone := phase.Operate.Clone; clone != nil {
		held = h.snapshots[string(from)+"@"+string(clone.Snapshot)]
	}
	if held != nothing {
		h.On[to] = held
	}
}
