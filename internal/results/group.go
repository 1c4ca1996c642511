package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A node is a straggler of a phase if its workload began more than StragglerStart after the first one, or ended after the first one by more
// than StragglerFinishShare of the shortest node's time and more than StragglerFinishLeast.
const (
	StragglerStart       = 2 * time.Second
	StragglerFinishShare = 10 // percent
	StragglerFinishLeast = 10 * time.Second
)

// togetherPercent of the longest node's time must be common to all nodes: rates measured at different times do not add up, and a node that
// continues alone has the storage to itself. The longest node may also exceed the common time by togetherSlack, which is a large part of a
// short phase, as long as togetherPercent of the shortest node's time is common.
const (
	togetherPercent = 90
	togetherSlack   = time.Second
)

// RunGroup is the place of a run in a group of runs that execute their phases on several nodes at once.
type RunGroup struct {
	// Name that the runs of the group share.
	Name string `json:"name"`
	// Index of this run's node among them, from 0.
	Index int32 `json:"index"`
	// Size is the number of nodes.
	Size int32 `json:"size"`
}

// GroupResult is the result of several nodes at once: a repetition of a variant.
type GroupResult struct {
	Name string `json:"name"`
	// Index, variant, repetition and attempt are those of each of its runs.
	Index      int32  `json:"index"`
	Variant    string `json:"variant"`
	Repetition int32  `json:"repetition"`
	Attempt    int32  `json:"attempt"`
	// Nodes are the names of the nodes, by the index of their run.
	Nodes []string `json:"nodes"`
	// Valid says whether all runs of the group are valid.
	Valid bool `json:"valid"`
	// Reason and Message are those of the run that made it invalid.
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Phases  []GroupPhase `json:"phases,omitempty"`
}

// GroupPhase is a phase that several nodes executed at once.
type GroupPhase struct {
	Name string `json:"name"`
	Kind string `json:"kind" jsonschema:"enum=fill,enum=fragment,enum=free,enum=measure,enum=operate"`
	// Metrics of all nodes together: sums, or the worst node's, as the vocabulary says. Metrics that not all nodes have are left out.
	Metrics map[string]int64 `json:"metrics,omitempty"`
	// Stragglers says in words which nodes began or ended later than the others.
	Stragglers []string `json:"stragglers,omitempty"`
}

// Join makes one result from the runs of each group, in the order of the runs. A group has metrics only of phases that are Valid on all its
// nodes, and is Invalid if these were not measured together.
func Join(runs []RunResult) []GroupResult {
	var groups []GroupResult
	for _, members := range byGroup(runs) {
		group, phases := joinGroup(members)
		for _, measured := range phases {
			if words := apart(measured); group.Valid && words != "" {
				group.Valid, group.Reason, group.Message = false, ReasonNotTogether, fmt.Sprintf("phase %s: %s", measured[0].Name, words)
			}
		}
		groups = append(groups, group)
	}
	return groups
}

// byGroup gathers the runs of each group, by their index in it.
func byGroup(runs []RunResult) [][]RunResult {
	at := map[string]int{}
	var groups [][]RunResult
	for _, run := range runs {
		if run.Group == nil {
			continue
		}
		i, known := at[run.Group.Name]
		if !known {
			i, groups = len(groups), append(groups, nil)
			at[run.Group.Name] = i
		}
		groups[i] = append(groups[i], run)
	}
	for _, members := range groups {
		slices.SortFunc(members, func(a, b RunResult) int { return cmp.Compare(a.Group.Index, b.Group.Index) })
	}
	return groups
}

// joinGroup joins the runs of a group. It also returns the joined phases, as each node has them.
func joinGroup(members []RunResult) (group GroupResult, phases [][]RunPhase) {
	first := members[0]
	group = GroupResult{Name: first.Group.Name, Index: first.Index, Variant: first.Variant, Repetition: first.Repetition,
		Attempt: first.Attempt,
		Valid:   len(members) == int(first.Group.Size)}
	if !group.Valid {
		group.Reason, group.Message = "Unfinished", fmt.Sprintf("only %d of %d nodes have a run", len(members), first.Group.Size)
	}
	for _, run := range members {
		group.Nodes = append(group.Nodes, run.NodeName)
		if !run.Valid && (group.Valid || consequence(group.Reason) && !consequence(run.Reason)) {
			group.Valid, group.Reason, group.Message = false, run.Reason, fmt.Sprintf("on node %s: %s", run.NodeName, run.Message)
		}
	}
	for _, phase := range first.Phases {
		joined, measured := joinPhase(phase.Name, members)
		if len(measured) < int(first.Group.Size) {
			continue
		}
		group.Phases, phases = append(group.Phases, joined), append(phases, measured)
	}
	return group, phases
}

// apart says why the nodes did not measure a phase together. It returns an empty text if they did.
func apart(phases []RunPhase) string {
	if phases[0].Kind != KindMeasure {
		return ""
	}
	var times []Interval
	for _, phase := range phases {
		if phase.StartedAt == nil || phase.FinishedAt == nil {
			return ""
		}
		times = append(times, Interval{From: *phase.StartedAt, To: *phase.FinishedAt})
	}
	common, longest, enough := Together(times)
	if enough {
		return ""
	}
	return fmt.Sprintf("all nodes measured together for %s only, and the longest took %s: measure longer, or give all nodes the same to "+
		"do, before and in the phase",
		common.Long().Round(time.Second), longest.Round(time.Second))
}

