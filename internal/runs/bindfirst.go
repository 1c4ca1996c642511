package runs

import (
	"fmt"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// UnwatchedRecheck is how often the manager checks whether a driver has destroyed a volume. There is no watch: a cluster may not
// have the driver's kinds.
const UnwatchedRecheck = 2 * time.Second

// StuckRecheck is how often it checks that once the teardown is stuck.
const StuckRecheck = 30 * time.Second

// bindFirst creates the volumes and waits until they are bound and as requested, if their provisioner needs that. It returns nil once they
// are. It runs before the first pod, so that nothing is written to a wrong volume.
func bindFirst(state State, i int, decision Decision) *Decision {
	volumes, pools, spec := state.Claims, state.Pools, state.Run.Spec.Phases[i]
	if !volumes.BindFirst || volumes.Foreign || volumes.Exists && volumes.Deleting {
		return nil
	}
	end := func(ending *Ending) *Decision { ended := decision.endsWith(ending); return &ended }
	decision.Reason = v1alpha1.ReasonPreparingVolume
	reason, what := v1alpha1.ReasonVolumeNotBound, "PersistentVolumeClaim "+naming.ClaimName(state.Run, naming.VolumeData)+" is not bound"
	switch {
	case !volumes.Exists:
		decision.Actions = []Action{{Kind: CreateVolumes}}
		decision.Message = "creating the volumes of the run"
	case !volumes.Bound:
		if volumes.Problem != "" {
			decision.Reason, what = v1alpha1.ReasonVolumeNotBound, volumes.Problem
		}
		decision.Message = fmt.Sprintf("phase %s (%d of %d): the driver has not created its volume: %s", spec.Name, i+1, len(state.Phases), what)
	case len(pools.Differing) > 0:
		// Another attempt would have the same result.
		return end(invalid(v1alpha1.ReasonPropertiesDiffer, false, "nothing was written: the volume is not as requested: %s",
			strings.Join(pools.Differing, "; ")))
	case len(pools.Unread) > 0:
		reason, what = v1alpha1.ReasonPoolNotReady, "the agent on node "+state.Run.Spec.NodeName+" has not read the properties of "+
			strings.Join(pools.Unread, ", ")
		if len(pools.Unasked) > 0 {
			decision.Actions = []Action{{Kind: ReportDatasets}}
		}
		decision.Message = fmt.Sprintf("phase %s (%d of %d) waits: %s", spec.Name, i+1, len(state.Phases), what)
	default:
		return nil
	}
	overdue := state.startOverdue(i)
	if !state.Now.Before(overdue) {
		return end(invalid(reason, false, "the volumes for phase %s did not exist within %s: %s", spec.Name,
			spec.StartDeadline.Duration.Duration, what))
	}
	decision.WakeAt = overdue
	return &decision
}
