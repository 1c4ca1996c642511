package experiment

import (
	"regexp"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/volume"
)

// driverRecheck is how often to check a partly installed driver. The manager does not watch CRDs.
const driverRecheck = 30 * time.Second

// DefaultProvisioner is the provisioner for targets that name none. The provisioner of existing runs comes first, so that a driver that is
// installed or removed does not mix provisioners within one experiment. Otherwise it is the preferred provisioner that the cluster
// supports.
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
		resolved := volume.RunVolumes(run)
		for k, left := range volume.TargetVolumes(v1alpha1.Target{ZFS: asked}) {
			if left.Dataset.Provisioner == "" && k < len(resolved) && resolved[k].Dataset.Provisioner != "" {
				return resolved[k].Dataset.Provisioner
			}
		}
	}
	return volume.Default(state.Drivers)
}

// stepDriver stops at a zfs target if no agent is installed, if its provisioner cannot provide a requested volume, or if the provisioner's
// driver is not installed. It comes after stepFinish, so that results stay even if the driver is removed.
func stepDriver(state State, decision *Decision) bool {
	if unsettled(state) != nil {
		return false
	}
	if refuseClassOfRun(state, decision) {
		return true
	}
	provisioner := DefaultProvisioner(state)
	for _, slot := range design.OneOfEach(state.Slots) {
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
		slot.Target = design.ResolveTarget(slot.Target, "", "", provisioner)
		refusal := refusedVolume(state, &slot)
		if refusal == nil {
			continue
		}
		if refusal.recheck {
			decision.WakeAt = state.Now.Add(driverRecheck)
		}
		decision.say(PositionStalled, refusal.reason, "variant %q has provisioner: %s: %s", slot.Variant, refusal.provisioner, refusal.problem)
		releaseIfIdle(state, decision)
		return true
	}
	return false
}

// refusal is the reason why a volume of a slot cannot be provided.
type refusal struct {
	provisioner, reason, problem string
	recheck                      bool
}

// refusedVolume finds a volume of a slot that its provisioner cannot provide, or whose driver is not installed. It returns nil if there is
// none.
func refusedVolume(state State, slot *design.Slot) *refusal {
	var missing *refusal
	for _, wanted := range volume.TargetVolumes(slot.Target) {
		provisioner, name := volume.Of(wanted), wanted.Dataset.Provisioner
		if problem := design.CannotProvide(slot, wanted); problem != "" {
			return &refusal{provisioner: name, reason: v1alpha1.ReasonNotSupported,
				problem: problem + "; or write provisioner: " + volume.WithoutDriver}
		}
		driver, observed := provisioner.Driver(), state.Drivers[name]
		if driver == nil || observed.Installed || missing != nil {
			continue
		}
		missing = &refusal{provisioner: name, reason: v1alpha1.ReasonDriverNotInstalled, problem: driver.Missing(observed),
			recheck: observed.Lacks != ""}
	}
	return missing
}

// runClass is the pattern of the StorageClass names of runs, as in the policy storagebench-claims.
var runClass = regexp.MustCompile(`^sb-[0-9a-f]{16}-[a-z]([-a-z0-9]*[a-z0-9])?$`)

// refuseClassOfRun stops at a target that names the StorageClass of a run. The policy lets the manager create claims with such classes, but
// it must not do so on behalf of other users: the disks behind a class are granted to one namespace.
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
