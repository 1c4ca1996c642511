package plan

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
)

// holds says whether the benchmark has the node.
func holds(state BenchmarkState) bool {
	return state.Lease != nil && state.Lease.Holder == string(state.Benchmark.UID)
}

// releaseIfIdle gives the node back once nothing of the benchmark runs on it.
func releaseIfIdle(state BenchmarkState, decision *BenchmarkDecision) {
	if holds(state) && unsettled(state) == nil {
		decision.do(BenchmarkAction{Kind: ReleaseLease})
	}
}

// ChosenNode is the node of the experiment: where its runs already are, else what the status says, else the one with
// the shortest line. All runs are made on one node, for only then can they be compared.
func ChosenNode(state BenchmarkState) string {
	for _, run := range state.Runs {
		if run.Spec.Experiment == state.Experiment {
			return run.Spec.NodeName
		}
	}
	wish := state.Benchmark.Status.NodeName
	if holds(state) {
		wish = state.Lease.Node
	}
	best := NodeState{}
	for _, node := range state.Nodes {
		if node.Name == wish {
			return node.Name
		}
		if best.Name == "" || node.Line < best.Line || (node.Line == best.Line && node.Name < best.Name) {
			best = node
		}
	}
	return best.Name
}

// stepLease stands in line for the node and takes it when it is free.
func stepLease(state BenchmarkState, decision *BenchmarkDecision) bool {
	if holds(state) && state.Lease.Node == decision.NodeName {
		return false
	}
	if holds(state) {
		releaseIfIdle(state, decision)
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "node %s no longer fits: changing to %s", state.Lease.Node, decision.NodeName)
		return true
	}
	decision.InLine = true
	own := state.Benchmark.Status.Queue
	for _, other := range state.Waiting {
		if own == nil || other.Since.Before(own.Since.Time) || (other.Since.Equal(own.Since.Time) && other.UID < string(state.Benchmark.UID)) {
			decision.Ahead++
		}
	}
	node := decision.NodeName
	switch {
	case state.Lease != nil && state.Lease.Abandoned:
		decision.do(BenchmarkAction{Kind: BreakLease})
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "node %s was held by %s, which no longer exists: taking it over", node, state.Lease.HolderName)
	case state.Lease != nil:
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "number %d in line for node %s, which %s has", decision.Ahead+1, node, state.Lease.HolderName)
	case decision.Ahead > 0:
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "number %d in line for node %s", decision.Ahead+1, node)
	case own == nil || state.Benchmark.Status.NodeName != node:
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "joining the line for node %s", node)
	default:
		decision.do(BenchmarkAction{Kind: TakeLease})
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "taking node %s", node)
	}
	return true
}
