// Package operations plans a PoolOperation for the agent. Its functions are pure. Each kind of operation has its own file.
package operations

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

const (
	// operationSoon is how often state is checked that no watch reports. Progress is not written more often.
	operationSoon = 10 * time.Second
	// operationDefaultDeadline is the API's default.
	operationDefaultDeadline = 6 * time.Hour
)

// State is the observed state of a PoolOperation.
type State struct {
	Operation *v1alpha1.PoolOperation
	Now       time.Time
	// Agent identifies this agent process.
	Agent string
	// Begun says that this agent process began the operation.
	Begun  bool
	Policy pools.DevicePolicy
	// Pool and ToPool are the BenchmarkPools that the action names. Nil if they do not exist.
	Pool, ToPool *v1alpha1.BenchmarkPool
	// Others are the PoolOperations of the node that have no outcome yet.
	Others []v1alpha1.PoolOperation
	// Live is the imported pool of Pool. Nil if none carries the mark of Pool. ToLive likewise for ToPool.
	Live, ToLive *Pool
	// Source, Snapshot and Target are the datasets and the snapshot that the action names.
	Source, Snapshot, Target Object
	// Properties of Source. Only read for actions that set some.
	Properties []zfs.Property
	// Users of the pool or dataset that must be unused, for messages.
	Users []string
	// Disks and Rivals are as in pools.State. Only read for actions that name disks.
	Disks  map[string]pools.Disk
	Rivals []v1alpha1.BenchmarkPool
	// Parameter is the state of the module parameter that the action sets.
	Parameter ParameterState
	// Job is the background work of this agent on the operation. Nil if there is none.
	Job *Job
	// Leftovers describes what to clean up before the operation may end.
	Leftovers []string
}

// Pool is a live pool that is ours.
type Pool struct {
	zfs.PoolSummary
	// LoadGUID changes with each import.
	LoadGUID string
	// ReadOnly says that it is imported read-only.
	ReadOnly bool
	Status   zfs.Status
	// Marks are the properties of the root dataset that the agent itself has set.
	Marks []zfs.Property
}

// Object is a dataset or snapshot.
type Object struct {
	// Name is the full name. Empty if the action names no such object.
	Name   string
	Exists bool
	zfs.Dataset
	// Mark is the UID of the operation that created it.
	Mark string
	// Empty says that a file system has no files.
	Empty bool
}

// Job is long-running work that the agent itself does.
type Job struct {
	Running bool
	// Progress is nil until the work itself has begun.
	Progress *v1alpha1.OperationProgress
	// Stopped says that the work ended on request.
	Stopped bool
	// Err is the error with which the work ended at EndedAt.
	Err     error
	EndedAt time.Time
	Result
}

// Result is the result of an operation.
type Result struct {
	Message string
	Metrics []v1alpha1.OperationMetric
	// WorkedUntil is when the work ended, if that was measured.
	WorkedUntil time.Time
	// Data is a compressed document, DataDigest the digest of the document.
	Data       []byte
	DataDigest string
}

// Action is something to do for a PoolOperation.
type Action struct {
	Kind ActionKind
	// GUID of the pool to act on.
	GUID string
	// Member of the pool to act on.
	Member string
	// Disks that the action takes.
	Disks []pools.Disk
	// Pool and Mark are the BenchmarkPool whose pool gets the mark, and the value of the mark.
	Pool *v1alpha1.BenchmarkPool
	Mark string
}

// ActionKind is the kind of an Action.
type ActionKind string

// The kinds of an Action. NoteBegun comes before the command of an operation that must not run a second time, RecordDisks before a command
// that adds disks, as for a pool. RunOperation does what the spec requests, StopOperation stops it early, and CleanUpOperation removes
// leftovers.
const (
	AddOperationFinalizer    ActionKind = "AddFinalizer"
	NoteBegun                ActionKind = "NoteBegun"
	RecordDisks              ActionKind = "RecordDisks"
	RunOperation             ActionKind = "Run"
	StopOperation            ActionKind = "Stop"
	CleanUpOperation         ActionKind = "CleanUp"
	RemoveOperationFinalizer ActionKind = "RemoveFinalizer"
)

