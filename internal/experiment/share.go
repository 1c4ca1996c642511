package experiment

import (
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
)

// Neighbour is another benchmark of the same namespace that holds nodes, is queued, or waits for the namespace's share.
type Neighbour struct {
	UID, Name string
	Created   time.Time
	// Holds is true if it holds a node. Since is when it joined the queue, or nil if it is not queued.
	Holds bool
	Since *time.Time
	// Nodes is the number of nodes that it holds or wants.
	Nodes int
}

// stepShare lets a benchmark join the queue only while its namespace has a share left, so that no namespace fills all queues. Queued
// benchmarks already count towards the share, so the limit of a namespace never blocks a position in the queue. Waiting benchmarks are
// admitted in the order of creation, so that small ones do not overtake a large one forever.
func stepShare(state State, decision *Decision) bool {
	if holds(state) || !state.Limits.PerNamespace() {
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
			format+": it joins the queue once one of them finishes (the admin sets this limit)", values...)
		return true
	}
	switch wanted := nodeCount(state); {
	case state.Limits.BenchmarksPerNamespace > 0 && benchmarks >= state.Limits.BenchmarksPerNamespace:
		return say("namespace %s has %s in the queue or on nodes, and the limit is %d", namespace,
			spelling.Count(benchmarks, "benchmark"), state.Limits.BenchmarksPerNamespace)
	case state.Limits.NodesPerNamespace > 0 && nodes > 0 && nodes+wanted > state.Limits.NodesPerNamespace:
		return say("the benchmarks of namespace %s hold or wait for %d nodes, and the limit is %d; this one wants %d",
			namespace, nodes, state.Limits.NodesPerNamespace, wanted)
	case before != "":
		return say("benchmark %s of the namespace is older and must join the queue first", before)
	}
	return false
}

func (n Neighbour) admitted() bool { return n.Holds || n.Since != nil }

// admittedBefore reports whether another benchmark was admitted before this one: it holds a node, or has an earlier position in the queue.
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
