package runs

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// takeEarlier takes over the pools of the repetition before. What that one does not hand on the benchmark gives back, so that it is
// recreated.
func takeEarlier(state State, decision *Decision) {
	earlier := state.Pools.Earlier
	if earlier.HandsOn {
		decision.Actions = []Action{{Kind: TakePools}}
		decision.Message = fmt.Sprintf("going on with BenchmarkPool %s of run %s", earlier.Name, earlier.RunName)
		return
	}
	decision.Message = fmt.Sprintf("BenchmarkPool %s was run %s's, which does not hand it on: waiting for it to be gone", earlier.Name,
		earlier.RunName)
	decision.WakeAt = state.Now.Add(ForeignRecheck)
}

// makeAnew deletes kept pools that turn out not to be as asked, as long as nothing has begun on them. They are then made as for a first
// run.
func makeAnew(state State, decision Decision) *Decision {
	pools := state.Pools
	if jobs, _ := state.jobs(); jobs > 0 || state.Volume.Left() || state.Pods > 0 {
		ending := invalid(v1alpha1.ReasonPoolNotReady, true, "the kept pool is not as asked: %s: %s", pools.Reason, orNone(pools.Message))
		return &Decision{Phase: decision.Phase, Ending: ending, Reason: ending.Reason, Message: ending.Message}
	}
	decision.Actions = []Action{{Kind: DeletePools}}
	decision.Message = fmt.Sprintf("the kept pool is not as asked and is recreated: %s: %s", pools.Reason, pools.Message)
	decision.WakeAt = state.Now.Add(ForeignRecheck)
	return &decision
}

// handsPoolsOn says that the pools of an ended run stay for the next one: the benchmark gives them back when there is none. The pools of a
// run that is deleted go with it, for nobody knows then what is on them.
func (s State) handsPoolsOn() bool { return s.Pools.Kept && s.Run.DeletionTimestamp.IsZero() }

// HandsOn says whether a run leaves its pools in a known state for the next one: it is over, is valid, and nothing of it is left.
func HandsOn(run *v1alpha1.BenchmarkRun) bool {
	ending := RecordedEnding(run)
	return ending != nil && ending.Valid && Settled(run) && run.DeletionTimestamp.IsZero()
}