// Decision is the plan for a State.
type Decision struct {
	Actions []Action
	// Settled says that the status is final.
	Settled bool
	// Begin writes startedAt and the handle.
	Begin  bool
	Handle string
	// Attempts replaces those in the status, if it is not empty.
	Attempts []string
	// Outcome ends the operation.
	Outcome string
	// Reason and Message describe the current work or the outcome.
	Reason  string
	Message string
	// Progress so far, if it is known.
	Progress *v1alpha1.OperationProgress
	Result   Result
	// Recheck is when to check again if no watch reports a change. Zero means never.
	Recheck time.Duration
}

// operationAttempts is the maximum number of agent processes that may start the same work. Work that killed two of them, for example by its
// memory use, would kill the next one too.
const operationAttempts = 2

// Plan decides what to do for a PoolOperation.
func Plan(state State) Decision {
	operation := state.Operation
	var decision Decision
	switch {
	case operation.Status.Outcome != "":
		decision = endedOperation(state)
	case operation.Status.StartedAt != nil:
		decision = startedOperation(state)
	case !operation.DeletionTimestamp.IsZero():
		decision = releaseOperation(state, "the object was deleted before it started")
	case state.Late():
		decision = lateOperation(state)
	default:
		decision = waitingOperation(state)
	}
	if decision.Outcome == "" && !decision.Settled && decision.Recheck != pools.AtOnce {
		decision.Recheck = sooner(decision.Recheck, state.untilDeadline())
	}
	return decision
}

// endedOperation removes the finalizer. A finished operation is never acted on again.
func endedOperation(state State) Decision {
	decision := releaseOperation(state, "")
	if !slices.Contains(state.Operation.Finalizers, v1alpha1.FinalizerTeardown) && len(state.Leftovers) == 0 {
		decision.Actions = nil
	}
	return decision
}

func releaseOperation(state State, message string) Decision {
	decision := Decision{Settled: true, Reason: v1alpha1.ReasonCancelled, Message: message}
	if len(state.Leftovers) > 0 {
		decision.Actions = append(decision.Actions, state.action(CleanUpOperation))
	}
	decision.Actions = append(decision.Actions, state.action(RemoveOperationFinalizer))
	return decision
}

// startedOperation continues from the state of ZFS and the node.
func startedOperation(state State) Decision {
	stage, stop := state.stage(), state.stop()
	deleted := !state.Operation.DeletionTimestamp.IsZero()
	switch {
	case stage.at == stageDone:
		return state.end(ending{v1alpha1.OutcomeSucceeded, v1alpha1.ReasonSucceeded, stage.message}, stage)
	case stage.at == stageFailed:
		return state.end(ending{v1alpha1.OutcomeFailed, stage.reason, stage.message}, stage)
	case stage.at == stageStopped && stop == nil:
		return state.end(ending{v1alpha1.OutcomeFailed, stage.reason, stage.message}, stage)
	case stop == nil && stage.at == stagePending:
		if lost := state.lostAgents(); lost != nil {
			return state.end(*lost, stage)
		}
		if older := state.olderSpec(); older != "" { // the restored status of the pool may have let it begin
			return state.goesOn(operationStage{at: stageBlocked, reason: v1alpha1.ReasonPoolOlderSpec, message: older, progress: stage.progress,
				recheck: operationSoon})
		}
		return state.run(stage)
	case stop == nil:
		return state.goesOn(stage)
	case stage.at == stageRunning && stage.stoppable:
		return Decision{Actions: []Action{state.member(StopOperation, stage)}, Reason: v1alpha1.ReasonOperationRunning,
			Message: stop.message + ": stopping", Progress: stage.progress, Recheck: time.Second}
	case stage.at == stageRunning && state.Operation.Spec.Cancel && !deleted && state.untilDeadline() > 0:
		stage.message += "; it cannot be cancelled and runs to its end"
		return state.goesOn(stage)
	case stage.at == stageRunning:
		if !deleted && state.untilDeadline() <= 0 {
			stop = state.overdue()
		}
		stop.message += "; it cannot be stopped and may continue: " + stage.message
	}
	return state.end(*stop, stage)
}

