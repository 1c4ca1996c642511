// Package experiment plans a StorageBenchmark: its runs, their nodes and order, when to wait, and the verdict. Its functions are
// pure: they take the observed state and return the next actions. They read no clock, call no API and keep no state.
package experiment

import (
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
)

// Action is something to do for a benchmark.
type Action struct {
	Kind ActionKind
	// Run is the name of the run for DeleteRun.
	Run string
	// Pool is the name of the kept pool for DeletePool. RunUID is the UID of the run that used it last.
	Pool, RunUID string
	// Slot and Attempt describe the run for CreateRun. Member is its position in the group.
	Slot    *design.Slot
	Attempt int32
	Member  int32
	// Rehearsal is the run to validate, for Rehearse.
	Rehearsal *v1alpha1.BenchmarkRun
	// Node is the node of the Lease to take, break or release.
	Node string
	// Experiment is the experiment whose results are written or deleted, with the ConfigMap and the fingerprint of the inputs.
	Experiment  string
	ConfigMap   string
	Fingerprint string
	// Superseded is true if the results belong to a superseded experiment.
	Superseded bool
}

// ActionKind is the kind of an Action.
type ActionKind string

// The kinds of an Action.
const (
	Rehearse                 ActionKind = "Rehearse"
	AddFinalizer             ActionKind = "AddFinalizer"
	TakeLease                ActionKind = "TakeLease"
	BreakLease               ActionKind = "BreakLease"
	ReleaseLease             ActionKind = "ReleaseLease"
	CreateRun                ActionKind = "CreateRun"
	DeleteRun                ActionKind = "DeleteRun"
	DeletePool               ActionKind = "DeletePool"
	WriteResults             ActionKind = "WriteResults"
	WriteHistory             ActionKind = "WriteHistory"
	DeleteResults            ActionKind = "DeleteResults"
	DeleteBenchmark          ActionKind = "DeleteBenchmark"
	RemoveBenchmarkFinalizer ActionKind = "RemoveFinalizer"
)

// Position is the progress of a benchmark, for people and for the conditions.
type Position string

// The positions of a benchmark.
const (
	// PositionRehearsing is followed by another position in the same reconciliation.
	PositionRehearsing Position = "Rehearsing"
	PositionDeleting   Position = "Deleting"
	PositionStalled    Position = "Stalled"
	PositionSuspended  Position = "Suspended"
	PositionWaiting    Position = "Waiting"
	PositionQueued     Position = "Queued"
	PositionRunning    Position = "Running"
	PositionFinished   Position = "Finished"
)

// Decision is the plan for a State.
type Decision struct {
	Actions  []Action
	Position Position
	Reason   string
	Message  string
	// NodeNames and StorageClass are the resolved values. NodeName is the readable form of NodeNames.
	NodeNames    []string
	NodeName     string
	StorageClass string
	// DefaultClass is used for variants that name no class.
	DefaultClass string
	// InLine is true if the benchmark is in the queue or joins it. Ahead is the number of benchmarks ahead of it.
	InLine bool
	Ahead  int
	// Current is the run in progress; for a group, the slowest.
	Current *v1alpha1.BenchmarkRun
	Tally   Tally
	// Fingerprint is the fingerprint of the results of a finished experiment.
	Fingerprint string
	// Schedule is the state of the schedule, if there is or was one.
	Schedule *v1alpha1.ScheduleStatus
	// HoldUntil is when the experiment ends at the latest. It is nil while it holds no nodes.
	HoldUntil *metav1.Time
	WakeAt    time.Time
}

// Plan decides what to do for a benchmark.
func Plan(state State) Decision {
	state.Slots = slotsInUse(state)
	decision := Decision{
		NodeNames:    ChosenNodes(state),
		StorageClass: state.Benchmark.Status.StorageClass,
		Tally:        Count(state),
	}
	decision.NodeName = JoinNodes(decision.NodeNames)
	for _, step := range []func(State, *Decision) bool{
		stepRehearse, stepDelete, stepFinalizer, stepSuperseded, stepSpec, stepSuspend, stepFinish,
		stepClass, stepDriver, stepNode, stepStuck, stepUnfit, stepShare, stepLease, stepRun,
	} {
		if step(state, &decision) {
			break
		}
	}
	decision.warn(state)
	followSchedule(state, &decision)
	decision.HoldUntil = holdToReport(state, decision)
	return decision
}

// wake requests another reconciliation at the given time, or keeps an earlier request.
func (d *Decision) wake(at time.Time) {
	if d.WakeAt.IsZero() || at.Before(d.WakeAt) {
		d.WakeAt = at
	}
}

func (d *Decision) say(position Position, reason, format string, arguments ...any) {
	d.Position, d.Reason, d.Message = position, reason, fmt.Sprintf(format, arguments...)
}

