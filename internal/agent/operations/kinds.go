package operations

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

// traits describe a kind of action to the planner.
type traits struct {
	// concurrent says that it runs concurrently with others on the same pool.
	concurrent bool
	// unhealthy says that it may start on a pool that has lost a disk.
	unhealthy bool
	// disks says that it changes the disks of the pool: it may start although they differ from the spec.
	disks bool
	// offline says that it continues although the pool is not imported.
	offline bool
	// once says that it changes or destroys disks or data: it does not begin a second time for an object from a backup.
	once bool
	// job says that the agent works on it in the background, and again after a restart.
	job bool
	// size returns the size of the work. Nil if it is not known before the start.
	size func(State) int64
	// begin returns the part of the handle that identifies the action, or the obstacle that prevents the start.
	begin func(State) (string, *obstacle)
	// stage returns the progress after the start.
	stage func(State) operationStage
}

func (s State) kind() traits { return kindOf(s.Operation.Spec.Action) }

// kinds are the operations, by the field of PoolAction that requests them. Each has its own file.
var kinds = map[string]traits{
	"addVdev":         addVdevKind,
	"clone":           cloneKind,
	"copy":            copyKind,
	"destroyDataset":  destroyDatasetKind,
	"destroySnapshot": destroySnapshotKind,
	"exportImport":    exportImportKind,
	"layoutScore":     layoutScoreKind,
	"metaslabMap":     metaslabMapKind,
	"moduleParameter": moduleParameterKind,
	"observe":         observeKind,
	"offlineDevice":   offlineDeviceKind,
	"removeVdev":      removeVdevKind,
	"replaceDevice":   replaceDeviceKind,
	"replicate":       replicateKind,
	"scrub":           scrubKind,
	"setProperty":     setPropertyKind,
	"snapshot":        snapshotKind,
	"trim":            trimKind,
}

// unknownKind is an operation of a newer release, whose action has no field that this agent knows. It waits for a newer agent.
var unknownKind = traits{
	begin: func(s State) (string, *obstacle) {
		return "", waits(v1alpha1.ReasonNotSupported, 0, "the agent of node %s does not know this operation: upgrade the agent",
			s.Operation.Spec.NodeName)
	},
	stage: func(s State) operationStage {
		return failedStage(v1alpha1.ReasonNotSupported, "the agent of node %s, which is older than the one that started this operation, does "+
			"not know it: see what it has left behind", s.Operation.Spec.NodeName)
	},
}

// kindOf returns the traits of an action. A test checks that every field of PoolAction has a kind.
func kindOf(action v1alpha1.PoolAction) traits {
	if kind, known := kinds[operate.Name(action)]; known {
		return kind
	}
	return unknownKind
}

// total returns the size of the work, or nil if it is not known before the work starts.
func (k traits) total(state State) *v1alpha1.OperationProgress {
	if k.size == nil {
		return nil
	}
	return &v1alpha1.OperationProgress{TotalBytes: k.size(state)}
}

type stageKind int

// The progress of a started operation. Pending means that its command has not run, according to ZFS and the node.
const (
	stagePending stageKind = iota
	stageRunning
	// stageBlocked means that nothing can be observed or done now.
	stageBlocked
	stageStopped
	stageFailed
	stageDone
)

// operationStage is the progress of an operation.
type operationStage struct {
	at stageKind
	// stoppable says that ZFS or the agent can end it early.
	stoppable       bool
	reason, message string
	progress        *v1alpha1.OperationProgress
	result          Result
	// member and disks are the parameters of the action to run next.
	member  string
	disks   []pools.Disk
	recheck time.Duration
}

func pending(format string, values ...any) operationStage {
	return operationStage{at: stagePending, message: fmt.Sprintf(format, values...)}
}

func running(format string, values ...any) operationStage {
	return operationStage{at: stageRunning, message: fmt.Sprintf(format, values...)}
}

func failedStage(reason, format string, values ...any) operationStage {
	return operationStage{at: stageFailed, reason: reason, message: fmt.Sprintf(format, values...)}
}

func stopped(format string, values ...any) operationStage {
	return operationStage{at: stageStopped, reason: v1alpha1.ReasonStoppedElsewhere, message: fmt.Sprintf(format, values...)}
}

