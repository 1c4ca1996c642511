package design

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/volume"
)

// Volumes returns the volumes of a slot, including those that its phases make.
func (s *Slot) Volumes() []volume.RunVolume { return volume.All(s.Target, s.Phases) }

// PoolsOf maps each volume of a zfs target to the volume that owns its pool.
func PoolsOf(slot *Slot) map[v1alpha1.VolumeName]string {
	pools := map[v1alpha1.VolumeName]string{}
	if slot.Target.ZFS == nil {
		return pools
	}
	for _, one := range slot.Volumes() {
		pools[v1alpha1.VolumeName(one.Name)] = one.PoolOf
	}
	return pools
}

// checkPools returns errors for volumes on pools that do not exist, and for anything that volumes on a shared pool cannot do.
func checkPools(slot *Slot) error {
	zfs := slot.Target.ZFS
	if zfs == nil {
		return nil
	}
	owners := []string{naming.VolumeData}
	for _, given := range zfs.Volumes {
		if given.PoolOf == "" {
			owners = append(owners, string(given.Name))
		}
	}
	var problems []error
	for i, given := range zfs.Volumes {
		if given.PoolOf != "" && !slices.Contains(owners, string(given.PoolOf)) {
			problems = append(problems, &Mistake{fmt.Sprintf("spec.target.zfs.volumes[%d].poolOf", i), &SpecError{v1alpha1.ReasonSpecInvalid,
				fmt.Sprintf("volume %s of variant %q lies on the pool of %q, which is no volume with a pool of its own: write one of these in "+
					"poolOf: %s", given.Name, slot.Variant, given.PoolOf, strings.Join(owners, ", "))}})
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	for _, one := range slot.Volumes() {
		if problem := cannotShare(slot, one); problem != "" {
			problems = append(problems, Refuse(v1alpha1.ReasonNotSupported, "variant %q: %s", slot.Variant, problem))
			break // the other volumes on the pool have the same problem
		}
	}
	return errors.Join(append(problems, checkShares(slot)...)...)
}

// cannotShare says why the provisioner of a volume cannot share its pool with other volumes. It returns "" if it can, or if there are none.
func cannotShare(slot *Slot, one volume.RunVolume) string {
	others := volume.On(slot.Volumes(), one.PoolOf)
	if len(others) < 2 || volume.Of(one).Shares() {
		return ""
	}
	var names []string
	for _, other := range others {
		if names = append(names, other.Name); other.MadeIn != "" {
			return fmt.Sprintf("phase %s makes volume %s on a pool of provisioner %s, which has one volume for each pool: write provisioner: %s "+
				"in the dataset of volume %s, or 'to', not 'as'", other.MadeIn, other.Name, one.Dataset.Provisioner, volume.WithoutDriver, one.Name)
		}
	}
	return fmt.Sprintf("volumes %s lie on one pool, and provisioner %s needs a pool for each volume: write provisioner: %s in the dataset of "+
		"each, or pool in place of poolOf", strings.Join(names, " and "), one.Dataset.Provisioner, volume.WithoutDriver)
}

// checkShares returns errors for fills of a share of a space that is not fixed: a dataset without a size gets the space that the others on
// its pool leave.
func checkShares(slot *Slot) (problems []error) {
	there := newPresence(slot)
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		on := there.on(VolumeOf(phase))
		own := slices.IndexFunc(on, func(one volume.RunVolume) bool { return one.Name == string(VolumeOf(phase)) })
		there.after(phase)
		if phase.Fill == nil || phase.Fill.To == "" || own < 0 || len(on) < 2 || on[own].Dataset.Size != nil && phase.Fill.Of != "Pool" {
			continue
		}
		remedy := "give its dataset a size"
		switch {
		case on[own].MadeIn != "":
			remedy = "write fill.size"
		case phase.Fill.Of == "Pool":
			remedy = "write of: Volume, and give its dataset a size, or write fill.size"
		default:
			remedy += ", or write fill.size"
		}
		problems = append(problems, slot.refusePhase(i, "phase %s of variant %q fills %s of volume %s, which shares its pool, so that this "+
			"depends on what is on the other volumes: %s", phase.Name, slot.Variant, phase.Fill.To, on[own].Name, remedy))
	}
	return problems
}
