package experiment

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
)

// NodeCount is the number of nodes that execute each phase of a slot at the same time.
func (s Slot) NodeCount() int {
	if s.Target.ZFS == nil {
		return 1
	}
	return max(1, int(s.Target.ZFS.Nodes.Count))
}

// nodeCount is that of an experiment: all its variants have the same.
func nodeCount(state State) int {
	if len(state.Slots) == 0 {
		return 1
	}
	return state.Slots[0].NodeCount()
}

// GroupOf is what the spec of a run says of its group; nil for a run alone.
func GroupOf(name string, member int32, nodes []string) *v1alpha1.RunGroup {
	if len(nodes) < 2 {
		return nil
	}
	return &v1alpha1.RunGroup{Name: name, Index: member, Nodes: nodes}
}

// RunNodes are the nodes of a run and its group.
func RunNodes(run *v1alpha1.BenchmarkRun) []string {
	if run.Spec.Group != nil {
		return run.Spec.Group.Nodes
	}
	return []string{run.Spec.NodeName}
}

// StatusNodes are the nodes that a benchmark has, or stands in line for.
func StatusNodes(status v1alpha1.StorageBenchmarkStatus) []string {
	switch {
	case len(status.NodeNames) > 0:
		return status.NodeNames
	case status.NodeName != "":
		return []string{status.NodeName}
	}
	return nil
}

// JoinNodes names nodes for people, as many as fit into a status.
func JoinNodes(nodes []string) string {
	const most = 253
	text := strings.Join(nodes, ",")
	if len(text) > most {
		text = text[:most-3] + "..."
	}
	return text
}

// attempt is one attempt at a slot: one run, or those of a group.
type attempt struct {
	number int32
	runs   []*v1alpha1.BenchmarkRun
}

// attemptsAt are the attempts at a slot that there are, the first one first.
func attemptsAt(state State, index int32) []attempt {
	var all []attempt
	for i := range state.Runs {
		run := &state.Runs[i]
		if run.Spec.Experiment != state.Experiment || run.Spec.Index != index {
			continue
		}
		at := slices.IndexFunc(all, func(a attempt) bool { return a.number == run.Spec.Attempt })
		if at < 0 {
			at, all = len(all), append(all, attempt{number: run.Spec.Attempt})
		}
		all[at].runs = append(all[at].runs, run)
	}
	slices.SortStableFunc(all, func(a, b attempt) int { return int(a.number - b.number) })
	return all
}

// attemptOf is the attempt that a run belongs to.
func attemptOf(state State, run *v1alpha1.BenchmarkRun) attempt {
	if run.Spec.Group == nil {
		return attempt{run.Spec.Attempt, []*v1alpha1.BenchmarkRun{run}}
	}
	group := attempt{number: run.Spec.Attempt}
	for i := range state.Runs {
		if naming.GroupName(&state.Runs[i]) == run.Spec.Group.Name {
			group.runs = append(group.runs, &state.Runs[i])
		}
	}
	return group
}

// size is the number of runs that there should be.
func (a attempt) size() int { return len(RunNodes(a.runs[0])) }

// ending is how the attempt has ended; nil if it has not. It is valid if all its runs are, and Invalid as soon as one is. What is being
// deleted takes its outcome along.
func (a attempt) ending() *runs.Ending {
	valid, failure := 0, (*runs.Ending)(nil)
	for _, run := range a.runs {
		ending := runs.RecordedEnding(run)
		switch {
		case ending == nil || !run.DeletionTimestamp.IsZero():
		case ending.Valid:
			valid++
		case failure == nil || failure.Reason == v1alpha1.ReasonPeerInvalid:
			failure = ending // the cause is worth more than its consequences
		}
	}
	if valid >= a.size() {
		return &runs.Ending{Valid: true}
	}
	return failure
}

// stopped says that a run of a group is going, or has gone after the work began. The others are worth nothing without it.
func (a attempt) stopped() bool {
	begun := false
	for _, run := range a.runs {
		if !run.DeletionTimestamp.IsZero() {
			return true
		}
		begun = begun || len(run.Status.Phases) > 0
	}
	return begun && len(a.missing()) > 0
}

// missing are the members of a group that have no run.
func (a attempt) missing() []int32 {
	var missing []int32
	for member := range int32(a.size()) {
		if !slices.ContainsFunc(a.runs, func(run *v1alpha1.BenchmarkRun) bool {
			return run.Spec.Group == nil || run.Spec.Group.Index == member
		}) {
			missing = append(missing, member)
		}
	}
	return missing
}

// broken says that a group cannot go on as it is: it was stopped, or some of its runs were never made.
func (a attempt) broken() bool {
	return a.size() > 1 && a.ending() == nil && (a.stopped() || len(a.missing()) > 0)
}

// slowest is the run of a group that is the furthest behind, the first of them.
func (a attempt) slowest() *v1alpha1.BenchmarkRun {
	slowest, least := a.runs[0], len(a.runs[0].Spec.Phases)+1
	for _, run := range a.runs {
		done := 0
		for _, phase := range run.Status.Phases {
			if phase.Result != "" {
				done++
			}
		}
		if (!runs.Settled(run) || !run.DeletionTimestamp.IsZero()) && done < least {
			slowest, least = run, done
		}
	}
	return slowest
}