// Together returns the time that all intervals have in common, and the length of the longest one. enough says whether the common time is
// most of each interval.
func Together(all []Interval) (common Interval, longest time.Duration, enough bool) {
	if len(all) == 0 {
		return Interval{}, 0, false
	}
	common, shortest := all[0], all[0].Long()
	for _, one := range all {
		shortest, longest = min(shortest, one.Long()), max(longest, one.Long())
		if one.From.After(common.From) {
			common.From = one.From
		}
		if one.To.Before(common.To) {
			common.To = one.To
		}
	}
	if common.To.Before(common.From) {
		common.To = common.From
	}
	long := common.Long()
	return common, longest, long >= shortest*togetherPercent/100 && (long >= longest*togetherPercent/100 || longest-long <= togetherSlack)
}

// consequence reports whether a run is Invalid only because another one is. The reason of that other run says more.
func consequence(reason string) bool { return reason == ReasonPeerInvalid }

// ReasonNotTogether is the reason of runs of a group, or workloads of a phase, that are Valid by themselves but were not measured together.
const ReasonNotTogether = "NotTogether"

// ReasonPeerInvalid is the reason of a run that is Invalid only because another one of its group is.
const ReasonPeerInvalid = "PeerInvalid"

// joinPhase joins a phase, and also returns it as each node has it. It returns nothing if the phase is not Valid on all nodes.
func joinPhase(name string, members []RunResult) (joined GroupPhase, phases []RunPhase) {
	for _, run := range members {
		at := slices.IndexFunc(run.Phases, func(phase RunPhase) bool { return phase.Name == name && phase.Outcome == OutcomeValid })
		if at < 0 {
			return GroupPhase{}, nil
		}
		phases = append(phases, run.Phases[at])
	}
	joined = GroupPhase{Name: name, Kind: phases[0].Kind, Metrics: joinMetrics(phases)}
	joined.Stragglers = stragglers(members, phases)
	return joined, phases
}

func joinMetrics(phases []RunPhase) map[string]int64 {
	joined := map[string]int64{}
	for name := range phases[0].Metrics {
		var values []int64
		for _, phase := range phases {
			if value, known := phase.Metrics[name]; known {
				values = append(values, value)
			}
		}
		// A metric that is not in the vocabulary cannot be combined: it is unknown whether to add it.
		if metric, known := LookupMetric(name); known && len(values) == len(phases) {
			joined[name] = metric.Across().join(values)
		}
	}
	return joined
}

// stragglers says which nodes began or ended late. Starts are compared by their lag behind the agreed time, ends by the nodes' clocks.
func stragglers(members []RunResult, phases []RunPhase) []string {
	var words []string
	var began, ended []time.Duration
	for _, phase := range phases {
		if phase.StartedAt == nil || phase.FinishedAt == nil {
			return nil
		}
		began = append(began, time.Duration(phase.Metrics[MetricStartLag]))
		ended = append(ended, phase.FinishedAt.Sub(*phases[0].FinishedAt))
	}
	least := phases[0].FinishedAt.Sub(*phases[0].StartedAt)
	for _, phase := range phases {
		least = min(least, phase.FinishedAt.Sub(*phase.StartedAt))
	}
	bound := max(StragglerFinishLeast, least*StragglerFinishShare/100)
	for i, run := range members {
		var parts []string
		if late := began[i] - slices.Min(began); late > StragglerStart {
			parts = append(parts, fmt.Sprintf("began %s", late.Round(100*time.Millisecond)))
		}
		if late := ended[i] - slices.Min(ended); late > bound {
			parts = append(parts, fmt.Sprintf("ended %s", late.Round(time.Second)))
		}
		if len(parts) > 0 {
			words = append(words, fmt.Sprintf("node %s %s after the first node", run.NodeName, strings.Join(parts, " and ")))
		}
	}
	return words
}

// Repetitions returns the runs as they count: a group is one repetition, with its joined metrics. A run of a group is never counted by
// itself. Runs that were not measured together were made Invalid after Join. This is not checked again here, because results have times in
// whole seconds, which are too coarse for it.
func Repetitions(runs []RunResult) []RunResult {
	counted := make([]RunResult, 0, len(runs))
	for _, run := range runs {
		if run.Group == nil {
			counted = append(counted, run)
		}
	}
	for _, members := range byGroup(runs) {
		group, _ := joinGroup(members)
		one := RunResult{Name: group.Name, Index: group.Index, Variant: group.Variant, Repetition: group.Repetition, Attempt: group.Attempt,
			Valid: group.Valid, Reason: group.Reason, Message: group.Message}
		for _, phase := range group.Phases {
			one.Phases = append(one.Phases, RunPhase{Name: phase.Name, Kind: phase.Kind, Outcome: OutcomeValid, Metrics: phase.Metrics})
		}
		counted = append(counted, one)
	}
	return counted
}
