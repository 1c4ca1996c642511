package experiment

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
)

// held are the nodes that the benchmark has, sorted.
func held(state State) []string {
	var nodes []string
	for _, lease := range state.Leases {
		if lease.Holder == string(state.Benchmark.UID) {
			nodes = append(nodes, lease.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// holds says whether the benchmark has a node.
func holds(state State) bool {
	return len(held(state)) > 0
}

// releaseIfIdle gives the nodes back once nothing of the benchmark runs on them.
func releaseIfIdle(state State, decision *Decision) {
	if !busy(state) {
		release(state, decision)
	}
}

// release gives the nodes back, but not before the disks: kept pools go first, unless one does not go.
func release(state State, decision *Decision) {
	giveBack(state, decision, nil)
	if KeepsNode(state) {
		for _, pool := range state.Pools {
			if pool.Deleting && state.TeardownGrace > 0 && state.Now.Before(pool.DeletedAt.Add(state.TeardownGrace)) {
				decision.wake(pool.DeletedAt.Add(state.TeardownGrace))
			}
		}
		return
	}
	for _, node := range held(state) {
		decision.do(Action{Kind: ReleaseLease, Node: node})
		decision.wake(state.Now.Add(runs.ForeignRecheck)) // should the API server know of something that is at work yet
	}
}

// releaseBehind gives the nodes back behind runs that are all being deleted.
func releaseBehind(state State, decision *Decision, runs []v1alpha1.BenchmarkRun) {
	if !slices.ContainsFunc(runs, func(run v1alpha1.BenchmarkRun) bool { return run.DeletionTimestamp.IsZero() }) {
		releaseIfIdle(state, decision)
	}
}

// ChosenNodes are the nodes of the experiment, sorted: where its runs already are, else what the status says, else those with the
// shortest lines. All runs are made on the same nodes, for only then can they be compared. Nil if there are not enough.
func ChosenNodes(state State) []string {
	for _, run := range state.Runs {
		if run.Spec.Experiment == state.Experiment {
			return RunNodes(&run)
		}
	}
	wish := StatusNodes(state.Benchmark.Status)
	if has := held(state); len(has) > 0 && !subset(has, wish) {
		wish = has
	}
	count, fitting := nodeCount(state), slices.Clone(state.Nodes)
	if len(wish) == count && !slices.ContainsFunc(wish, func(node string) bool { return !offered(fitting, node) }) {
		return slices.Sorted(slices.Values(wish))
	}
	slices.SortStableFunc(fitting, func(a, b NodeState) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Name, b.Name)
	})
	fitting = slices.CompactFunc(fitting, func(a, b NodeState) bool { return a.Name == b.Name })
	if len(fitting) < count {
		return nil
	}
	var nodes []string
	for _, node := range fitting[:count] {
		nodes = append(nodes, node.Name)
	}
	slices.Sort(nodes)
	return nodes
}

func offered(nodes []NodeState, name string) bool {
	return slices.ContainsFunc(nodes, func(node NodeState) bool { return node.Name == name })
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

// stepLease stands in line for the nodes and takes them when they are free.
//
// Why nobody waits for ever, however many nodes each benchmark wants:
//   - Who has no node yet begins to take only when all of its nodes are free and nobody who has joined earlier waits for one of them. The
//     places in all lines are in one order, by the time of joining, so the first of all waits for holders alone.
//   - Nodes are taken one after another in the order of their names, and who has begun does not look at the lines any more. What it has
//     is the beginning of what it wants; if not, it gives everything back. So it waits only for a node behind all of its own, whose
//     holder has all of its nodes or waits for one further behind: the last of such a chain has all, and ends by itself.
//   - While it waits it keeps its place, so that only the few who joined earlier can be served before it.
func stepLease(state State, decision *Decision) bool {
	nodes, has := decision.NodeNames, held(state)
	switch {
	case len(has) > 0 && heldForAnother(state) && !busy(state):
		release(state, decision)
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "the experiment has changed: giving %s back, to join the line again", JoinNodes(has))
		return true
	case slices.Equal(has, nodes):
		return false
	case !subset(has, nodes):
		at := slices.IndexFunc(has, func(node string) bool { return !slices.Contains(nodes, node) })
		releaseIfIdle(state, decision)
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "node %s no longer fits: changing to %s", has[at], JoinNodes(nodes))
		return true
	case len(has) > 0:
		takeRest(state, decision, has)
	default:
		joinLine(state, decision)
	}
	return true
}

// heldForAnother says that a node was taken for an earlier experiment: who changes the spec again and again has to stand in line
// for each, as who makes a new benchmark has.
func heldForAnother(state State) bool {
	return slices.ContainsFunc(state.Leases, func(lease LeaseState) bool {
		return lease.Holder == string(state.Benchmark.UID) && lease.Experiment != "" && lease.Experiment != state.Experiment
	})
}

// takeRest takes what is missing, in order. Under runs that are at work it takes what it can get: they end if somebody else has it.
func takeRest(state State, decision *Decision, has []string) {
	nodes := decision.NodeNames
	if !slices.Equal(has, nodes[:len(has)]) && unsettled(state) == nil {
		release(state, decision)
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "one of the nodes %s was lost: giving the others back, to take them in order",
			JoinNodes(nodes))
		return
	}
	decision.InLine = true
	at := slices.IndexFunc(nodes, func(node string) bool { return !slices.Contains(has, node) })
	if lease := leaseOn(state, nodes[at]); lease != nil {
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "has %s and waits for node %s, which %s has", JoinNodes(has), nodes[at],
			lease.HolderName)
		breakAbandoned(state, decision, lease)
		return
	}
	decision.do(Action{Kind: TakeLease, Node: nodes[at]})
	decision.say(PositionQueued, v1alpha1.ReasonQueued, "taking node %s", nodes[at])
}

