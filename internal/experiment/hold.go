package experiment

import (
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/runs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// How a benchmark is kept from holding a node for ever, whatever its namespace does to the objects in it:
//   - Every wait of a run that has the node has a deadline, which the admin bounds.
//   - The experiment is over at holdUntil: the run at work is deleted, and its pods with it.
//   - A teardown that makes no progress, because what is to be deleted is used or kept, holds the node for TeardownGrace. Then no pod
//     and no operation of the run is at work. Only its disks are still in use, and BenchmarkPools keep them from others.
//   - What the namespace starts itself on the node, it can start without storagebench too: others measure beside it, and find it.

// holdUntil is when the experiment ends at the latest; zero if there is no such limit or the nodes are not held yet. Once the nodes are
// given back the status remembers it: else an experiment that has had its time would begin again.
func holdUntil(state State) time.Time {
	if nodes := ChosenNodes(state); len(nodes) > 0 && slices.Equal(held(state), nodes) && state.Limits.MaxHold > 0 {
		var taken time.Time
		for _, lease := range state.Leases {
			if lease.Holder == string(state.Benchmark.UID) && lease.Since.After(taken) {
				taken = lease.Since
			}
		}
		if !taken.IsZero() {
			return taken.Add(state.Limits.MaxHold).Truncate(time.Second)
		}
	}
	if status := state.Benchmark.Status; status.Experiment == state.Experiment && status.HoldUntil != nil {
		return status.HoldUntil.UTC()
	}
	return time.Time{}
}

// holdToReport is what the status says of it: until the end, or after it if that was the reason. Who waits in line or is suspended has no
// node, and gets its full time again with the next one.
func holdToReport(state State, decision Decision) *metav1.Time {
	without := decision.InLine || decision.Position == PositionSuspended || decision.Reason == v1alpha1.ReasonNamespaceLimit
	if !holds(state) && without || decision.Position == PositionFinished && !decision.Tally.Expired {
		return nil
	}
	return stampAt(holdUntil(state))
}

// busy says whether a run may be at work on a node of the benchmark.
func busy(state State) bool {
	return slices.ContainsFunc(state.Runs, func(run v1alpha1.BenchmarkRun) bool { return !runs.Resting(&run) })
}

// stepStuck gives the nodes back while nothing but a stuck teardown is in the way of the next run. Joining the line again comes after it.
func stepStuck(state State, decision *Decision) bool {
	current := unsettled(state)
	if current == nil || busy(state) {
		return false
	}
	decision.Current = current
	decision.say(PositionWaiting, v1alpha1.ReasonTeardownStuck, "the nodes are given back until run %s is torn down: %s", current.Name,
		runMessage(current))
	releaseIfIdle(state, decision)
	return true
}
