// Package runs plans a BenchmarkRun: its volumes, its phases and their companions, and its teardown. Like those of package
// experiment, its functions are pure.
package runs

import (
	"fmt"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
)

// Timings are the time limits that the spec does not set.
type Timings struct {
	// CollectGrace is how long reading a result that fails verification is retried: a log may lag behind the end of its pod.
	CollectGrace time.Duration
	// UnreadableGrace is how long reading a log is retried.
	UnreadableGrace time.Duration
	// CompanionGrace is how long the observation of a phase may take to end after the phase.
	CompanionGrace time.Duration
	// TeardownGrace is how long a teardown without progress holds the node. Zero means forever.
	TeardownGrace time.Duration
}

// ForeignRecheck is how often to retry a name that an object of another owner uses. No watch reports the deletion of that object, because
// the caches hold only objects with the operator's labels.
const ForeignRecheck = 10 * time.Second

// DefaultTimings suit a real cluster.
func DefaultTimings() Timings {
	return Timings{CollectGrace: 30 * time.Second, UnreadableGrace: 10 * time.Minute, CompanionGrace: 2 * time.Minute,
		TeardownGrace: 5 * time.Minute}
}

// State is the observed state of a run.
type State struct {
	Now     time.Time
	Timings Timings
	Run     *v1alpha1.BenchmarkRun
	// LeaseHolder is the UID of the benchmark that holds the node. Empty if there is none. LeaseHolderName is its readable form.
	LeaseHolder     string
	LeaseHolderName string
	// Owner is the UID of the run's benchmark.
	Owner string
	// BootID identifies the current boot of the node. Empty if the node does not report it.
	BootID string
	// Pools and Claims combine the states of all pools and of all claims of the run.
	Pools  Pools
	Claims Claims
	// Unclaimed are the volumes of the next phase that earlier phases have made and whose claims have not been created yet. Claims does not
	// count them.
	Unclaimed []string
	// Parameters are the existing operations that keep module parameters, by parameter name.
	Parameters map[string]*v1alpha1.PoolOperation
	// Phases in the order of the spec.
	Phases []PhaseState
	// Peers are the other runs of the group. Empty for a single run.
	Peers []PeerState
	// Pods is the number of pods of this run that still exist, whatever their phase. PodsAtWork counts those whose containers may be
	// running.
	Pods, PodsAtWork int
	// Taken names an object that this reconciliation tried to create although an object of another owner already uses the name.
	Taken string
	// Refused says which object the API server does not let this reconciliation create, and why, for example because of a quota.
	Refused string
}

// PhaseState is the observed state of one phase.
type PhaseState struct {
	// Operation is true if the executor is a PoolOperation. Pod then says when it started and ended.
	Operation bool
	Executor  ExecutorState
	Pod       PodState
	Stored    *StoredResult
	// Companions are the companions that exist.
	Companions map[Companion]*v1alpha1.PoolOperation
	// EndTold is true if the pod has been told when to end, see TellEnd.
	EndTold bool
	// BesideSeen is true if the operation of measure.operate has existed, as far as this manager knows. EndTold implies that too.
	BesideSeen bool
	// FileProblem says why the ConfigMap key that the phase uses cannot be read.
	FileProblem string
	// Received is a document that was read from the pod's log and verified, but is not stored yet.
	Received       *results.PhaseDocument
	ReceivedBytes  []byte
	ReceivedDigest string
	// ReceiveError says why there is no document although the pod has ended.
	ReceiveError error
}

// ExecutorState is the observed state of the executor of a phase: a Job or a PoolOperation.
type ExecutorState struct {
	Exists   bool
	Deleting bool
	UID      string
	Created  time.Time
	// StartAt is the time at which a group agreed to start the workload.
	StartAt *time.Time
	// BootID is the boot ID of the node when the executor was created.
	BootID string
	// Failed and Succeeded are its own conditions.
	Failed    bool
	Succeeded bool
	Message   string
}

// PodState is the observed state of a phase's pod.
type PodState struct {
	Exists   bool
	Name     string
	Deleting bool
	Started  *time.Time
	// Ended is set once the container has terminated.
	Ended    *time.Time
	ExitCode int32
	// HasReceipt is true if the container left a receipt for its result.
	HasReceipt bool
	// Hopeless is true if the pod could not do its work and another attempt would fail in the same way.
	Hopeless bool
	// Problem is an API reason for not starting or for a failure. Message is the cluster's explanation.
	Problem string
	Message string
}

