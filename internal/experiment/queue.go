package experiment

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
)

// held returns the nodes that the benchmark holds, sorted.
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
// releases the nodes of the other runs of the group.
func releaseIfIdle(state State, decision *Decision) {
	if !busy(state) {
		release(state, decision)
		return
	}
	if len(onlyLostRuns(state)) > 0 {
		releaseNodes(state, decision, atRest(state, held(state)))
	}
}

// release releases all nodes.
func release(state State, decision *Decision) { releaseNodes(state, decision, held(state)) }

// releaseNodes releases nodes once their disks are free: kept pools are deleted first, except pools that are stuck or stay for the next
// experiment.
func releaseNodes(state State, decision *Decision, nodes []string) {
	giveBack(state, decision, between(state))
	// All nodes are released or none, so that the held nodes stay a prefix of the order.
	if slices.ContainsFunc(nodes, func(node string) bool { return KeepsNode(state, node) }) {
		for _, pool := range state.Pools {
			if pool.Deleting && state.TeardownGrace > 0 && state.Now.Before(pool.DeletedAt.Add(state.TeardownGrace)) {
				decision.wake(pool.DeletedAt.Add(state.TeardownGrace))
			}
		}
		return
	}
	for _, node := range nodes {
		decision.do(Action{Kind: ReleaseLease, Node: node})
		decision.wake(state.Now.Add(runs.ForeignRecheck)) // in case the API server still reports something as running
	}
}

// releaseBehind releases the nodes once all of the given runs are being deleted.
func releaseBehind(state State, decision *Decision, runs []v1alpha1.BenchmarkRun) {
	if !slices.ContainsFunc(runs, func(run v1alpha1.BenchmarkRun) bool { return run.DeletionTimestamp.IsZero() }) {
		releaseIfIdle(state, decision)
	}
}

// ChosenNodes returns the nodes of the experiment, sorted: those of its runs, else those of Wish if they fit, else those with the shortest
// queues. All runs use the same nodes, because only then are they comparable. It returns nil if there are not enough nodes, or if the nodes
// of a kept pool do not fit.
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
		if a.Load != b.Load {
			return a.Load - b.Load
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

// Wish returns the nodes that a benchmark without runs keeps if they still fit: those of a pool that it takes over, those that it holds, or
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

// Chooses reports whether the benchmark chooses among all nodes: it has no run, and the nodes that it would keep do not fit.
func Chooses(state State) bool {
	return !wishFits(state) && !slices.ContainsFunc(state.Runs, func(run v1alpha1.BenchmarkRun) bool {
		return run.Spec.Experiment == state.Experiment
	})
}

// Next reports whether no benchmark is ahead of this one, or it already holds a node. Only then does it matter whether a holder is gone.
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
// Every benchmark eventually gets its nodes, however many it wants, for these reasons:
//   - A benchmark without nodes starts taking them only when all are free and no benchmark ahead of it waits for one of them. The
//     positions in all queues follow one order (Place.Before), so the first benchmark waits only for holders.
//   - Nodes are taken one by one in the order of their names, without regard to the queues. The nodes that a benchmark holds are a prefix
//     of those that it wants; otherwise it releases all of them. So it waits only for a node that comes after all of its own. The holder
//     of that node either has all of its nodes or waits for a later one: the last benchmark in such a chain has all of its nodes, and
//     finishes.
//   - While a benchmark waits, it keeps its turn, and the later benchmarks of each namespace get later turns, so only a limited number
//     can be served before it. The exception is a higher priority, which the admin limits.
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

// heldForAnother reports whether a node was taken for an earlier experiment. After each change of the spec, the benchmark must queue again,
// like a new benchmark.
func heldForAnother(state State) bool {
	return slices.ContainsFunc(state.Leases, func(lease LeaseState) bool {
		return lease.Holder == string(state.Benchmark.UID) && lease.Experiment != "" && lease.Experiment != state.Experiment
	})
}

// takeRest takes the missing nodes, in order. While runs are active, the order does not matter: a run ends if another benchmark holds its
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
	if len(missing) == 0 { // the others were released beside a lost node, and are useless until the run there has stopped
		decision.Current = current
		if group := attemptOf(state, current); group.broken() { // its run would wait for the others forever
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

// atRest returns the nodes on which no run of the benchmark can be running.
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
	line := lineFor(nodes)
	switch {
	case decision.Ahead > 0:
		decision.sayPlace(line)
	case waitForHolder(state, decision, line):
	case !joined:
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "joining the queue for %s", line)
	default:
		decision.do(Action{Kind: TakeLease, Node: nodes[0]})
		decision.say(PositionQueued, v1alpha1.ReasonQueued, "taking node %s", nodes[0])
	}
}

func lineFor(nodes []string) string {
	if len(nodes) > 1 {
		return "nodes " + JoinNodes(nodes)
	}
	return "node " + nodes[0]
}

// sayPlace tells a benchmark that is not next its place.
func (d *Decision) sayPlace(line string) {
	if d.Ahead >= PlacesShown {
		d.say(PositionQueued, v1alpha1.ReasonQueued, "at least %d benchmarks are ahead in the queue for %s", PlacesShown, line)
		return
	}
	d.say(PositionQueued, v1alpha1.ReasonQueued, "number %d in the queue for %s", d.Ahead+1, line)
}

// Moved returns the decision for a benchmark that has only moved in its queues. It needs only what a cache without the spec has, so that
// a new place costs no read. is is false if the benchmark does not just wait behind others: then only Plan knows what to do.
func Moved(benchmark *v1alpha1.StorageBenchmark, waiting []Place, limits Limits) (decision Decision, is bool) {
	ready := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionReady)
	nodes := StatusNodes(benchmark.Status)
	if !Waits(benchmark) || len(nodes) == 0 || ready == nil || ready.Reason != v1alpha1.ReasonQueued ||
		ready.ObservedGeneration != benchmark.Generation {
		return Decision{}, false
	}
	decision.InLine, decision.NodeNames = true, nodes
	decision.Ahead = ahead(State{Benchmark: benchmark, Waiting: waiting, Limits: limits}, true)
	decision.sayPlace(lineFor(nodes))
	return decision, decision.Ahead > 0
}

// ahead counts the benchmarks that are served before this one. If it has not joined yet, all benchmarks in the queue count.
func ahead(state State, joined bool) (count int) {
	own := PlaceOf(state.Benchmark, state.Limits)
	for _, other := range state.Waiting {
		if !joined || other.Before(own) {
			count++
		}
	}
	return count
}

// waitForHolder handles a benchmark that is next but must wait for the holder of a node: the message names the holder.
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

// leaseOn returns the Lease that another benchmark holds on a node, or nil.
func leaseOn(state State, node string) *LeaseState {
	for i := range state.Leases {
		if lease := &state.Leases[i]; lease.Node == node && lease.Holder != string(state.Benchmark.UID) {
			return lease
		}
	}
	return nil
}

// breakAbandoned takes a node from a holder that is gone. It also checks again later, because no watch reports when the holder's leftover
// objects are gone.
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