// lostAgents returns a failure if the agent died too often during the work of the operation, or nil if the work may start.
func (s State) lostAgents() *ending {
	if attempts := s.Operation.Status.Attempts; s.counted() || len(attempts) < operationAttempts {
		return nil
	}
	return &ending{v1alpha1.OutcomeFailed, v1alpha1.ReasonAgentDied,
		fmt.Sprintf("the agent of node %s ended %d times during this %s, which is not retried: "+
			"find out why the agent restarted (kubectl describe its pod: OOMKilled means too little memory), then create another "+
			"PoolOperation",
			s.Operation.Spec.NodeName, operationAttempts, operate.Name(s.Operation.Spec.Action))}
}

// counted reports whether this agent process may start the work: either attempts are not counted for this kind, or the attempt is already
// recorded.
func (s State) counted() bool {
	return !s.kind().job || slices.Contains(s.Operation.Status.Attempts, s.Agent)
}

// attempts returns the recorded attempts and, for long-running work, the attempt of this agent process.
func (s State) attempts() []string {
	if s.counted() {
		return s.Operation.Status.Attempts
	}
	return append(slices.Clone(s.Operation.Status.Attempts), s.Agent)
}

func (s State) run(stage operationStage) Decision {
	if !s.counted() {
		return Decision{Attempts: s.attempts(), Reason: v1alpha1.ReasonOperationRunning,
			Message:  "restarting after the end of an earlier agent",
			Progress: stage.progress, Recheck: pools.AtOnce}
	}
	actions := []Action{{Kind: AddOperationFinalizer}}
	if note := s.noteBegun(); note != nil {
		actions = append(actions, *note)
	}
	if len(stage.disks) > 0 {
		actions = append(actions, Action{Kind: RecordDisks, Disks: stage.disks})
	}
	action := s.member(RunOperation, stage)
	action.Disks = stage.disks
	return Decision{Actions: append(actions, action), Reason: v1alpha1.ReasonOperationRunning,
		Message: stage.message, Progress: stage.progress, Recheck: pools.AtOnce}
}

func (s State) goesOn(stage operationStage) Decision {
	reason := cmp.Or(stage.reason, v1alpha1.ReasonOperationRunning)
	recheck := stage.recheck
	if recheck == 0 {
		recheck = s.pace()
	}
	return Decision{Reason: reason, Message: stage.message, Progress: stage.progress, Recheck: recheck}
}

// pace returns when to check again: soon at first, and less often later.
func (s State) pace() time.Duration {
	return min(max(s.elapsed()/operationPaceShare, time.Second), operationSoon)
}

// operationPaceShare divides the time since the start: the next check follows after a tenth of that time.
const operationPaceShare = 10

func (s State) elapsed() time.Duration {
	if s.Operation.Status.StartedAt == nil {
		return 0
	}
	return s.Now.Sub(s.Operation.Status.StartedAt.Time)
}

