// Package runs plans a BenchmarkRun: its volumes, its phases and what accompanies them, and its teardown. Its functions are pure, as those
// of experiment are.
package runs

import (
	"fmt"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/volume"
)

// Timings are the patience of the operator where the spec does not say.
type Timings struct {
	// CollectGrace is how long a result that does not verify is read again: a log may lag behind the end of its pod.
	CollectGrace time.Duration
	// UnreadableGrace is how long a log that cannot be read at all is tried.
	UnreadableGrace time.Duration
	// CompanionGrace is how long the observation of a phase may take to end after the phase.
	CompanionGrace time.Duration
	// TeardownGrace is how long a teardown that makes no progress holds the node; zero is for ever.
	TeardownGrace time.Duration
}

// ForeignRecheck is how often a name that somebody else's object has is tried again. No watch tells of its end: the caches
// hold only what carries our labels.
const ForeignRecheck = 10 * time.Second

// DefaultTimings suit a real cluster.
func DefaultTimings() Timings {
	return Timings{CollectGrace: 30 * time.Second, UnreadableGrace: 10 * time.Minute, CompanionGrace: 2 * time.Minute,
		TeardownGrace: 5 * time.Minute}
}

// State is all that is known of a run.
type State struct {
	Now     time.Time
	Timings Timings
	Run     *v1alpha1.BenchmarkRun
	// LeaseHolder is the UID of the benchmark that has the node, empty if nobody has; LeaseHolderName is for people.
	LeaseHolder     string
	LeaseHolderName string
	// Owner is the UID of the run's benchmark.
	Owner string
	// BootID tells this boot of the node from others; empty if the node does not say.
	BootID string
	// Pools below the volumes, and the claims of the volumes, taken together.
	Pools  volume.Pools
	Volume volume.VolumeState
	// Parameters are the operations that exist of those that keep the module parameters, by the parameter's name.
	Parameters map[string]*v1alpha1.PoolOperation
	// Phases in the order of the spec.
	Phases []PhaseState
	// Peers are the other runs of the group; none for a run alone.
	Peers []PeerState
	// Pods of this run that still exist, whatever their phase. PodsAtWork are those whose containers may run.
	Pods, PodsAtWork int
	// Taken names an object that this turn was to make, and whose name somebody else's object has.
	Taken string
}

// PhaseState is what is known of one phase.
type PhaseState struct {
	// Operation says that a PoolOperation stands for the Job and the pod.
	Operation bool
	Job       JobState
	Pod       PodState
	Stored    *StoredResult
	// Companions that exist.
	Companions map[Companion]*v1alpha1.PoolOperation
	// FileProblem says why the file of a ConfigMap that the phase names is not there.
	FileProblem string
	// Received is a document that was read from the pod's log and verified, but is not stored yet.
	Received       *results.PhaseDocument
	ReceivedBytes  []byte
	ReceivedDigest string
	// ReceiveError says why there is none although the pod has ended.
	ReceiveError error
}

// JobState is what is known of a phase's Job.
type JobState struct {
	Exists   bool
	Deleting bool
	UID      string
	Created  time.Time
	// StartAt is the moment that a group has agreed on for the workload to begin.
	StartAt *time.Time
	// BootID of the node when the Job was made.
	BootID string
	// Failed and Succeeded as the Job's own conditions have it.
	Failed    bool
	Succeeded bool
	Message   string
}

// PodState is what is known of a phase's pod.
type PodState struct {
	Exists   bool
	Name     string
	Deleting bool
	Started  *time.Time
	// Ended is set once the container has terminated.
	Ended    *time.Time
	ExitCode int32
	// HasReceipt says that the container left a receipt for its result.
	HasReceipt bool
	// Problem is a reason of the API's vocabulary for not starting or for having failed, Message the cluster's words.
	Problem string
	Message string
}

// StoredResult is a phase's result as kept in its ConfigMap.
type StoredResult struct {
	ConfigMap string
	Digest    string
	Outcome   results.Outcome
	Reason    string
	Message   string
	StoredAt  time.Time
	// StartLagMilliseconds is how much later than agreed the workload of a group's run began.
	StartLagMilliseconds *int64
}

// Action is something to do for a run.
type Action struct {
	Kind ActionKind
	// Phase is the index of the phase for those that are about one.
	Phase int
	// Companion that is to start or to end.
	Companion Companion
	// Parameter that is to be restored.
	Parameter string
	// StartAt is when the workload of StartPhase is to begin, at the same moment as on other nodes; zero for a run alone.
	StartAt time.Time
}

// ActionKind is the kind of a RunAction.
type ActionKind string

// The kinds of RunAction.
const (
	CreatePools        ActionKind = "CreatePools"
	TakePools          ActionKind = "TakePools"
	SetParameters      ActionKind = "SetParameters"
	RestoreParameter   ActionKind = "RestoreParameter"
	CreateVolume       ActionKind = "CreateVolume"
	ReportDatasets     ActionKind = "ReportDatasets"
	StartPhase         ActionKind = "StartPhase"
	StartCompanion     ActionKind = "StartCompanion"
	EndCompanion       ActionKind = "EndCompanion"
	StoreResult        ActionKind = "StoreResult"
	DeleteJobs         ActionKind = "DeleteJobs"
	DeleteVolume       ActionKind = "DeleteVolume"
	DeletePools        ActionKind = "DeletePools"
	RemoveRunFinalizer ActionKind = "RemoveFinalizer"
)