func done(metrics []v1alpha1.OperationMetric, format string, values ...any) operationStage {
	metrics = slices.DeleteFunc(metrics, func(one v1alpha1.OperationMetric) bool { return one == unknown })
	return operationStage{at: stageDone, message: fmt.Sprintf(format, values...), result: Result{Metrics: metrics}}
}

func metric(name string, value int64) v1alpha1.OperationMetric {
	return v1alpha1.OperationMetric{Name: name, Value: value}
}

// timed adds the agent's measurements of a finished command to the result. If the agent has died since the command, they are lost and
// nothing is added.
func (s State) timed(stage operationStage) operationStage {
	if job := s.Job; job != nil && !job.Running && job.Err == nil {
		stage.result.Metrics = append(stage.result.Metrics, job.Metrics...)
		stage.result.WorkedUntil = job.WorkedUntil
	}
	return stage
}

// unknown takes the place of a metric that done leaves out.
var unknown = v1alpha1.OperationMetric{}

// seconds returns the time since the start. It is unknown if another agent process began the operation: the work may have ended, or waited,
// while there was no agent.
func (s State) seconds() v1alpha1.OperationMetric {
	if !s.Begun {
		return unknown
	}
	return metric(operate.MetricDuration, int64(s.elapsed()/time.Second))
}

// stage returns the progress of the operation, which is unknown while the pool is not imported.
func (s State) stage() operationStage {
	kind, guid := s.kind(), s.handlePool()
	if s.Live != nil && s.Live.GUID != guid {
		return failedStage(v1alpha1.ReasonPoolLost, "it started on the pool with guid %s, but BenchmarkPool %s now has a pool with guid %s", guid,
			s.Operation.Spec.Pool, s.Live.GUID)
	}
	if s.Live == nil && !kind.offline && (s.Job == nil || !s.Job.Running) {
		return operationStage{at: stageBlocked, reason: v1alpha1.ReasonPoolNotReady, recheck: operationSoon,
			message: fmt.Sprintf("waiting for the pool of BenchmarkPool %s: it is not imported", s.Operation.Spec.Pool)}
	}
	return kind.stage(s)
}

// Permanent reports whether an error needs a change by a user: ZFS would refuse the command again.
func Permanent(err error) bool {
	for _, refusal := range []error{zfs.Invalid, zfs.Unsupported, zfs.DeviceInUse, zfs.DeviceTooSmall, zfs.OtherHost, zfs.Exists,
		zfs.NotFound, zfs.NoSpace, zfs.HasDependents, zfs.NoReplicas, zfs.BadStream, ErrPermanent} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// ErrPermanent marks other permanent errors.
var ErrPermanent = errors.New("a retry does not help")

// jobStage is the stage of work that the agent does itself. It restarts after temporary errors.
func jobStage(state State) operationStage {
	job := state.Job
	name := operate.Name(state.Operation.Spec.Action)
	switch {
	case job == nil:
		return pending("begins: %s", name)
	case job.Running:
		stage := running("%s is running", name)
		if job.Progress != nil && job.Progress.Message != "" {
			stage.message = job.Progress.Message
		}
		stage.stoppable, stage.progress = true, job.Progress
		return stage
	case job.Err == nil:
		stage := done(slices.Concat(job.Metrics, []v1alpha1.OperationMetric{state.seconds()}), "%s", job.Message)
		stage.result.Data, stage.result.DataDigest, stage.progress = job.Data, job.DataDigest, job.Progress
		stage.result.WorkedUntil = job.WorkedUntil
		return stage
	case job.Stopped:
		return stopped("it was stopped: %v", job.Err)
	case Permanent(job.Err):
		return failedStage(v1alpha1.ReasonActionFailed, "%v", job.Err)
	}
	if again := job.EndedAt.Add(operationSoon); state.Now.Before(again) {
		return operationStage{at: stageBlocked, reason: v1alpha1.ReasonActionFailed, recheck: again.Sub(state.Now),
			message: job.Err.Error() + " (will be retried)"}
	}
	return pending("retrying after: %v", job.Err)
}
