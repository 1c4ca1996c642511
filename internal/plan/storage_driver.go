package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// RunParent is the path of the dataset below which a driver makes the dataset of a volume. It carries what a StorageClass of the
// driver cannot say.
const RunParent v1alpha1.DatasetPath = "parent"

// unwatchedRecheck is how often it is looked whether a driver has destroyed a volume. Nothing that is watched tells of it: the
// manager does not watch kinds that a cluster may not have.
const unwatchedRecheck = 2 * time.Second

// DrivenPath is the path below its pool of the dataset that a driver made for a PersistentVolume.
func DrivenPath(persistentVolume string) v1alpha1.DatasetPath {
	return RunParent + "/" + v1alpha1.DatasetPath(persistentVolume)
}

// prepareDriven makes volumes of a driver and waits until they are bound and found to be as asked; nil once they are. That comes before
// the first pod, so that nothing is written to a volume that is another than was asked for.
func prepareDriven(state RunState, i int, decision RunDecision) *RunDecision {
	volumes, pools, spec := state.Volume, state.Pools, state.Run.Spec.Phases[i]
	if !volumes.Driven || volumes.Foreign || volumes.Exists && volumes.Deleting {
		return nil
	}
	end := func(ending *Ending) *RunDecision {
		return &RunDecision{Phase: decision.Phase, Ending: ending, Reason: ending.Reason, Message: ending.Message}
	}
	decision.Reason = v1alpha1.ReasonPreparingVolume
	reason, what := v1alpha1.ReasonVolumeNotBound, "PersistentVolumeClaim "+VolumeName(state.Run.Name)+" is not bound"
	switch {
	case !volumes.Exists:
		decision.Actions = []RunAction{{Kind: CreateVolume}}
		decision.Message = "making the volumes of the run"
	case !volumes.Bound:
		if volumes.Problem != "" {
			decision.Reason, what = v1alpha1.ReasonVolumeNotBound, volumes.Problem
		}
		decision.Message = fmt.Sprintf("phase %s (%d of %d) waits for the driver to make its volume: %s", spec.Name, i+1, len(state.Phases), what)
	case len(pools.Differing) > 0:
		// Another attempt would get the same.
		return end(invalid(v1alpha1.ReasonPropertiesDiffer, false, "nothing was written: the volume is not as asked: %s", strings.Join(pools.Differing, "; ")))
	case len(pools.Unread) > 0:
		reason, what = v1alpha1.ReasonPoolNotReady, "the agent on node "+state.Run.Spec.NodeName+" has not read the properties of "+strings.Join(pools.Unread, ", ")
		if pools.Unasked {
			decision.Actions = []RunAction{{Kind: ReportDatasets}}
		}
		decision.Message = fmt.Sprintf("phase %s (%d of %d) waits: %s", spec.Name, i+1, len(state.Phases), what)
	default:
		return nil
	}
	overdue := state.startOverdue(i)
	if !state.Now.Before(overdue) {
		return end(invalid(reason, false, "the volumes for phase %s were not there within %s: %s", spec.Name, spec.StartDeadline.Duration.Duration, what))
	}
	decision.WakeAt = overdue
	return &decision
}

// EffectiveDifferences compares what is in effect on the dataset that a driver made with what was asked for, and what was not asked for
// with the pool's root, from which it is inherited. Nothing is known of the dataset until read is true.
func EffectiveDifferences(volume RunVolume, pool *v1alpha1.BenchmarkPool, dataset string) (differences []string, read bool) {
	is, root := map[string]v1alpha1.EffectiveProperty{}, map[string]string{}
	for _, property := range pool.Status.Properties {
		switch property.Dataset {
		case dataset:
			is[property.Name] = property
		case PoolName(pool):
			root[property.Name] = property.Value
		}
	}
	if len(is) == 0 {
		return nil, false
	}
	wanted := map[string]string{}
	for name, value := range root {
		if _, has := is[name]; has && Inherited(name) { // a volume has no recordsize, for example
			wanted[name] = value
		}
	}
	for name, value := range volume.Dataset.Properties {
		wanted[name] = string(value)
	}
	switch size := volume.Dataset.Size; {
	case size == nil: // the pool's, which is no limit
	case volume.Dataset.Type == DatasetVolume:
		wanted["volsize"] = fmt.Sprint(size.Value())
	default:
		wanted["refquota"] = fmt.Sprint(size.Value())
	}
	for name, value := range wanted {
		property, found := is[name]
		switch {
		case !found:
			differences = append(differences, fmt.Sprintf("%s of %s is not there, asked for is %s", name, dataset, value))
		case !sameValue(value, property.Value):
			differences = append(differences, fmt.Sprintf("%s of %s is %s (%s), asked for is %s", name, dataset, property.Value, property.Source, value))
		}
	}
	slices.Sort(differences)
	return differences, true
}
