package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// PropertyOperation is the UID of the PoolOperation that made a snapshot or dataset. The command that makes it sets it.
const PropertyOperation = "storagebench.dev:operation"

const (
	// operationSoon is how often what no watch can tell is looked at; progress is written no more often.
	operationSoon = 10 * time.Second
	// operationDefaultDeadline is the API's default.
	operationDefaultDeadline = 6 * time.Hour
)

// OperationState is all that is known of a PoolOperation.
type OperationState struct {
	Operation *v1alpha1.PoolOperation
	Now       time.Time
	// Agent identifies this life of the agent.
	Agent  string
	Policy DevicePolicy
	// Pool and ToPool are the BenchmarkPools that the action names, nil if there are none.
	Pool, ToPool *v1alpha1.BenchmarkPool
	// Others are the PoolOperations of the node that have no outcome yet.
	Others []v1alpha1.PoolOperation
	// Live is the imported pool, nil unless it carries the mark of Pool; ToLive likewise.
	Live, ToLive *OperationPool
	// Source, Snapshot and Target are what the action names.
	Source, Snapshot, Target OperationObject
	// Users of the pool or dataset that must be unused, in words.
	Users []string
	// Disks and Rivals as in PoolState; looked at only by actions that take disks.
	Disks  map[string]PoolDisk
	Rivals []v1alpha1.BenchmarkPool
	// Parameter of the module.
	Parameter ParameterState
	// Job is the work of this agent on the operation, nil if there is none.
	Job *OperationJob
	// Leftovers are, in words, what is to be cleaned up before the operation may end.
	Leftovers []string
}

// OperationPool is a live pool that is ours.
type OperationPool struct {
	zfs.PoolSummary
	// LoadGUID is another after each import.
	LoadGUID string
	Status   zfs.Status
}

// OperationObject is a dataset or snapshot.
type OperationObject struct {
	// Name in full; empty if the action names none.
	Name   string
	Exists bool
	zfs.Dataset
	// Mark is the UID of the operation that made it.
	Mark string
	// Empty says that a file system has no files.
	Empty bool
}

// OperationJob is work that takes time, done by the agent itself.
type OperationJob struct {
	Running  bool
	Progress v1alpha1.OperationProgress
	// Stopped says that it ended because it was told to.
	Stopped bool
	// Err of its end, which was at EndedAt.
	Err     error
	EndedAt time.Time
	OperationResult
}

// OperationResult is what an operation has to show.
type OperationResult struct {
	Message string
	Metrics []v1alpha1.OperationMetric
	// Data is a compressed document, DataDigest that of the document.
	Data       []byte
	DataDigest string
}

// OperationAction is something to do for a PoolOperation.
type OperationAction struct {
	Kind OperationActionKind
	// GUID of the pool that is meant, ToGUID of the other one.
	GUID, ToGUID string
	// Member of the pool that is meant.
	Member string
	// Disks that the action takes.
	Disks []PoolDisk
}

// OperationActionKind is the kind of an OperationAction.
type OperationActionKind string

// The kinds of OperationAction. RunOperation does what the spec says; StopOperation ends it early; CleanUpOperation removes what
// must not stay.
const (
	AddOperationFinalizer    OperationActionKind = "AddFinalizer"
	RunOperation             OperationActionKind = "Run"
	StopOperation            OperationActionKind = "Stop"
	CleanUpOperation         OperationActionKind = "CleanUp"
	RemoveOperationFinalizer OperationActionKind = "RemoveFinalizer"
)

// OperationDecision is what follows from an OperationState.
type OperationDecision struct {
	Actions []OperationAction
	// Settled says that the status is final.
	Settled bool
	// Begin writes startedAt and the handle.
	Begin  bool
	Handle string
	// Attempts replaces those in the status, if it is not empty.
	Attempts []string
	// Outcome ends the operation.
	Outcome string
	// Reason and Message say what is going on or how it ended.
	Reason  string
	Message string
	// Progress so far, if it is known.
	Progress *v1alpha1.OperationProgress
	Result   OperationResult
	// Recheck is when to look again if nothing is reported before; zero is never.
	Recheck time.Duration
}

// The outcomes.
const (
	OutcomeSucceeded = "Succeeded"
	OutcomeFailed    = "Failed"
	OutcomeCancelled = "Cancelled"
)

// operationAttempts are the lives of the agent in which the same work is begun at most. What ends two of them, such as work for which the
// agent has not enough memory, would end the next one too.
const operationAttempts = 2

