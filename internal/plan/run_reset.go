package plan

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// EarlierPool is a kept pool that still is the run's before.
type EarlierPool struct {
	Name string
	// RunName and RunUID are that run, HandsOn says that it leaves the pool to this one.
	RunName, RunUID string
	HandsOn         bool
}

// takeEarlier takes over the pools of the repetition before. What that one does not hand on the benchmark gives back, so that it is made anew.
func takeEarlier(state RunState, decision *RunDecision) {
	earlier := state.Pools.Earlier
	if earlier.HandsOn {
		decision.Actions = []RunAction{{Kind: TakePools}}
		decision.Message = fmt.Sprintf("going on with BenchmarkPool %s of run %s", earlier.Name, earlier.RunName)
		return
	}
	decision.Message = fmt.Sprintf("BenchmarkPool %s was run %s's, which does not hand it on: waiting for it to be gone", earlier.Name, earlier.RunName)
	decision.WakeAt = state.Now.Add(foreignRecheck)
}

// makeAnew deletes kept pools that turn out not to be as asked, as long as nothing has begun on them. They are then made as for a first run.
func makeAnew(state RunState, decision RunDecision) *RunDecision {
	pools := state.Pools
	if jobs, _ := state.jobs(); jobs > 0 || state.Volume.Left() || state.Pods > 0 {
		ending := invalid(v1alpha1.ReasonPoolNotReady, true, "the kept pool is not as asked: %s: %s", pools.Reason, orNone(pools.Message))
		return &RunDecision{Phase: decision.Phase, Ending: ending, Reason: ending.Reason, Message: ending.Message}
	}
	decision.Actions = []RunAction{{Kind: DeletePools}}
	decision.Message = fmt.Sprintf("the kept pool is not as asked and is made anew: %s: %s", pools.Reason, pools.Message)
	decision.WakeAt = state.Now.Add(foreignRecheck)
	return &decision
}

// handsPoolsOn says that the pools of an ended run stay for the next one: the benchmark gives them back when there is none. The pools of a run
// that is deleted go with it, for nobody knows then what is on them.
func (s RunState) handsPoolsOn() bool { return s.Pools.Kept && s.Run.DeletionTimestamp.IsZero() }
