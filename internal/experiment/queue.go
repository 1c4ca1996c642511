package experiment

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
)

// held are the nodes that the benchmark holds, sorted.
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

// holds reports whether the benchmark holds a node.
func holds(state State) bool {
	return len(held(state)) > 0
}

// releaseIfIdle releases the nodes once nothing of the benchmark runs on them. While a run does not stop, because its node is lost, it
// releases those on which the other runs of the group were.
func releaseIfIdle(state State, decision *Decision) {
	if !busy(state) {
		release(state, decision)
		return
	}
	if len(lostRuns(state)) > 0 {
		releaseNodes(state, decision, atRest(state, held(state)))
	}
}

// release releases all nodes.
func release(state State, decision *Decision) { releaseNodes(state, decision, held(state)) }

// releaseNodes releases nodes after their disks: kept pools are deleted first, unless one is stuck, or stays for the next experiment.
func releaseNodes(state State, decision *Decision, nodes []string) {
	giveBack(state, decision, between(state))
	if slices.ContainsFunc(nodes, func(node string) bool { return KeepsNode(state, node) }) { // what is held stays a prefix of the order
		for _, pool := range state.Pools {
			if pool.Deleting && state.TeardownGrace > 0 && state.Now.Before(pool.DeletedAt.Add(state.TeardownGrace)) {
				decision.wake(pool.DeletedAt.Add(state.TeardownGrace))
			}
		}
		return
	}
	for _, node := range nodes {
		decision.do(Action{Kind: ReleaseLease, Node: node})
		decision.wake(state.Now.Add(runs.ForeignRecheck)) // in case the API server knows of something that is still running
	}
}

// releaseBehind releases the nodes once all of the given runs are being deleted.
func releaseBehind(state State, decision *Decision, runs []v1alpha1.BenchmarkRun) {
	if !slices.ContainsFunc(runs, func(run v1alpha1.BenchmarkRun) bool { return run.DeletionTimestamp.IsZero() }) {
		releaseIfIdle(state, decision)
	}
}

// ChosenNodes are the nodes of the experiment, sorted: those of its runs, else those in the status, else those with the shortest
// queues. All runs use the same nodes, because only then are they comparable. Nil if there are not enough.
func ChosenNodes(state State) []string {
	for _, run := range state.Runs {
		if run.Spec.Experiment == state.Experiment {
			return RunNodes(&run)
		}
	}
	if wishFits(state) {
		return slices.Sorted(slices.Values(Wish(state)))
	}
	if keptNodes(state) != nil {
		return nil
	}
	count, fitting := nodeCount(state), slices.Clone(state.Nodes)
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

// Wish are the nodes that a benchmark without runs keeps if they still fit: those of a pool that it takes over, those that it holds, or
// those in its status.
func Wish(state State) []string {
	if nodes := keptNodes(state); nodes != nil {
		return nodes
	}
	wish := StatusNodes(state.Benchmark.Status)
	if has := held(state); len(has) > 0 && !subset(has, wish) {
		return has
	}
	return wish
}

func wishFits(state State) bool {
	wish := Wish(state)
	return len(wish) == nodeCount(state) && !slices.ContainsFunc(wish, func(node string) bool { return !offered(state.Nodes, node) })
}

// Chooses says that the benchmark chooses among all nodes: it has no run, and the nodes that it would keep do not fit.
func Chooses(state State) bool {
	return !wishFits(state) && !slices.ContainsFunc(state.Runs, func(run v1alpha1.BenchmarkRun) bool {
		return run.Spec.Experiment == state.Experiment
	})
}

// Next reports whether no benchmark is ahead of this one, or it already holds a node: then it matters whether a holder is gone.
func Next(state State) bool {
	return holds(state) || ahead(state, state.Benchmark.Status.Queue != nil) == 0
}

func offered(nodes []NodeState, name string) bool {
	return slices.ContainsFunc(nodes, func(node NodeState) bool { return node.Name == name })
}

func subset(some, all []string) bool { return len(without(some, all)) == 0 }

// without returns the names in some that are not in others.
func without(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(one string) bool { return slices.Contains(others, one) })
}