func (d *Decision) do(action Action) {
	d.Actions = append(d.Actions, action)
}

// warn adds two things to the message: the gates that cannot be decided, while the repetitions can still be changed, and the warnings about
// the spec.
func (d *Decision) warn(state State) {
	if state.Undecidable != "" && slices.Contains([]Position{PositionWaiting, PositionQueued, PositionRunning}, d.Position) {
		d.Message += "; " + state.Undecidable
	}
	if len(state.Warnings) > 0 && slices.Contains([]Position{PositionWaiting, PositionQueued}, d.Position) {
		first := state.Warnings[0]
		d.Message += fmt.Sprintf("; %s: %s", first.Field, first.Message)
		if more := len(state.Warnings) - 1; more > 0 {
			d.Message += fmt.Sprintf("; and %d more: 'kubectl storagebench validate' lists all", more)
		}
	}
}

// stepDelete stops everything, releases the node and removes the finalizer.
func stepDelete(state State, decision *Decision) bool {
	if state.Benchmark.DeletionTimestamp.IsZero() {
		return false
	}
	decision.say(PositionDeleting, v1alpha1.ReasonCleaningUp, "waiting for %s to be torn down", spelling.Count(len(state.Runs), "run"))
	if deleteRuns(decision, state.Runs) > 0 {
		releaseBehind(state, decision, state.Runs)
		return true
	}
	if waiting := giveBack(state, &Decision{}, nil); waiting != "" {
		release(state, decision)
		decision.say(PositionDeleting, v1alpha1.ReasonCleaningUp, "%s", waiting)
		return true
	}
	if holds(state) {
		release(state, decision)
		return true
	}
	decision.do(Action{Kind: RemoveBenchmarkFinalizer})
	return true
}

// stepFinalizer adds the finalizer before creating anything that needs cleanup.
func stepFinalizer(state State, decision *Decision) bool {
	for _, finalizer := range state.Benchmark.Finalizers {
		if finalizer == v1alpha1.FinalizerTeardown {
			return false
		}
	}
	decision.do(Action{Kind: AddFinalizer})
	return false
}

// stepSuperseded stores the results of an earlier experiment and removes its runs.
func stepSuperseded(state State, decision *Decision) bool {
	var old []v1alpha1.BenchmarkRun
	ended, stay := map[string]bool{}, between(state)
	for _, run := range state.Runs {
		if run.Spec.Experiment == state.Experiment || passesOn(state, &run, stay) {
			continue
		}
		old = append(old, run)
		if runs.RecordedEnding(&run) != nil {
			ended[run.Spec.Experiment] = true
		}
	}
	if len(old) == 0 {
		return false
	}
	why := "the spec has changed"
	if TimeOf(old[0].Annotations).Before(state.ScheduledTime) {
		why = "the next scheduled experiment starts"
	}
	decision.say(PositionWaiting, v1alpha1.ReasonSuperseded, "%s: waiting for %s of the earlier experiment to be torn down", why,
		spelling.Count(len(old), "run"))
	if passedOn(state, &old[0]) {
		decision.say(PositionRunning, v1alpha1.ReasonProgressing, "run %s has passed its pool on to this experiment, and is being torn down",
			old[0].Name)
	}
	var unwritten []string
	for _, run := range old {
		experiment := run.Spec.Experiment
		stored := findResults(state, experiment)
		if ended[experiment] && (stored == nil || stored.Extended) { // results without the further repetitions are incomplete
			ended[experiment], unwritten = false, append(unwritten, experiment) // once is enough
		}
	}
	if len(unwritten) == 0 {
		deleteRuns(decision, old)
		releaseBehind(state, decision, old)
		return true
	}
	releaseIfIdle(state, decision) // before the results, which may never be written
	for _, experiment := range unwritten {
		decision.do(Action{Kind: WriteResults, Experiment: experiment, Superseded: true,
			ConfigMap: naming.ResultsName(state.Benchmark.Name, experiment), Fingerprint: naming.Digest(experiment)})
	}
	return true
}

// stepSpec stops at a spec that cannot be run.
func stepSpec(state State, decision *Decision) bool {
	if state.SpecError == nil {
		return false
	}
	decision.say(PositionStalled, state.SpecError.Reason, "%s", state.SpecError.Message)
	if at := holdUntil(state); !at.IsZero() && !state.Now.Before(at) {
		stopUnended(state, decision)
	} else if current := unsettled(state); current != nil { // a single run ends by itself, but an incomplete group would never end
		if group := attemptOf(state, current); group.broken() {
			deleteMembers(decision, group)
		}
		if !at.IsZero() {
			decision.wake(at)
		}
	}
	releaseIfIdle(state, decision)
	sayKept(state, decision)
	return true
}

