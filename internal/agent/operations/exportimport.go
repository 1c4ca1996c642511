package operations

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
)

var exportImportKind = traits{offline: true, begin: beginExport, stage: exportStage}

// beginExport records the load guid of the pool, which changes with each import.
func beginExport(state State) (string, *obstacle) {
	return state.Live.LoadGUID, state.inUse()
}

func (s State) inUse() *obstacle {
	if len(s.Users) == 0 {
		return nil
	}
	return waits(v1alpha1.ReasonPoolInUse, operationSoon, "waiting until pool %s is unused: %s", s.Live.Name, objects.SomeOf(s.Users))
}

func exportStage(state State) operationStage {
	if state.Live == nil {
		return running("the pool of BenchmarkPool %s is exported; its import follows", state.Operation.Spec.Pool)
	}
	if state.Live.ReadOnly {
		return operationStage{at: stageBlocked, reason: v1alpha1.ReasonPoolNotReady, recheck: operationSoon,
			message: fmt.Sprintf("pool %s is imported read-only", state.Live.Name)}
	}
	if state.Live.LoadGUID != state.handleDetail() {
		return done([]v1alpha1.OperationMetric{state.seconds()}, "pool %s was exported and imported: its caches are empty", state.Live.Name)
	}
	if used := state.inUse(); used != nil {
		return operationStage{at: stageBlocked, reason: used.reason, message: used.message, recheck: used.recheck}
	}
	return pending("exporting and importing pool %s", state.Live.Name)
}