// StoredResult is a phase's result in its ConfigMap.
type StoredResult struct {
	ConfigMap string
	Digest    string
	Outcome   results.Outcome
	Reason    string
	Message   string
	StoredAt  time.Time
	// StartLagMilliseconds is how late the workload of a group's run started.
	StartLagMilliseconds *int64
}

// Action is something to do for a run.
type Action struct {
	Kind ActionKind
	// Phase is the index of the phase, for actions on a phase.
	Phase int
	// Companion is the companion to start or to end.
	Companion Companion
	// Parameter is the module parameter to restore.
	Parameter string
	// StartAt is when the workload of StartPhase must start, the same time on all nodes. It is zero for a single run.
	StartAt time.Time
	// EndAt is when the workload must end, for TellEnd.
	EndAt time.Time
}

// ActionKind is the kind of an Action.
type ActionKind string

// The kinds of an Action.
const (
	CreatePools             ActionKind = "CreatePools"
	TakePools               ActionKind = "TakePools"
	SetParameters           ActionKind = "SetParameters"
	RestoreParameter        ActionKind = "RestoreParameter"
	CreateVolumes           ActionKind = "CreateVolumes"
	ReportDatasets          ActionKind = "ReportDatasets"
	StartPhase              ActionKind = "StartPhase"
	StartCompanion          ActionKind = "StartCompanion"
	EndCompanion            ActionKind = "EndCompanion"
	TellEnd                 ActionKind = "TellEnd"
	StoreResult             ActionKind = "StoreResult"
	DeleteJobsAndOperations ActionKind = "DeleteJobsAndOperations"
	DeleteVolumes           ActionKind = "DeleteVolumes"
	DeletePools             ActionKind = "DeletePools"
	RemoveRunFinalizer      ActionKind = "RemoveFinalizer"
)

// Ending is the end of a run.
type Ending struct {
	Valid     bool
	Reason    string
	Message   string
	Retryable bool
}

// Decision is the plan for a State.
type Decision struct {
	Actions []Action
	// Ending is set when the run has ended, now or earlier.
	Ending *Ending
	// Settled is true if a finished run has been torn down.
	Settled bool
	// Reason and Message describe the current work or wait.
	Reason  string
	Message string
	// Phase is the current phase.
	Phase string
	// ReadyFor is the phase that a run of a group has just become ready for.
	ReadyFor string
	// WakeAt is when the next deadline is due. It is zero if only a watch event can change anything.
	WakeAt time.Time
}

// Plan decides what to do for a run.
func Plan(state State) Decision {
	if !state.Run.DeletionTimestamp.IsZero() {
		return deletedRun(state)
	}
	if ending := RecordedEnding(state.Run); ending != nil {
		return endedRun(state, *ending)
	}
	if ending := groupEnding(state); ending != nil {
		return Decision{}.endsWith(ending)
	}
	for i := range state.Phases {
		if decision, over := runPhase(state, i); !over {
			return decision
		}
	}
	if waiting := awaitEnd(state); waiting != nil {
		return *waiting
	}
	return Decision{}.endsWith(&Ending{Valid: true, Reason: v1alpha1.ReasonMeasured,
		Message: fmt.Sprintf("all %d phases have been executed and their results are stored", len(state.Phases))})
}

// deletedRun removes everything in the safe order: pods, then volume, then the object.
func deletedRun(state State) Decision {
	decision := teardown(state)
	if len(decision.Actions) == 0 && decision.Settled {
		decision.Actions = []Action{{Kind: RemoveRunFinalizer}}
	}
	return decision
}

// endedRun tears down a run whose outcome is recorded, unless it is retained.
func endedRun(state State, ending Ending) Decision {
	if retain := state.Run.Spec.Retain; Retains(retain, ending) && !Restless(state) {
		ends, atRest := restOperations(state)
		decision := Decision{Actions: ends, Ending: &ending, Settled: atRest, Reason: ending.Reason,
			Message: ending.Message + fmt.Sprintf(" (volume and pods are kept: retain is %s)", retain)}
		checkTeardown(state, &decision)
		return decision
	}
	decision := teardown(state)
	decision.Ending = &ending
	if decision.Settled {
		decision.Reason, decision.Message = ending.Reason, ending.Message
	}
	return decision
}

