package experiment

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
)

// lineageOf is a hash of everything that the experiments of a benchmark measure, without their scheduled time or rerun. Experiments with
// the same lineage may pass a pool on to each other.
func lineageOf(benchmark *v1alpha1.StorageBenchmark, targetDigest string) string {
	if benchmark.Spec.Schedule == nil {
		return ""
	}
	return naming.Digest([]string{design.ComparisonHash(benchmark), targetDigest})
}

// lineageFor is the lineage within which the pools of a slot are kept. It is empty if each experiment has its own pools.
func lineageFor(state State, slot *design.Slot) string {
	if !design.KeepsForSchedule(slot) {
		return ""
	}
	return state.Lineage
}

// between returns the pools that stay for the next experiment of the schedule. Their condition is judged only when that experiment begins,
// so that no pool is lost because a node reboots or the agent is updated. Nor is a pool lost while a StorageTarget is missing for a moment:
// without it, the lineage of the next experiment is unknown.
func between(state State) map[string]bool {
	spec := &state.Benchmark.Spec
	if spec.Schedule == nil || spec.Suspend || !state.Benchmark.DeletionTimestamp.IsZero() || state.Limits.ForbidKeeping {
		return nil
	}
	stay := map[string]bool{}
	for _, pool := range state.Pools {
		next := pool.Lineage == state.Lineage || state.TargetError != nil
		if pool.Lineage != "" && next && pool.lost(state) == "" {
			stay[pool.Name] = true
		}
	}
	return stay
}

// passesOn reports whether a run of an earlier experiment still owns one of the pools that stay. Until the next experiment takes the pool
// over, the run must stay too: its outcome tells the state of the pool, and deleting the run would delete the pool. Later runs must also
// stay: the cache may lag behind, and one of them may already own the pool.
func passesOn(state State, run *v1alpha1.BenchmarkRun, stay map[string]bool) bool {
	return slices.ContainsFunc(state.Pools, func(pool KeptPool) bool {
		if !stay[pool.Name] {
			return false
		}
		user := pool.user(state)
		return user.Spec.Experiment == run.Spec.Experiment && CompareRuns(*user, *run) <= 0
	})
}

// passedOn reports whether a run of an earlier experiment has passed its pool on to this one.
func passedOn(state State, old *v1alpha1.BenchmarkRun) bool {
	lineage := old.Labels[v1alpha1.LabelLineage]
	return lineage != "" && lineage == state.Lineage && slices.ContainsFunc(state.Runs, func(run v1alpha1.BenchmarkRun) bool {
		return run.Spec.Experiment == state.Experiment
	})
}

// keptNodes returns the nodes of the pools that the next experiment takes over. On other nodes, the age of the pool would start again. It
// returns nil if there are no such pools, or if one of them cannot be used.
func keptNodes(state State) (nodes []string) {
	stay := between(state)
	for _, pool := range state.Pools {
		if stay[pool.Name] && pool.Problem == "" {
			nodes = append(nodes, pool.Node)
		}
	}
	slices.Sort(nodes)
	if nodes = slices.Compact(nodes); len(nodes) != nodeCount(state) {
		return nil
	}
	return nodes
}

// waitForItsNode waits for the node of the pool that the experiment takes over.
func waitForItsNode(state State, decision *Decision) bool {
	nodes := keptNodes(state)
	if nodes == nil {
		return false
	}
	decision.say(PositionWaiting, v1alpha1.ReasonNoNode, "the pool that earlier experiments have aged is on node %s, which is not Ready or "+
		"does not fit: make it ready, or set spec.suspend to true and back to false to begin with a new pool", JoinNodes(nodes))
	releaseIfIdle(state, decision)
	return true
}

// PoolAge returns the age of the pool of a run, or nil if experiments do not pass that pool on to each other.
func PoolAge(run *v1alpha1.BenchmarkRun) *results.PoolAge {
	for _, volume := range run.Status.Volumes {
		if age := volume.PoolAge; age != nil {
			return &results.PoolAge{Since: *utc(age.Since.Time), Experiments: age.Experiments, Runs: age.Runs}
		}
	}
	return nil
}

// sayKept adds to the message which pools stay, and how old they are.
func sayKept(state State, decision *Decision) {
	stay := between(state)
	for _, pool := range state.Pools {
		if stay[pool.Name] && pool.Age != nil {
			decision.Message += fmt.Sprintf("; BenchmarkPool %s is kept for the next scheduled experiment (%s and %s on it)", pool.Name,
				spelling.Count(int(pool.Age.Experiments), "experiment"), spelling.Count(int(pool.Age.Runs), "run"))
		}
	}
}
