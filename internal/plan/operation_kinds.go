package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// operationKind is what the planner knows of a kind of action.
type operationKind struct {
	name string
	// beside says that it runs beside others on the same pool.
	beside bool
	// unhealthy says that it may begin on a pool that has lost a disk.
	unhealthy bool
	// disks says that it changes the disks of the pool: it may begin although they differ from the spec.
	disks bool
	// offline says that it goes on although the pool is not imported now.
	offline bool
	// job says that the agent does it beside its turns, and again after it was restarted.
	job bool
	// begin tells what is in the way, or what identifies the act.
	begin func(OperationState) (string, *obstacle)
	// stage tells how far it is, once it has begun.
	stage func(OperationState) operationStage
}

// OperationName is the name of an action's kind in words.
func OperationName(action v1alpha1.PoolAction) string { return kindOf(action).name }

func (s OperationState) kind() operationKind { return kindOf(s.Operation.Spec.Action) }

//nolint:gocognit // one line a kind
func kindOf(action v1alpha1.PoolAction) operationKind {
	switch {
	case action.Observe != nil:
		return operationKind{name: "observe", beside: true, unhealthy: true, offline: true, begin: beginObserve, stage: observeStage}
	case action.Snapshot != nil:
		return operationKind{name: "snapshot", begin: beginSnapshot, stage: snapshotStage}
	case action.Clone != nil:
		return operationKind{name: "clone", begin: beginClone, stage: cloneStage}
	case action.DestroyDataset != nil:
		return operationKind{name: "destroyDataset", job: true, begin: beginDestroy, stage: destroyStage}
	case action.Replicate != nil:
		return operationKind{name: "replicate", job: true, begin: beginReplicate, stage: jobStage}
	case action.Copy != nil:
		return operationKind{name: "copy", job: true, begin: beginCopy, stage: jobStage}
	case action.Scrub != nil:
		return operationKind{name: "scrub", unhealthy: true, begin: beginScrub, stage: scrubStage}
	case action.Trim != nil:
		return operationKind{name: "trim", begin: beginTrim, stage: trimStage}
	case action.AddVdev != nil:
		return operationKind{name: "addVdev", disks: true, begin: beginAddVdev, stage: addVdevStage}
	case action.RemoveVdev != nil:
		return operationKind{name: "removeVdev", disks: true, begin: beginRemoveVdev, stage: removeVdevStage}
	case action.ReplaceDevice != nil:
		return operationKind{name: "replaceDevice", disks: true, unhealthy: true, begin: beginReplace, stage: replaceStage}
	case action.ExportImport != nil:
		return operationKind{name: "exportImport", offline: true, begin: beginExport, stage: exportStage}
	case action.ModuleParameter != nil:
		return operationKind{name: "moduleParameter", beside: true, offline: true, begin: beginParameter, stage: parameterStage}
	case action.LayoutScore != nil:
		return operationKind{name: "layoutScore", job: true, begin: beginLayoutScore, stage: jobStage}
	default:
		return operationKind{name: "metaslabMap", job: true, begin: beginMetaslabMap, stage: jobStage}
	}
}

// total is what is known of the size of the act before it begins.
func (k operationKind) total(state OperationState) *v1alpha1.OperationProgress {
	if k.name != "destroyDataset" {
		return nil
	}
	return &v1alpha1.OperationProgress{TotalBytes: state.Source.UsedBytes}
}

type stageKind int

// How far an operation is that has begun. Pending: its command did not run, as ZFS and the node show.
const (
	stagePending stageKind = iota
	stageRunning
	// stageBlocked: nothing can be seen or done now.
	stageBlocked
	stageStopped
	stageFailed
	stageDone
)

// operationStage is how far an operation is.
type operationStage struct {
	at stageKind
	// stoppable says that ZFS or the agent can end it early.
	stoppable       bool
	reason, message string
	progress        *v1alpha1.OperationProgress
	result          OperationResult
	// member and disks are for the action.
	member  string
	disks   []PoolDisk
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
	return operationStage{at: stageDone, message: fmt.Sprintf(format, values...), result: OperationResult{Metrics: metrics}}
}

func metric(name string, value int64) v1alpha1.OperationMetric {
	return v1alpha1.OperationMetric{Name: name, Value: value}
}

// metricDuration is how long an operation took: as ZFS tells it, or from its start until its end was noticed.
const metricDuration = "durationSeconds"

func (s OperationState) seconds() v1alpha1.OperationMetric {
	return metric(metricDuration, int64(s.elapsed()/time.Second))
}

// OperationDuration is how long an operation took that tells it.
func OperationDuration(operation *v1alpha1.PoolOperation) (took time.Duration, known bool) {
	for _, metric := range operation.Status.Metrics {
		if metric.Name == metricDuration && metric.Value >= 0 {
			return time.Duration(metric.Value) * time.Second, true
		}
	}
	return 0, false
}

// stage tells how far the operation is. Of a pool that is not there, nothing can be told.
func (s OperationState) stage() operationStage {
	kind, guid := s.kind(), s.handlePool()
	if s.Live != nil && s.Live.GUID != guid {
		return failedStage(v1alpha1.ReasonPoolLost, "it began on the pool with guid %s; BenchmarkPool %s has another now, with guid %s", guid, s.Operation.Spec.Pool, s.Live.GUID)
	}
	if s.Live == nil && !kind.offline && (s.Job == nil || !s.Job.Running) {
		return operationStage{at: stageBlocked, reason: v1alpha1.ReasonPoolNotReady, recheck: operationSoon,
			message: fmt.Sprintf("waiting for the pool of BenchmarkPool %s: it is not imported", s.Operation.Spec.Pool)}
	}
	return kind.stage(s)
}

// Permanent says whether an error stays until somebody changes something. What ZFS refuses it refuses again.
func Permanent(err error) bool {
	for _, refusal := range []error{zfs.Invalid, zfs.Unsupported, zfs.DeviceInUse, zfs.DeviceTooSmall, zfs.OtherHost, zfs.Exists,
		zfs.NotFound, zfs.NoSpace, zfs.HasDependents, zfs.NoReplicas, zfs.BadStream, ErrPermanent} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// ErrPermanent marks other errors that stay.
var ErrPermanent = errors.New("trying again does not help")

// jobStage is that of work done by the agent itself, which is begun again after what may pass.
func jobStage(state OperationState) operationStage {
	job := state.Job
	name := OperationName(state.Operation.Spec.Action)
	switch {
	case job == nil:
		return pending("begins: %s", name)
	case job.Running:
		stage := running("%s", job.Progress.Message)
		if job.Progress.Message == "" {
			stage.message = name + " is at work"
		}
		stage.stoppable, stage.progress = true, &job.Progress
		return stage
	case job.Err == nil:
		stage := done(slices.Concat(job.Metrics, []v1alpha1.OperationMetric{state.seconds()}), "%s", job.Message)
		stage.result.Data, stage.result.DataDigest, stage.progress = job.Data, job.DataDigest, &job.Progress
		return stage
	case job.Stopped:
		return stopped("it was stopped: %v", job.Err)
	case Permanent(job.Err):
		return failedStage(v1alpha1.ReasonActionFailed, "%v", job.Err)
	}
	if again := job.EndedAt.Add(operationSoon); state.Now.Before(again) {
		return operationStage{at: stageBlocked, reason: v1alpha1.ReasonActionFailed, recheck: again.Sub(state.Now),
			message: job.Err.Error() + " (will be tried again)"}
	}
	return pending("begins again after: %v", job.Err)
}