// Restless reports whether a pod of the run may still be running. Such a pod is not retained: it would load the node while others measure.
func Restless(state State) bool {
	resting := 0
	for _, phase := range state.Phases {
		if phase.Pod.Ended != nil {
			if !phase.Operation { // an operation has no pod
				resting++
			}
		} else if phase.Executor.Exists && !phase.Executor.Failed && !phase.Executor.Succeeded {
			return true
		}
	}
	return state.Pods > resting
}

// teardown deletes Jobs and operations, waits for them and their pods, deletes the volumes and waits for them, and then the pools.
func teardown(state State) Decision {
	decision := Decision{Reason: v1alpha1.ReasonTearingDown, Message: "removing the pods and the volume of the run"}
	jobs, deletable := state.work()
	switch {
	case deletable > 0:
		decision.Actions = []Action{{Kind: DeleteJobsAndOperations}}
	case jobs > 0 || state.Pods > 0: // wait: a volume must not be deleted while a pod may still write to it
	case state.Claims.Left() && !state.Claims.Deleting:
		decision.Actions = []Action{{Kind: DeleteVolumes}}
	case state.Claims.Unwatched != "":
		// If the pool were deleted first, the driver could never release its volume.
		decision.Message = fmt.Sprintf("waiting for the driver to destroy %s: is its agent on node %s running?", state.Claims.Unwatched,
			state.Run.Spec.NodeName)
		if state.Claims.Foreign {
			decision.Message += " If it belongs to another PersistentVolumeClaim with the name of the run's claim, delete that claim"
		}
		decision.WakeAt = state.Now.Add(UnwatchedRecheck)
		if Stuck(state.Run) {
			decision.WakeAt = state.Now.Add(StuckRecheck)
		}
	case state.Claims.Left():
	case state.handsPoolsOn():
		decision.Settled = true
	case state.Pools.Some && !state.Pools.Deleting:
		decision.Actions = []Action{{Kind: DeletePools}}
	case state.Pools.Some:
		decision.Message = fmt.Sprintf("removing the pools of the run: %s: %s", state.Pools.Reason, state.Pools.Message)
	default:
		decision.Settled = true
	}
	checkTeardown(state, &decision)
	return decision
}

// work counts the Jobs and operations that may be running for a run, and those that are not being deleted yet.
func (s State) work() (all, deletable int) {
	count := func(deleting bool) {
		all++
		if !deleting {
			deletable++
		}
	}
	for _, phase := range s.Phases {
		if phase.Executor.Exists {
			count(phase.Executor.Deleting)
		}
		for _, operation := range phase.Companions {
			count(!operation.DeletionTimestamp.IsZero())
		}
	}
	for _, operation := range s.Parameters {
		count(!operation.DeletionTimestamp.IsZero())
	}
	return all, deletable
}

// volumeEnding ends a run whose volume vanished after its first phase had started. It must not be recreated: the new volume would
// be empty, and the run would measure something else.
func volumeEnding(state State) *Ending {
	if len(state.Run.Status.Phases) == 0 {
		return nil
	}
	if ending := poolsEnding(state); ending != nil {
		return ending
	}
	if ending := parametersEnding(state); ending != nil {
		return ending
	}
	name := naming.ClaimName(state.Run, naming.VolumeData)
	switch {
	case !state.Claims.Exists || state.Claims.Deleting:
		return invalid(v1alpha1.ReasonVolumeLost, true, "PersistentVolumeClaim %s was deleted while the run needed it", name)
	case state.Claims.Lost:
		return invalid(v1alpha1.ReasonVolumeLost, true, "PersistentVolumeClaim %s has lost its volume", name)
	}
	return nil
}

// endsWith is the decision to end the run now.
func (d Decision) endsWith(ending *Ending) Decision {
	return Decision{Phase: d.Phase, Ending: ending, Reason: ending.Reason, Message: ending.Message}
}

func (d *Decision) wake(at time.Time) {
	if d.WakeAt.IsZero() || at.Before(d.WakeAt) {
		d.WakeAt = at
	}
}
