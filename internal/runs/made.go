package runs

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
)

// MadeBefore returns the volumes that the phases before phase i have made and that no phase has destroyed since.
func MadeBefore(run *v1alpha1.BenchmarkRun, i int) (made []volume.RunVolume) {
	all := volume.RunVolumes(run)
	for k := range run.Spec.Phases[:i] {
		phase := &run.Spec.Phases[k]
		for _, action := range operate.Of(phase) {
			if destroy := action.DestroyDataset; destroy != nil {
				made = slices.DeleteFunc(made, func(one volume.RunVolume) bool {
					return one.PoolOf == HomeOf(run, phase.Volume) && naming.RunDataset(one.Name) == destroy.Dataset
				})
			}
		}
		for _, one := range all {
			if one.MadeIn == phase.Name {
				made = append(made, one)
			}
		}
	}
	return made
}

// MissingClaim says what a missing claim means. A volume of the target, or one that a phase has worked on, is lost. The claim of a made
// volume that the next phase works on still has to be created. For other volumes, it means nothing: their claims are not looked up.
type MissingClaim int

// The meanings of a missing claim.
const (
	NotDue MissingClaim = iota
	ToCreate
	Lost
)

// MeaningOfMissingClaim says what it means that the claim of a volume is missing. The results of the phases must already be in the state.
func MeaningOfMissingClaim(state State, wanted volume.RunVolume) MissingClaim {
	if wanted.MadeIn == "" {
		return Lost
	}
	next := slices.IndexFunc(state.Phases, func(phase PhaseState) bool { return phase.Stored == nil })
	for i, phase := range state.Run.Spec.Phases {
		recorded := Recorded(state.Run, phase.Name)
		switch {
		case phase.Operate != nil || !recorded && i != next || !worksOn(state.Run, phase, wanted.Name):
			continue
		case recorded:
			return Lost
		}
		return ToCreate
	}
	return NotDue
}

// worksOn reports whether the pod of a phase mounts a volume.
func worksOn(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, name string) bool {
	return slices.ContainsFunc(PodVolumes(run, phase), func(one PodVolume) bool { return one.Name == name })
}

// awaitMade waits until the agent has mounted the volumes that earlier phases have made, whichever volumes this phase works on: nothing
// else must happen on the pool while it is measured. It returns nil once they are mounted.
func awaitMade(state State, i int, decision Decision) *Decision {
	spec := state.Run.Spec.Phases[i]
	for _, one := range MadeBefore(state.Run, i) {
		if state.Pools.Datasets[one.Name] != "" {
			continue
		}
		decision.Reason = v1alpha1.ReasonPreparingVolume
		decision.Message = fmt.Sprintf("phase %s (%d of %d) waits until the agent has mounted volume %s", spec.Name, i+1,
			len(state.Phases), one.Name)
		if overdue := state.startOverdue(i); state.Now.Before(overdue) {
			decision.WakeAt = overdue
			return &decision
		}
		return new(decision.endsWith(invalid(v1alpha1.ReasonPoolNotReady, false,
			"volume %s, which phase %s has made, was not mounted within %s: see the log of the agent on node %s", one.Name, one.MadeIn,
			spec.StartDeadline.Duration.Duration, state.Run.Spec.NodeName)))
	}
	return nil
}