// Operation decides what to do for a PoolOperation.
func Operation(state OperationState) OperationDecision {
	operation := state.Operation
	var decision OperationDecision
	switch {
	case operation.Status.Outcome != "":
		decision = endedOperation(state)
	case operation.Status.StartedAt != nil:
		decision = startedOperation(state)
	case !operation.DeletionTimestamp.IsZero():
		decision = releaseOperation(state, "the object is being deleted before it began")
	case state.Late():
		decision = lateOperation(state)
	default:
		decision = waitingOperation(state)
	}
	if decision.Outcome == "" && !decision.Settled && decision.Recheck != poolAtOnce {
		decision.Recheck = sooner(decision.Recheck, state.untilDeadline())
	}
	return decision
}

// endedOperation lets go of the object: nothing is ever done for it again.
func endedOperation(state OperationState) OperationDecision {
	decision := releaseOperation(state, "")
	if !slices.Contains(state.Operation.Finalizers, v1alpha1.FinalizerTeardown) && len(state.Leftovers) == 0 {
		decision.Actions = nil
	}
	return decision
}

func releaseOperation(state OperationState, message string) OperationDecision {
	decision := OperationDecision{Settled: true, Reason: v1alpha1.ReasonCancelled, Message: message}
	if len(state.Leftovers) > 0 {
		decision.Actions = append(decision.Actions, state.action(CleanUpOperation))
	}
	decision.Actions = append(decision.Actions, state.action(RemoveOperationFinalizer))
	return decision
}

// startedOperation goes on from what ZFS and the node show.
func startedOperation(state OperationState) OperationDecision {
	stage, stop := state.stage(), state.stop()
	deleted := !state.Operation.DeletionTimestamp.IsZero()
	switch {
	case stage.at == stageDone:
		return state.end(ending{OutcomeSucceeded, v1alpha1.ReasonSucceeded, stage.message}, stage)
	case stage.at == stageFailed:
		return state.end(ending{OutcomeFailed, stage.reason, stage.message}, stage)
	case stage.at == stageStopped && stop == nil:
		return state.end(ending{OutcomeFailed, stage.reason, stage.message}, stage)
	case stop == nil && stage.at == stagePending:
		if lost := state.lostAgents(); lost != nil {
			return state.end(*lost, stage)
		}
		return state.run(stage)
	case stop == nil:
		return state.goesOn(stage)
	case stage.at == stageRunning && stage.stoppable:
		return OperationDecision{Actions: []OperationAction{state.member(StopOperation, stage)}, Reason: v1alpha1.ReasonOperationRunning,
			Message: stop.message + ": stopping", Progress: stage.progress, Recheck: time.Second}
	case stage.at == stageRunning && state.Operation.Spec.Cancel && !deleted && state.untilDeadline() > 0:
		stage.message += "; it cannot be cancelled and goes on to its end"
		return state.goesOn(stage)
	case stage.at == stageRunning:
		if !deleted && state.untilDeadline() <= 0 {
			stop = state.overdue()
		}
		stop.message += "; it cannot be stopped and may go on: " + stage.message
	}
	return state.end(*stop, stage)
}

// lostAgents ends work that has ended with its agent too often; nil if it may be begun.
func (s OperationState) lostAgents() *ending {
	if attempts := s.Operation.Status.Attempts; s.counted() || len(attempts) < operationAttempts {
		return nil
	}
	return &ending{OutcomeFailed, v1alpha1.ReasonAgentDied, fmt.Sprintf("the agent of node %s ended %d times while it was at work on this %s, which is not begun again: "+
		"find out why the agent was restarted (kubectl describe its pod: OOMKilled means that it had not enough memory), then make another PoolOperation",
		s.Operation.Spec.NodeName, operationAttempts, OperationName(s.Operation.Spec.Action))}
}

// counted says whether the work may be begun by this life of the agent: that is written down before.
func (s OperationState) counted() bool {
	return !s.kind().job || slices.Contains(s.Operation.Status.Attempts, s.Agent)
}

// attempts are those recorded and, of work that takes long, this one.
func (s OperationState) attempts() []string {
	if s.counted() {
		return s.Operation.Status.Attempts
	}
	return append(slices.Clone(s.Operation.Status.Attempts), s.Agent)
}

func (s OperationState) run(stage operationStage) OperationDecision {
	if !s.counted() {
		return OperationDecision{Attempts: s.attempts(), Reason: v1alpha1.ReasonOperationRunning, Message: "begins again, after an earlier agent has ended",
			Progress: stage.progress, Recheck: poolAtOnce}
	}
	action := s.member(RunOperation, stage)
	action.Disks = stage.disks
	return OperationDecision{Actions: []OperationAction{{Kind: AddOperationFinalizer}, action}, Reason: v1alpha1.ReasonOperationRunning,
		Message: stage.message, Progress: stage.progress, Recheck: poolAtOnce}
}

func (s OperationState) goesOn(stage operationStage) OperationDecision {
	reason := stage.reason
	if reason == "" {
		reason = v1alpha1.ReasonOperationRunning
	}
	recheck := stage.recheck
	if recheck == 0 {
		recheck = s.pace()
	}
	return OperationDecision{Reason: reason, Message: stage.message, Progress: stage.progress, Recheck: recheck}
}

