package experiment

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
)

// nodeCount is the number of nodes of an experiment. It is the same for all variants.
func nodeCount(state State) int {
	if len(state.Slots) == 0 {
		return 1
	}
	return state.Slots[0].NodeCount()
}

// GroupOf returns the group for the spec of a run, or nil for a single run.
func GroupOf(name string, member int32, nodes []string) *v1alpha1.RunGroup {
	if len(nodes) < 2 {
		return nil
	}
	return &v1alpha1.RunGroup{Name: name, Index: member, Nodes: nodes}
}

// RunNodes returns the nodes of a run or its group.
func RunNodes(run *v1alpha1.BenchmarkRun) []string {
	if run.Spec.Group != nil {
		return run.Spec.Group.Nodes
	}
	return []string{run.Spec.NodeName}
}

// StatusNodes returns the nodes in the status of a benchmark, which it holds or is queued for.
func StatusNodes(status v1alpha1.StorageBenchmarkStatus) []string {
	switch {
	case len(status.NodeNames) > 0:
		return status.NodeNames
	case status.NodeName != "":
		return []string{status.NodeName}
	}
	return nil
}

// JoinNodes is a comma-separated list of node names, truncated to fit into a status.
func JoinNodes(nodes []string) string {
	const most = 253
	text := strings.Join(nodes, ",")
	if len(text) > most {
		text = text[:most-3] + "..."
	}
	return text
}

// attempt is one attempt at a slot: one run, or the runs of a group.
type attempt struct {
	number int32
	runs   []*v1alpha1.BenchmarkRun
}

// attemptsAt returns the existing attempts at a slot, in their order.
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

// size is the expected number of runs.
func (a attempt) size() int { return len(RunNodes(a.runs[0])) }

// ending is the outcome of the attempt, or nil if it has not ended. An attempt is valid if all its runs are valid, and Invalid as soon as
// one run is Invalid. A run that is being deleted has no outcome.
func (a attempt) ending() *runs.Ending {
	valid, failure := 0, (*runs.Ending)(nil)
	for _, run := range a.runs {
		ending := runs.RecordedEnding(run)
		switch {
		case ending == nil || !run.DeletionTimestamp.IsZero():
		case ending.Valid:
			valid++
		case failure == nil || failure.Reason == v1alpha1.ReasonPeerInvalid:
			failure = ending // the cause is more useful than its consequences
		}
	}
	if valid >= a.size() {
		return &runs.Ending{Valid: true}
	}
	return failure
}

// stopped reports whether a run of a group is being deleted, or was deleted after the work had started. The other runs are then useless.
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

// missing returns the members of a group that have no run.
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

// broken reports whether a group cannot continue: it was stopped, or some of its runs were never created.
func (a attempt) broken() bool {
	return a.size() > 1 && a.ending() == nil && (a.stopped() || len(a.missing()) > 0)
}

// slowest is the run of a group that is furthest behind.
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

// stopGroup deletes the rest of a group, so that the whole group is recreated under its own name.
func stopGroup(decision *Decision, group attempt) {
	deleteMembers(decision, group)
	decision.say(PositionRunning, v1alpha1.ReasonProgressing,
		"a run of group %s is gone: waiting for the teardown of the others, to recreate the group", naming.GroupName(group.runs[0]))
}

func deleteMembers(decision *Decision, group attempt) {
	for _, run := range group.runs {
		deleteRuns(decision, []v1alpha1.BenchmarkRun{*run})
	}
}
