package runs

import (
	"fmt"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// UnwatchedRecheck is how often it is looked whether a driver has destroyed a volume. Nothing that is watched tells of it: the
// manager does not watch kinds that a cluster may not have.
const UnwatchedRecheck = 2 * time.Second

// prepareDriven makes volumes of a driver and waits until they are bound and found to be as asked; nil once they are. That comes before
// the first pod, so that nothing is written to a volume that is another than was asked for.
func prepareDriven(state State, i int, decision Decision) *Decision {
	volumes, pools, spec := state.Volume, state.Pools, state.Run.Spec.Phases[i]
	if !volumes.Driven || volumes.Foreign || volumes.Exists && volumes.Deleting {
		return nil
	}
	end := func(ending *Ending) *Decision {
		return &Decision{Phase: decision.Phase, Ending: ending, Reason: ending.Reason, Message: ending.Message}
	}
	decision.Reason = v1alpha1.ReasonPreparingVolume
	reason, what := v1alpha1.ReasonVolumeNotBound, "PersistentVolumeClaim "+naming.VolumeName(state.Run.Name)+" is not bound"
	switch {
	case !volumes.Exists:
		decision.Actions = []Action{{Kind: CreateVolume}}
		decision.Message = "making the volumes of the run"
	case !volumes.Bound:
		if volumes.Problem != "" {
			decision.Reason, what = v1alpha1.ReasonVolumeNotBound, volumes.Problem
		}
		decision.Message = fmt.Sprintf("phase %s (%d of %d) waits for the driver to make its volume: %s", spec.Name, i+1, len(state.Phases), what)
	case len(pools.Differing) > 0:
		// Another attempt would get the same.
		return end(invalid(v1alpha1.ReasonPropertiesDiffer, false, "nothing was written: the volume is not as asked: %s",
			strings.Join(pools.Differing, "; ")))
	case len(pools.Unread) > 0:
		reason, what = v1alpha1.ReasonPoolNotReady, "the agent on node "+state.Run.Spec.NodeName+" has not read the properties of "+
			strings.Join(pools.Unread, ", ")
		if pools.Unasked {
			decision.Actions = []Action{{Kind: ReportDatasets}}
		}
		decision.Message = fmt.Sprintf("phase %s (%d of %d) waits: %s", spec.Name, i+1, len(state.Phases), what)
	default:
		return nil
	}
	overdue := state.startOverdue(i)
	if !state.Now.Before(overdue) {
		return end(invalid(reason, false, "the volumes for phase %s were not there within %s: %s", spec.Name,
			spec.StartDeadline.Duration.Duration, what))
	}
	decision.WakeAt = overdue
	return &decision
}
