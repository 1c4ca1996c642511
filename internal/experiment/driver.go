package experiment

import (
	"fmt"
	"regexp"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/volume"
)

// driverRecheck is how often a partly installed driver is checked. The manager does not watch CRDs.
const driverRecheck = 30 * time.Second

// DefaultProvisioner is used for targets that name none. The provisioner of existing runs comes first, so that a driver that is
// installed or removed does not mix provisioners within one experiment. Otherwise it is the driver, if it is installed.
func DefaultProvisioner(state State) string {
	byIndex := map[int32]*v1alpha1.ZFSTarget{}
	for i := range state.Slots {
		byIndex[state.Slots[i].Index] = state.Slots[i].Target.ZFS
	}
	for i := range state.Runs {
		run, asked := &state.Runs[i], byIndex[state.Runs[i].Spec.Index]
		if run.Spec.Experiment != state.Experiment || run.Spec.Target.ZFS == nil || asked == nil {
			continue
		}
		left, resolved := datasetsOf(asked), datasetsOf(run.Spec.Target.ZFS)
		for k := range left {
			if left[k].Provisioner == "" && k < len(resolved) && resolved[k].Provisioner != "" {
				return resolved[k].Provisioner
			}
		}
	}
	if state.Driver.Installed {
		return volume.ProvisionerOpenEBS
	}
	return volume.ProvisionerLocal
}

// datasetsOf are the datasets of a target, in the order of its volumes.
func datasetsOf(target *v1alpha1.ZFSTarget) []*v1alpha1.DatasetTemplate {
	datasets := []*v1alpha1.DatasetTemplate{volume.DatasetOrDefault(target.Dataset)}
	for i := range target.Volumes {
		datasets = append(datasets, volume.DatasetOrDefault(target.Volumes[i].Dataset))
	}
	return datasets
}

// stepDriver stops at a zfs target if no agent is installed, if the driver cannot do what is requested, or if it is not installed.
// It runs after the end of an experiment: results stay even if the driver is removed.
func stepDriver(state State, decision *Decision) bool {
	if unsettled(state) != nil {
		return false
	}
	if refuseClassOfRun(state, decision) {
		return true
	}
	for i := range state.Slots {
		slot := &state.Slots[i]
		if slot.Target.ZFS == nil {
			continue
		}
		if state.WithoutAgent {
			decision.say(PositionStalled, v1alpha1.ReasonAgentNotInstalled,
				"variant %q has a zfs target, and the agent is off: ask an admin to install it "+
					"(agent.enabled=true in the Helm chart, or the component config/agent), or write target.storageClass", slot.Variant)
			releaseIfIdle(state, decision)
			return true
		}
		resolved := *slot
		resolved.Target = ResolveTarget(slot.Target, "", "", DefaultProvisioner(state))
		if !usesProvisioner(resolved.Target.ZFS, volume.ProvisionerOpenEBS) {
			continue
		}
		reason, problem := "", driverCannot(&resolved)
		switch {
		case problem != "":
			reason = v1alpha1.ReasonNotSupported
			problem += "; or write provisioner: Local"
		case !state.Driver.Installed:
			reason, problem = v1alpha1.ReasonDriverNotInstalled, volume.DriverMissing(state.Driver)
			if state.Driver.Missing != "" {
				decision.WakeAt = state.Now.Add(driverRecheck)
			}
		default:
			continue
		}
		decision.say(PositionStalled, reason, "variant %q has provisioner: OpenEBS: %s", slot.Variant, problem)
		releaseIfIdle(state, decision)
		return true
	}
	return false
}

// driverCannot says which request of a slot can neither be set in a StorageClass nor be inherited by a dataset.
func driverCannot(slot *Slot) string {
	target := slot.Target.ZFS
	if naming.KeepsPools(target) {
		return fmt.Sprintf("reset: %s needs volumes of the agent, and the driver recreates its own: write reset: Pool", target.Reset)
	}
	for i, dataset := range datasetsOf(target) {
		name := naming.VolumeData
		if i > 0 {
			name = string(target.Volumes[i-1].Name)
		}
		if dataset.Provisioner != volume.ProvisionerOpenEBS {
			continue
		}
		if problem := volume.DriverCannotMake(dataset); problem != "" {
			return fmt.Sprintf("volume %s: %s", name, problem)
		}
		for k := range slot.Phases {
			phase := &slot.Phases[k]
			if on := string(phase.Volume); on != name && (on != "" || name != naming.VolumeData) {
				continue
			}
			if problem := volume.DriverCannotBear(phase); problem != "" {
				return fmt.Sprintf("phase %s: %s", phase.Name, problem)
			}
		}
	}
	return ""
}

// runClass is the pattern of the StorageClass names of runs, as in the policy storagebench-claims.
var runClass = regexp.MustCompile(`^sb-[0-9a-f]{16}-[a-z]([-a-z0-9]*[a-z0-9])?$`)

// refuseClassOfRun stops at a target with the StorageClass of a run. The policy lets the manager create claims on those. It must
// not do so on behalf of others: the disks below are granted to one namespace.
func refuseClassOfRun(state State, decision *Decision) bool {
	for i := range state.Slots {
		slot := &state.Slots[i]
		if slot.Target.StorageClass == nil || !runClass.MatchString(slot.Target.StorageClass.Name) {
			continue
		}
		decision.say(PositionStalled, v1alpha1.ReasonNotSupported,
			"variant %q names StorageClass %s, which is reserved for the claims of one run: name another in target.storageClass",
			slot.Variant, slot.Target.StorageClass.Name)
		releaseIfIdle(state, decision)
		return true
	}
	return false
}
