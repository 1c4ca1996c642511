package experiment

import (
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Neighbour is another benchmark of the same namespace that holds nodes, stands in line, or waits until its namespace may have more.
type Neighbour struct {
	UID, Name string
	Created   time.Time
	// Holds says that it has a node. Since is when it joined the line; nil if it does not stand in one.
	Holds bool
	Since *time.Time
	// Nodes that it has or wants.
	Nodes int
}

// stepShare lets a benchmark join the line only while its namespace has a share left, so that nobody fills all lines. Who is in has been
// counted: a place in line is never blocked by the limit of its namespace. Who waits is let in in the order of creation, so that a
// large benchmark is not passed by small ones for ever.
func stepShare(state State, decision *Decision) bool {
	if holds(state) || state.Limits.LinePerNamespace == 0 && state.Limits.NodesPerNamespace == 0 {
		return false
	}
	benchmarks, nodes, before := 0, 0, ""
	for _, other := range state.Neighbours {
		switch {
		case admittedBefore(other, state.Benchmark):
			benchmarks, nodes = benchmarks+1, nodes+other.Nodes
		case !other.admitted() && state.Benchmark.Status.Queue == nil && createdBefore(other, state.Benchmark):
			before = other.Name
		}
	}
	namespace := state.Benchmark.Namespace
	say := func(format string, values ...any) bool {
		decision.say(PositionWaiting, v1alpha1.ReasonNamespaceLimit,
			format+": it joins the line when one of them has ended (the cluster's admin sets this limit)", values...)
		return true
	}
	switch wanted := nodeCount(state); {
	case state.Limits.LinePerNamespace > 0 && benchmarks >= state.Limits.LinePerNamespace:
		return say("%d benchmarks of namespace %s hold nodes or stand in line, and %d may at the same time", benchmarks, namespace,
			state.Limits.LinePerNamespace)
	case state.Limits.NodesPerNamespace > 0 && nodes > 0 && nodes+wanted > state.Limits.NodesPerNamespace:
		return say("the benchmarks of namespace %s hold or wait for %d nodes, and at most %d may be held at the same time; this one wants %d",
			namespace, nodes, state.Limits.NodesPerNamespace, wanted)
	case before != "":
		return say("benchmark %s of the namespace waits for a share in the line already, and is older", before)
	}
	return false
}

func (n Neighbour) admitted() bool { return n.Holds || n.Since != nil }

// admittedBefore says that another benchmark has its share before this one: it has a node, or a place that it has joined for earlier.
func admittedBefore(other Neighbour, own *v1alpha1.StorageBenchmark) bool {
	queue := own.Status.Queue
	switch {
	case other.Holds:
		return true
	case other.Since == nil:
		return false
	case queue == nil:
		return true
	}
	return other.Since.Before(queue.Since.Time) || other.Since.Equal(queue.Since.Time) && other.UID < string(own.UID)
}

func createdBefore(other Neighbour, own *v1alpha1.StorageBenchmark) bool {
	created := own.CreationTimestamp.Time
	return other.Created.Before(created) || other.Created.Equal(created) && other.UID < string(own.UID)
}
