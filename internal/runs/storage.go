package runs

import (
	"fmt"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// preparePools makes the pools and waits for them; nil once they are ready.
func preparePools(state State, i int, decision Decision) *Decision {
	pools, spec := state.Pools, state.Run.Spec.Phases[i]
	decision.Reason = v1alpha1.ReasonPreparingVolume
	switch {
	case !pools.Needed || pools.Exist && pools.Ready && !pools.Deleting:
		return nil
	case pools.Foreign != "":
		decision.Reason, decision.Message = v1alpha1.ReasonNameTaken,
			fmt.Sprintf("BenchmarkPool %s exists and is not this run's: waiting for it to be gone", pools.Foreign)
		decision.WakeAt = state.Now.Add(ForeignRecheck)
	case pools.Deleting:
		decision.Message = "waiting for an earlier pool of the same name to be gone"
		if pools.Kept { // its labels name the run before: nothing tells this one of its end
			decision.WakeAt = state.Now.Add(ForeignRecheck)
		}
	case pools.Earlier != nil:
		takeEarlier(state, &decision)
	case pools.KeptFrom != nil && pools.Broken:
		return makeAnew(state, decision)
	case !pools.Exist:
		decision.Actions = []Action{{Kind: CreatePools}}
		decision.Message = "making the pools of the run"
	default:
		decision.Message = fmt.Sprintf("phase %s (%d of %d) waits for its pools: %s: %s", spec.Name, i+1, len(state.Phases), pools.Reason,
			pools.Message)
	}
	if overdue := state.startOverdue(i); !state.Now.Before(overdue) {
		// Another attempt would get the same disks; in the place of a kept pool, a new one.
		ending := invalid(v1alpha1.ReasonPoolNotReady, pools.KeptFrom != nil, "the pools for phase %s were not ready within %s: %s: %s",
			spec.Name, spec.StartDeadline.Duration.Duration, pools.Reason, orNone(pools.Message))
		return &Decision{Phase: decision.Phase, Ending: ending, Reason: ending.Reason, Message: ending.Message}
	} else if decision.WakeAt.IsZero() {
		decision.WakeAt = overdue
	}
	return &decision
}

// waitingSince is when nothing but the storage was left to wait for: the end of the phase before, or the start of the run.
func (s State) waitingSince(i int) time.Time {
	if name := s.Run.Spec.Phases[i].Name; s.Run.Spec.Group != nil && ReadyFor(s.Run.Status.ReadyFor, name) {
		if len(notReady(s, name)) > 0 {
			return s.Now // it is the others who are waited for
		}
		return lastReady(s)
	}
	if i > 0 && s.Phases[i-1].Stored != nil {
		return s.Phases[i-1].Stored.StoredAt
	}
	if s.Run.Status.StartedAt != nil {
		return s.Run.Status.StartedAt.Time
	}
	return s.Now
}

// poolsEnding ends a run whose pools went, or went wrong, after its first phase had begun: what is recreated is empty, and what is
// out of order measures something else.
func poolsEnding(state State) *Ending {
	pools := state.Pools
	switch {
	case !pools.Needed:
		return nil
	case !pools.Exist || pools.Deleting:
		return invalid(v1alpha1.ReasonPoolLost, true, "a BenchmarkPool of the run was deleted while the run needed it")
	case pools.Broken:
		return invalid(v1alpha1.ReasonPoolNotReady, true, "the pool is not in order any more: %s: %s", pools.Reason, pools.Message)
	}
	return nil
}
