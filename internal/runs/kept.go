package runs

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// takeEarlier takes over the pools of the previous repetition. The benchmark deletes pools that were not passed on, so that they
// are recreated.
func takeEarlier(state State, decision *Decision) {
	earlier := state.Pools.Earlier
	if earlier.HandsOn {
		decision.Actions = []Action{{Kind: TakePools}}
		decision.Message = fmt.Sprintf("reusing BenchmarkPool %s of run %s", earlier.Name, earlier.RunName)
		return
	}
	decision.Message = fmt.Sprintf("BenchmarkPool %s belonged to run %s, which does not pass it on: waiting for its deletion", earlier.Name,
		earlier.RunName)
	decision.WakeAt = state.Now.Add(ForeignRecheck)
}

// recreateKept deletes kept pools that turn out to be wrong, if nothing of the run has used them yet. They are then recreated as for a
// first run.
func recreateKept(state State, decision Decision) *Decision {
	pools := state.Pools
	if jobs, _ := state.work(); jobs > 0 || state.Claims.Left() || state.Pods > 0 {
		ending := invalid(v1alpha1.ReasonPoolNotReady, true, "the kept pool is not as requested: %s: %s", pools.Reason, orNone(pools.Message))
		return new(decision.endsWith(ending))
	}
	decision.Actions = []Action{{Kind: DeletePools}}
	decision.Message = fmt.Sprintf("the kept pool is not as requested and is recreated: %s: %s", pools.Reason, pools.Message)
	decision.WakeAt = state.Now.Add(ForeignRecheck)
	return &decision
}

// handsPoolsOn reports whether the pools of a finished run stay for the next one. The benchmark deletes them if there is no next run. The
// pools of a deleted run are deleted with it, because their contents are unknown.
func (s State) handsPoolsOn() bool { return s.Pools.Kept && s.Run.DeletionTimestamp.IsZero() }

// HandsOn reports whether a run leaves its pools in a known state for the next one: it is finished, valid, and torn down.
func HandsOn(run *v1alpha1.BenchmarkRun) bool {
	ending := RecordedEnding(run)
	return ending != nil && ending.Valid && Settled(run) && run.DeletionTimestamp.IsZero()
}