// Ending is the end of a run.
type Ending struct {
	Valid     bool
	Reason    string
	Message   string
	Retryable bool
}

// Decision is what follows from a RunState.
type Decision struct {
	Actions []Action
	// Ending is set when the run has come to its end, now or earlier.
	Ending *Ending
	// Settled says that an ended run has also been cleaned up.
	Settled bool
	// Reason and Message say what is going on or waited for.
	Reason  string
	Message string
	// Phase that is current.
	Phase string
	// ReadyFor is the phase that a run of a group has just become ready for.
	ReadyFor string
	// WakeAt is when a deadline is due; zero if only a watch can change anything.
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
		return Decision{Ending: ending, Reason: ending.Reason, Message: ending.Message}
	}
	for i := range state.Phases {
		if decision, over := runPhase(state, i); !over {
			return decision
		}
	}
	if waiting := awaitEnd(state); waiting != nil {
		return *waiting
	}
	ending := Ending{Valid: true, Reason: v1alpha1.ReasonMeasured,
		Message: fmt.Sprintf("all %d phases have been executed and their results are stored", len(state.Phases))}
	return Decision{Ending: &ending, Reason: ending.Reason, Message: ending.Message}
}

// deletedRun removes everything in the safe order: pods, then volume, then the object.
func deletedRun(state State) Decision {
	decision := teardown(state)
	if len(decision.Actions) == 0 && decision.Settled {
		decision.Actions = []Action{{Kind: RemoveRunFinalizer}}
	}
	return decision
}

// endedRun cleans up after a run whose outcome is recorded, unless it is to be kept for a look.
func endedRun(state State, ending Ending) Decision {
	retain := state.Run.Spec.Retain
	if (retain == v1alpha1.RetainAlways || (retain == v1alpha1.RetainOnFailure && !ending.Valid)) && !Restless(state) {
		ends, atRest := restOperations(state)
		return Decision{Actions: ends, Ending: &ending, Settled: atRest, Reason: ending.Reason,
			Message: ending.Message + fmt.Sprintf(" (volume and pods are kept: retain is %s)", retain)}
	}
	decision := teardown(state)
	decision.Ending = &ending
	if decision.Settled {
		decision.Reason, decision.Message = ending.Reason, ending.Message
	}
	return decision
}

// Restless says that a pod of the run may still be at work. Such a pod is not kept: it would load the node while others
// measure.
func Restless(state State) bool {
	resting := 0
	for _, phase := range state.Phases {
		if phase.Pod.Ended != nil {
			if !phase.Operation { // which has no pod
				resting++
			}
		} else if phase.Job.Exists && !phase.Job.Failed && !phase.Job.Succeeded {
			return true
		}
	}
	return state.Pods > resting
}

// teardown deletes Jobs and operations, waits for them and their pods, deletes the volumes and waits for them, and then the pools.
func teardown(state State) Decision {
	decision := Decision{Reason: v1alpha1.ReasonTearingDown, Message: "removing the pods and the volume of the run"}
	jobs, deletable := state.jobs()
	switch {
	case deletable > 0:
		decision.Actions = []Action{{Kind: DeleteJobs}}
	case jobs > 0 || state.Pods > 0: // wait: a volume must not go while a pod may still write to it
	case state.Volume.Left() && !state.Volume.Deleting:
		decision.Actions = []Action{{Kind: DeleteVolume}}
	case state.Volume.Unwatched != "":
		// A pool that goes first would leave the driver with a volume that it can never let go.
		decision.Message = fmt.Sprintf("waiting for the driver to destroy %s: is its agent on node %s at work?", state.Volume.Unwatched,
			state.Run.Spec.NodeName)
		if state.Volume.Foreign {
			decision.Message += " If it is that of a PersistentVolumeClaim that has taken the name of the run's, delete that claim"
		}
		decision.WakeAt = state.Now.Add(UnwatchedRecheck)
	case state.Volume.Left():
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

// jobs counts what may be at work for a run, and how much of it is to be deleted yet.
func (s State) jobs() (all, deletable int) {
	count := func(deleting bool) {
		all++
		if !deleting {
			deletable++
		}
	}
	for _, phase := range s.Phases {
		if phase.Job.Exists {
			count(phase.Job.Deleting)
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

// volumeEnding ends a run whose volume vanished after its first phase had begun. It must not be made again: the new
// one would be empty, and the numbers would speak of something else.
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
	name := naming.VolumeName(state.Run.Name)
	switch {
	case !state.Volume.Exists || state.Volume.Deleting:
		return invalid(v1alpha1.ReasonVolumeLost, true, "PersistentVolumeClaim %s was deleted while the run needed it", name)
	case state.Volume.Lost:
		return invalid(v1alpha1.ReasonVolumeLost, true, "PersistentVolumeClaim %s has lost its volume", name)
	}
	return nil
}

func (d *Decision) wake(at time.Time) {
	if d.WakeAt.IsZero() || at.Before(d.WakeAt) {
		d.WakeAt = at
	}
}
