package design

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/volume"
)

// CannotProvide says why the provisioner of a volume cannot provide it as the slot requests. It returns "" if it can.
func CannotProvide(slot *Slot, wanted volume.RunVolume) string {
	provisioner, target := volume.Of(wanted), slot.Target.ZFS
	if naming.KeepsPools(target) && !provisioner.Keeps() {
		return fmt.Sprintf("reset: %s needs volumes of the agent, and the driver recreates its own: write reset: Pool", target.Reset)
	}
	if problem := cannotShare(slot, wanted); problem != "" {
		return problem
	}
	for i := range slot.Phases {
		if problem := misplaces(slot, &slot.Phases[i]); problem != "" && wanted.Dataset.Provisioner != volume.WithoutDriver {
			return fmt.Sprintf("phase %s %s", slot.Phases[i].Name, problem)
		}
	}
	return ProvisionerRefusal(slot, wanted)
}

// ProvisionerRefusal says why the provisioner of a volume cannot create it, or which phase on the volume it does not support. It returns ""
// if it can do everything.
func ProvisionerRefusal(slot *Slot, wanted volume.RunVolume) string {
	var phases []v1alpha1.Phase
	for i := range slot.Phases {
		if string(VolumeOf(&slot.Phases[i])) == wanted.Name {
			phases = append(phases, slot.Phases[i])
		}
	}
	return volume.Of(wanted).Refuses(wanted, phases)
}
