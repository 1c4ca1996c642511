package experiment

import (
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/spelling"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// The following rules keep a benchmark from holding a node forever, whatever users do to the objects in its namespace:
//   - Every wait of a run that holds the node has a deadline, which the admin limits.
//   - The experiment ends at holdUntil: the run in progress and its pods are deleted.
//   - A teardown that makes no progress, because objects are in use or have finalizers, holds the node for TeardownGrace. After that no
//     pod and no operation of the run is running. Only its disks are in use, and BenchmarkPools protect them from others.
//   - While a run does not stop, because its node is lost, a group holds only that node.
//   - Users could start any other load on the node without storagebench as well: other measurements detect it as a neighbour.

// holdUntil returns the time at which the experiment ends at the latest, or zero if there is no limit or the nodes are not held yet. The
// status keeps this time after the nodes are released: otherwise an experiment that has used up its time would start again.
func holdUntil(state State) time.Time {
	if nodes := ChosenNodes(state); len(nodes) > 0 && slices.Equal(held(state), nodes) && state.Limits.MaxHold > 0 {
		var taken time.Time
		for _, lease := range state.Leases {
			if lease.Holder == string(state.Benchmark.UID) && (taken.IsZero() || lease.Since.Before(taken)) {
				taken = lease.Since // a node that was released beside a lost node and taken again does not prolong the hold
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

// holdToReport is the value of holdUntil for the status. It stays there after the end only if the limit ended the experiment. A queued or
// suspended benchmark holds no node, and gets its full time again when it takes nodes again.
func holdToReport(state State, decision Decision) *metav1.Time {
	without := decision.InLine || decision.Position == PositionSuspended || decision.Reason == v1alpha1.ReasonNamespaceLimit
	if !holds(state) && without || decision.Position == PositionFinished && !decision.Tally.Expired {
		return nil
	}
	return stampAt(holdUntil(state))
}

// busy reports whether a run may be running on a node of the benchmark.
func busy(state State) bool {
	return slices.ContainsFunc(state.Runs, func(run v1alpha1.BenchmarkRun) bool { return !runs.Resting(&run) })
}

// onlyLostRuns returns the runs that do not stop, or nil if the benchmark also waits for other runs.
func onlyLostRuns(state State) (lost []*v1alpha1.BenchmarkRun) {
	for i := range state.Runs {
		run := &state.Runs[i]
		switch {
		case runs.Resting(run):
		case runs.NotStopped(run):
			lost = append(lost, run)
		default:
			return nil
		}
	}
	return lost
}

// stepStuck releases the nodes while a stuck teardown blocks the next run. The benchmark rejoins the queue afterwards. If a node of a group
// is lost, the group also releases its other nodes, and takes them again once the run on the lost node has stopped.
func stepStuck(state State, decision *Decision) bool {
	current, lost := unsettled(state), onlyLostRuns(state)
	switch {
	case current == nil:
		return false
	case !busy(state):
		decision.say(PositionWaiting, v1alpha1.ReasonTeardownStuck, "the nodes are released until run %s is torn down: %s", current.Name,
			runMessage(current))
	case nodeCount(state) > 1 && len(lost) > 0:
		current = lost[0]
		decision.say(PositionWaiting, v1alpha1.ReasonTeardownStuck, "only node %s stays taken, until run %s is torn down: %s",
			current.Spec.NodeName, current.Name, runMessage(current))
		if len(lost) > 1 {
			decision.say(PositionWaiting, v1alpha1.ReasonTeardownStuck, "%s do not stop: run %s on node %s: %s",
				spelling.Count(len(lost), "run"), current.Name, current.Spec.NodeName, runMessage(current))
		}
	default:
		return false
	}
	decision.Current = current
	releaseIfIdle(state, decision)
	return true
}