// end returns the decision that writes the outcome, or one that cleans up first if there are leftovers.
func (s State) end(as ending, stage operationStage) Decision {
	if len(s.Leftovers) > 0 {
		return Decision{Actions: []Action{s.member(CleanUpOperation, stage)}, Reason: v1alpha1.ReasonCleaningUp,
			Message: "cleaning up: " + objects.SomeOf(s.Leftovers), Recheck: pools.AtOnce}
	}
	if !s.Operation.DeletionTimestamp.IsZero() {
		return releaseOperation(s, as.message)
	}
	decision := Decision{Outcome: as.outcome, Reason: as.reason, Message: as.message, Progress: stage.progress, Recheck: pools.AtOnce}
	if as.outcome != v1alpha1.OutcomeSucceeded && s.Target.Exists && s.Target.Mark == string(s.Operation.UID) {
		decision.Message += "; data that was received completely stays in " + s.Target.Name
	}
	if s.Operation.Spec.Action.OfflineDevice != nil && s.Live == nil && s.Job == nil { // an earlier agent may have taken it offline
		decision.Message += "; " + objects.OperationLeftBehind(s.Operation)
	}
	if as.outcome == v1alpha1.OutcomeSucceeded {
		decision.Result = stage.result
		if decision.Progress == nil {
			decision.Progress = &v1alpha1.OperationProgress{}
		}
		decision.Progress.Percent = 100
	}
	return decision
}

func (s State) action(kind ActionKind) Action {
	action := Action{Kind: kind}
	if s.Live != nil {
		action.GUID = s.Live.GUID
	}
	return action
}

func (s State) member(kind ActionKind, stage operationStage) Action {
	action := s.action(kind)
	action.Member = stage.member
	return action
}

// ending is an outcome with its reason.
type ending struct{ outcome, reason, message string }

// stop returns why an operation has to end early, or nil if it need not.
func (s State) stop() *ending {
	operation := s.Operation
	switch {
	case !operation.DeletionTimestamp.IsZero():
		return &ending{v1alpha1.OutcomeCancelled, v1alpha1.ReasonCancelled, "the object is being deleted"}
	case operation.Spec.Cancel:
		return &ending{v1alpha1.OutcomeCancelled, v1alpha1.ReasonCancelled, "cancelled by spec.cancel"}
	case s.Pool == nil || !s.Pool.DeletionTimestamp.IsZero():
		return &ending{v1alpha1.OutcomeFailed, v1alpha1.ReasonPoolLost, fmt.Sprintf("BenchmarkPool %s is being deleted or gone",
			operation.Spec.Pool)}
	case s.untilDeadline() <= 0:
		return s.overdue()
	}
	return nil
}

func (s State) overdue() *ending {
	return &ending{v1alpha1.OutcomeFailed, v1alpha1.ReasonDeadlineExceeded,
		fmt.Sprintf("its deadline of %s has passed; use a longer spec.deadline", s.deadline())}
}

// Late reports whether an operation has missed its deadline without starting, so that it never will start. It needs only the Operation and
// Now.
func (s State) Late() bool {
	operation := s.Operation
	return operation.Status.Outcome == "" && operation.Status.StartedAt == nil && operation.DeletionTimestamp.IsZero() &&
		s.untilDeadline() <= 0
}

// NeverBegins reports whether nothing was or will be done for an operation, so that neither its pool nor a disk needs to be read.
func (s State) NeverBegins() bool {
	return s.Late() || s.Operation.Status.Outcome != "" && s.Operation.Status.StartedAt == nil
}

func (s State) deadline() time.Duration {
	if s.Operation.Spec.Deadline == nil {
		return operationDefaultDeadline
	}
	return s.Operation.Spec.Deadline.Duration.Duration
}

// untilDeadline returns the time until the deadline, counted from the start of the operation, or from its creation if it has not started.
func (s State) untilDeadline() time.Duration {
	from := s.Operation.CreationTimestamp.Time
	if s.Operation.Status.StartedAt != nil {
		from = s.Operation.Status.StartedAt.Time
	}
	return from.Add(s.deadline()).Sub(s.Now)
}

func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return max(b, pools.AtOnce)
	}
	return a
}

// handlePool returns the guid of the pool in the handle. The handle consists of that guid and, if needed, a space and other text that
// identifies the action.
func (s State) handlePool() string {
	guid, _, _ := strings.Cut(s.Operation.Status.Handle, " ")
	return guid
}

func (s State) handleDetail() string {
	_, detail, _ := strings.Cut(s.Operation.Status.Handle, " ")
	return detail
}
