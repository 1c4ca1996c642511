package runs

import (
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// preparePools creates the pools and waits for them. It returns nil once they are ready.
func preparePools(state State, i int, decision Decision) *Decision {
	pools, spec := state.Pools, state.Run.Spec.Phases[i]
	decision.Reason = v1alpha1.ReasonPreparingVolume
	switch {
	case !pools.Needed || pools.Exist && pools.Ready && !pools.Deleting && !state.strangeDisks():
		return nil
	case pools.Foreign != "":
		decision.Reason, decision.Message = v1alpha1.ReasonNameTaken,
			fmt.Sprintf("BenchmarkPool %s belongs to another owner: waiting for its deletion", pools.Foreign)
		decision.WakeAt = state.Now.Add(ForeignRecheck)
	case pools.Deleting:
		decision.Message = "waiting for the deletion of an earlier pool of the same name"
		if pools.Kept { // its labels name the earlier run: no watch reports its deletion to this one
			decision.WakeAt = state.Now.Add(ForeignRecheck)
		}
	case pools.Earlier != nil:
		takeEarlier(state, &decision)
	case pools.KeptFrom != nil && (pools.Broken || state.strangeDisks()):
		return recreateKept(state, decision)
	case !pools.Exist:
		decision.Actions = []Action{{Kind: CreatePools}}
		decision.Message = "creating the pools of the run"
	default:
		decision.Message = fmt.Sprintf("phase %s (%d of %d) waits for its pools: %s: %s", spec.Name, i+1, len(state.Phases), pools.Reason,
			pools.Message)
	}
	if overdue := state.startOverdue(i); !state.Now.Before(overdue) {
		// Another attempt would get the same disks, unless it gets a new pool in place of a kept one.
		ending := invalid(v1alpha1.ReasonPoolNotReady, pools.KeptFrom != nil, "the pools for phase %s were not ready within %s: %s: %s",
			spec.Name, spec.StartDeadline.Duration.Duration, pools.Reason, orNone(pools.Message))
		return new(decision.endsWith(ending))
	} else if decision.WakeAt.IsZero() {
		decision.WakeAt = overdue
	}
	return &decision
}

// waitingSince returns the time since which the phase waits only for its storage: the end of the previous phase, or the start of the run.
func (s State) waitingSince(i int) time.Time {
	if name := s.Run.Spec.Phases[i].Name; s.Run.Spec.Group != nil && ReadyFor(s.Run.Status.ReadyFor, name) {
		if len(notReady(s, name)) > 0 {
			return s.Now // it waits for its peers
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

// poolsEnding ends a run whose pools were deleted or became wrong after its first phase had started. A recreated pool is empty, and
// a wrong one measures something else.
func poolsEnding(state State) *Ending {
	pools := state.Pools
	switch {
	case !pools.Needed:
		return nil
	case !pools.Exist || pools.Deleting:
		return invalid(v1alpha1.ReasonPoolLost, true, "a BenchmarkPool of the run was deleted while the run needed it")
	case pools.Broken || state.strangeDisks():
		return invalid(v1alpha1.ReasonPoolNotReady, true, "the pool is no longer as requested: %s: %s", pools.Reason, pools.Message)
	}
	return nil
}

// strangeDisks reports whether a pool has other disks than in its spec although no phase that has begun changes its disks.
func (s State) strangeDisks() bool {
	return slices.ContainsFunc(s.Pools.OtherDisks, func(pool string) bool {
		for i := range s.Run.Spec.Phases {
			phase := &s.Run.Spec.Phases[i]
			begun := s.Phases[i].Executor.Exists || s.Phases[i].Stored != nil
			if begun && changesDisks(phase) && HomeOf(s.Run, phase.Volume) == pool {
				return false
			}
		}
		return true
	})
}