// joinLine joins the lines of all nodes, and begins to take them when it is the first in each and all are free.
func joinLine(state State, decision *Decision) {
	decision.InLine = true
	own := state.Benchmark.Status.Queue
	for _, other := range state.Waiting {
		if own == nil || other.Since.Before(own.Since.Time) || (other.Since.Equal(own.Since.Time) && other.UID < string(state.Benchmark.UID)) {
			decision.Ahead++
		}
	}
	nodes := decision.NodeNames
	line := "node " + nodes[0]
	if len(nodes) > 1 {
		line = "nodes " + JoinNodes(nodes)
	}
	for _, node := range nodes {
		lease := leaseOn(state, node)
		if lease == nil {
			continue
		}
		which := "which " + lease.HolderName + " has"
		if len(nodes) > 1 {
			which = "and " + lease.HolderName + " has " + node
		}
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "number %d in line for %s, %s", decision.Ahead+1, line, which)
		breakAbandoned(state, decision, lease)
		return
	}
	switch {
	case decision.Ahead > 0:
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "number %d in line for %s", decision.Ahead+1, line)
	case own == nil || !slices.Equal(StatusNodes(state.Benchmark.Status), nodes):
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "joining the line for %s", line)
	default:
		decision.do(Action{Kind: TakeLease, Node: nodes[0]})
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "taking node %s", nodes[0])
	}
}

// leaseOn is the Lease of a node that somebody else has.
func leaseOn(state State, node string) *LeaseState {
	for i := range state.Leases {
		if lease := &state.Leases[i]; lease.Node == node && lease.Holder != string(state.Benchmark.UID) {
			return lease
		}
	}
	return nil
}

// breakAbandoned takes a node back from a holder that is gone. No watch tells of the end of what it has left behind.
func breakAbandoned(state State, decision *Decision, lease *LeaseState) {
	if lease.Vanished {
		decision.wake(state.Now.Add(runs.ForeignRecheck))
	}
	if lease.Abandoned {
		decision.do(Action{Kind: BreakLease, Node: lease.Node})
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "node %s was held by %s, which no longer exists: taking it over", lease.Node,
			lease.HolderName)
	}
}