// stepSuspend stops the run in progress and releases the node.
func stepSuspend(state State, decision *Decision) bool {
	if !state.Benchmark.Spec.Suspend || (decision.Tally.Over && unsettled(state) == nil) {
		return false
	}
	decision.say(PositionSuspended, v1alpha1.ReasonSuspended, "suspended after %d of %d runs: set spec.suspend to false to resume",
		decision.Tally.Done, decision.Tally.Total)
	stopUnended(state, decision)
	releaseIfIdle(state, decision)
	return true
}

// stepClass resolves the StorageClasses, including those of variants.
func stepClass(state State, decision *Decision) bool {
	known, standard := map[string]bool{}, ""
	for _, class := range state.Classes {
		known[class.Name] = true
		if class.Default && (standard == "" || class.Name < standard) {
			standard = class.Name
		}
	}
	if resolved := resolvedClass(state); resolved != "" {
		standard = resolved
	}
	decision.StorageClass, decision.DefaultClass = "", standard
	for _, slot := range state.Slots {
		if slot.Target.StorageClass == nil {
			continue
		}
		name := slot.Target.StorageClass.Name
		switch {
		case name == "" && standard == "":
			missing := "the cluster has no default StorageClass"
			if state.ClusterUnread {
				missing = "the manager is not allowed to list StorageClasses to find the default"
			}
			decision.say(PositionWaiting, v1alpha1.ReasonNoDefaultClass,
				"%s: set spec.target.storageClass.name ('kubectl get storageclass' lists them)", missing)
			releaseIfIdle(state, decision)
			return true
		case name == "":
			name = standard
		}
		if !known[name] {
			decision.say(PositionWaiting, v1alpha1.ReasonStorageClassNotFound,
				"StorageClass %q of variant %q does not exist: create it, or name another ('kubectl get storageclass' lists them)", name, slot.Variant)
			releaseIfIdle(state, decision)
			return true
		}
		if decision.StorageClass == "" {
			decision.StorageClass = name
		}
	}
	return false
}

// resolvedClass is the default class that the runs of this experiment already use. A later change of the cluster's default must not
// mix classes within one experiment.
func resolvedClass(state State) string {
	byIndex := map[int32]string{}
	for _, slot := range state.Slots {
		if slot.Target.StorageClass != nil {
			byIndex[slot.Index] = slot.Target.StorageClass.Name
		}
	}
	for _, run := range state.Runs {
		if run.Spec.Experiment == state.Experiment && byIndex[run.Spec.Index] == "" && run.Spec.Target.StorageClass != nil {
			return run.Spec.Target.StorageClass.Name
		}
	}
	return ""
}

// stepRun waits for the run in progress or creates the next. All runs of a group are created together, and no others with them.
func stepRun(state State, decision *Decision) bool {
	if current := unsettled(state); current != nil {
		waitForRun(decision, attemptOf(state, current))
		giveBackBeside(state, decision)
		return true
	}
	next, number := decision.Tally.Next, decision.Tally.NextAttempt
	for _, left := range attemptsAt(state, next.Index) {
		if left.number == number && left.size() > 1 { // the other runs of its group are gone
			stopGroup(decision, left)
			return true
		}
	}
	if waiting := keptForNext(state, decision, next); waiting != "" {
		decision.say(PositionRunning, v1alpha1.ReasonProgressing, "run %d of %d (%s, repetition %d): %s", next.Index+1, decision.Tally.Total,
			next.Variant, next.Repetition, waiting)
		return true
	}
	for member := range int32(next.NodeCount()) {
		decision.do(Action{Kind: CreateRun, Slot: next, Attempt: number, Member: member})
	}
	decision.say(PositionRunning, v1alpha1.ReasonProgressing, "starting run %d of %d (%s, repetition %d)", next.Index+1, decision.Tally.Total,
		next.Variant, next.Repetition)
	return true
}

// waitForRun reports the run in progress, and keeps a group complete.
func waitForRun(decision *Decision, group attempt) {
	decision.Current = group.slowest()
	current, where := decision.Current, ""
	if group.size() > 1 {
		where = "node " + current.Spec.NodeName + ": "
	}
	decision.say(PositionRunning, v1alpha1.ReasonProgressing, "run %d of %d (%s, repetition %d): %s%s",
		current.Spec.Index+1, decision.Tally.Total, current.Spec.Variant, current.Spec.Repetition, where, runMessage(current))
	switch {
	case !group.broken(): // complete groups end by themselves, and so do Invalid ones
	case group.stopped() || decision.Tally.Next == nil || decision.Tally.Next.Index != current.Spec.Index:
		stopGroup(decision, group)
	default:
		for _, member := range group.missing() {
			decision.do(Action{Kind: CreateRun, Slot: decision.Tally.Next, Attempt: group.number, Member: member})
		}
	}
}