// pace looks often at what has just begun and less often later.
func (s OperationState) pace() time.Duration {
	return min(max(s.elapsed()/operationPaceShare, time.Second), operationSoon)
}

const operationPaceShare = 10

func (s OperationState) elapsed() time.Duration {
	if s.Operation.Status.StartedAt == nil {
		return 0
	}
	return s.Now.Sub(s.Operation.Status.StartedAt.Time)
}

// end writes the outcome once nothing is left that must not stay.
func (s OperationState) end(as ending, stage operationStage) OperationDecision {
	if len(s.Leftovers) > 0 {
		return OperationDecision{Actions: []OperationAction{s.member(CleanUpOperation, stage)}, Reason: v1alpha1.ReasonCleaningUp,
			Message: "cleaning up: " + someOf(s.Leftovers), Recheck: poolAtOnce}
	}
	if !s.Operation.DeletionTimestamp.IsZero() {
		return releaseOperation(s, as.message)
	}
	decision := OperationDecision{Outcome: as.outcome, Reason: as.reason, Message: as.message, Progress: stage.progress, Recheck: poolAtOnce}
	if as.outcome != OutcomeSucceeded && s.Target.Exists && s.Target.Mark == string(s.Operation.UID) {
		decision.Message += "; what has arrived whole stays in " + s.Target.Name
	}
	if as.outcome == OutcomeSucceeded {
		decision.Result = stage.result
		if decision.Progress == nil {
			decision.Progress = &v1alpha1.OperationProgress{}
		}
		decision.Progress.Percent = 100
	}
	return decision
}

func (s OperationState) action(kind OperationActionKind) OperationAction {
	action := OperationAction{Kind: kind}
	if s.Live != nil {
		action.GUID = s.Live.GUID
	}
	if s.ToLive != nil {
		action.ToGUID = s.ToLive.GUID
	}
	return action
}

func (s OperationState) member(kind OperationActionKind, stage operationStage) OperationAction {
	action := s.action(kind)
	action.Member = stage.member
	return action
}

// ending is an outcome with its reason.
type ending struct{ outcome, reason, message string }

// stop says why an operation is to end before its time; nil if it is not.
func (s OperationState) stop() *ending {
	operation := s.Operation
	switch {
	case !operation.DeletionTimestamp.IsZero():
		return &ending{OutcomeCancelled, v1alpha1.ReasonCancelled, "the object is being deleted"}
	case operation.Spec.Cancel:
		return &ending{OutcomeCancelled, v1alpha1.ReasonCancelled, "cancelled, as spec.cancel asks"}
	case s.Pool == nil || !s.Pool.DeletionTimestamp.IsZero():
		return &ending{OutcomeFailed, v1alpha1.ReasonPoolLost, fmt.Sprintf("BenchmarkPool %s is being deleted or gone", operation.Spec.Pool)}
	case s.untilDeadline() <= 0:
		return s.overdue()
	}
	return nil
}

func (s OperationState) overdue() *ending {
	return &ending{OutcomeFailed, v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("its deadline of %s has passed; ask for a longer one in spec.deadline", s.deadline())}
}

// Late says that an operation has not begun and never will: its deadline has passed. Nothing but the object is needed to know.
func (s OperationState) Late() bool {
	operation := s.Operation
	return operation.Status.Outcome == "" && operation.Status.StartedAt == nil && operation.DeletionTimestamp.IsZero() && s.untilDeadline() <= 0
}

// NeverBegins says that nothing was done for an operation and nothing will be: neither its pool nor a disk has to be looked at.
func (s OperationState) NeverBegins() bool {
	return s.Late() || s.Operation.Status.Outcome != "" && s.Operation.Status.StartedAt == nil
}

func (s OperationState) deadline() time.Duration {
	if s.Operation.Spec.Deadline == nil {
		return operationDefaultDeadline
	}
	return s.Operation.Spec.Deadline.Duration.Duration
}

// untilDeadline counts from the start, or from the creation of what has not begun.
func (s OperationState) untilDeadline() time.Duration {
	from := s.Operation.CreationTimestamp.Time
	if s.Operation.Status.StartedAt != nil {
		from = s.Operation.Status.StartedAt.Time
	}
	return from.Add(s.deadline()).Sub(s.Now)
}

func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return max(b, poolAtOnce)
	}
	return a
}

// The handle is the guid of the pool, and behind a blank what more identifies the act.
func (s OperationState) handlePool() string {
	guid, _, _ := strings.Cut(s.Operation.Status.Handle, " ")
	return guid
}

func (s OperationState) handleDetail() string {
	_, detail, _ := strings.Cut(s.Operation.Status.Handle, " ")
	return detail
}