// stepLease queues for the nodes and takes them when they are free.
//
// Why every benchmark gets its nodes eventually, however many each wants:
//   - A benchmark without nodes starts taking them only when all are free and no benchmark before it waits for one of them. The positions
//     in all queues follow one order (Place.Before), so the first one waits only for holders.
//   - Nodes are taken one by one in the order of their names, without regard to the queues. What a benchmark holds is a prefix of what it
//     wants; if not, it releases everything. It therefore waits only for a node after all of its own, whose holder has all of its nodes
//     or waits for a later one: the last in such a chain has all of them, and finishes.
//   - While it waits it keeps its turn, and every namespace's later benchmarks get later turns: only a limited number can be served
//     before it. The exception is a higher priority, which the admin limits.
func stepLease(state State, decision *Decision) bool {
	nodes, has := decision.NodeNames, held(state)
	switch {
	case len(has) > 0 && heldForAnother(state) && !busy(state):
		release(state, decision)
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "the experiment has changed: releasing %s, to join the queue again", JoinNodes(has))
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

// heldForAnother says that a node was taken for an earlier experiment. Whoever changes the spec has to queue again for each change,
// as with a new benchmark.
func heldForAnother(state State) bool {
	return slices.ContainsFunc(state.Leases, func(lease LeaseState) bool {
		return lease.Holder == string(state.Benchmark.UID) && lease.Experiment != "" && lease.Experiment != state.Experiment
	})
}

// takeRest takes the missing nodes, in order. During active runs it takes what it can get: they end if another benchmark holds the
// node.
func takeRest(state State, decision *Decision, has []string) {
	nodes := decision.NodeNames
	if !slices.Equal(has, nodes[:len(has)]) && unsettled(state) == nil {
		release(state, decision)
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "one of the nodes %s was lost: releasing the others, to take them in order",
			JoinNodes(nodes))
		return
	}
	current := unsettled(state)
	missing := without(nodes, has)
	if current != nil {
		missing = without(missing, atRest(state, missing))
	}
	if len(missing) == 0 { // they were released beside a lost node, and are useless until the run there has stopped
		decision.Current = current
		if group := attemptOf(state, current); group.broken() { // the run would wait for the others forever
			stopGroup(decision, group)
			return
		}
		decision.say(PositionRunning, v1alpha1.ReasonProgressing, "waiting for the teardown of run %s: %s", current.Name, runMessage(current))
		return
	}
	lease := leaseOn(state, missing[0])
	if lease != nil && current == nil && begun(state) {
		release(state, decision)
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "node %s, which was released, is held by %s now: releasing %s, to join the queue "+
			"again",
			missing[0], lease.HolderName, JoinNodes(has))
		return
	}
	decision.InLine = true
	if lease != nil {
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "holds %s and waits for node %s, held by %s", JoinNodes(has), missing[0],
			lease.HolderName)
		breakAbandoned(state, decision, lease)
		return
	}
	decision.do(Action{Kind: TakeLease, Node: missing[0]})
	decision.say(PositionQueued, v1alpha1.ReasonQueued, "taking node %s", missing[0])
}

// atRest are the nodes on which no run of the benchmark can be running.
func atRest(state State, nodes []string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(node string) bool {
		return slices.ContainsFunc(state.Runs, func(run v1alpha1.BenchmarkRun) bool {
			return run.Spec.NodeName == node && !runs.Resting(&run)
		})
	})
}

// joinLine joins the queues of all nodes. It starts to take them when it is first in each queue and all nodes are free.
func joinLine(state State, decision *Decision) {
	decision.InLine = true
	nodes, joined := decision.NodeNames, state.Benchmark.Status.Queue != nil && slices.Equal(StatusNodes(state.Benchmark.Status),
		decision.NodeNames)
	decision.Ahead = ahead(state, joined)
	line := "node " + nodes[0]
	if len(nodes) > 1 {
		line = "nodes " + JoinNodes(nodes)
	}
	switch {
	case decision.Ahead >= PlacesShown:
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "at least %d benchmarks are ahead in the queue for %s", PlacesShown, line)
	case decision.Ahead > 0:
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "number %d in the queue for %s", decision.Ahead+1, line)
	case waitForHolder(state, decision, line):
	case !joined:
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "joining the queue for %s", line)
	default:
		decision.do(Action{Kind: TakeLease, Node: nodes[0]})
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "taking node %s", nodes[0])
	}
}

// ahead counts the benchmarks that are served before this one. One that joins now may be behind all of them.
func ahead(state State, joined bool) (count int) {
	own := PlaceOf(state.Benchmark, state.Limits)
	for _, other := range state.Waiting {
		if !joined || other.Before(own) {
			count++
		}
	}
	return count
}

// waitForHolder names the holder of a node in the message of the benchmark that is next.
func waitForHolder(state State, decision *Decision, line string) bool {
	for _, node := range decision.NodeNames {
		lease := leaseOn(state, node)
		if lease == nil {
			continue
		}
		which := "held by " + lease.HolderName
		if len(decision.NodeNames) > 1 {
			which = "and " + lease.HolderName + " holds " + node
		}
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "number 1 in the queue for %s, %s", line, which)
		breakAbandoned(state, decision, lease)
		return true
	}
	return false
}

// leaseOn is the Lease that another benchmark holds on a node.
func leaseOn(state State, node string) *LeaseState {
	for i := range state.Leases {
		if lease := &state.Leases[i]; lease.Node == node && lease.Holder != string(state.Benchmark.UID) {
			return lease
		}
	}
	return nil
}

// breakAbandoned takes a node from a holder that is gone. No watch reports the end of the holder's leftovers.
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
