package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/runs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// poolOperation is an operation on the pool of a phase. Where the action names another pool, it names a volume of the target: any
// value becomes the name of a pool of this run, and never of another user's pool. Datasets are the names of those that a driver
// created, by volume.
func poolOperation(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, name string, action v1alpha1.PoolAction,
	datasets map[string]string) *v1alpha1.PoolOperation {
	action = *action.DeepCopy()
	if action.Replicate != nil {
		action.Replicate.ToPool = naming.RunPoolName(run, action.Replicate.ToPool)
	}
	labels := clusterLabelsFor(run)
	labels[v1alpha1.LabelPhase] = string(phase.Name)
	operation := &v1alpha1.PoolOperation{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: v1alpha1.PoolOperationSpec{
			NodeName: run.Spec.NodeName, Pool: naming.RunPoolName(run, phaseVolume(run, phase).Name), Action: action, Deadline: phase.Deadline,
		},
	}
	renameVolume(&operation.Spec, datasets)
	return operation
}

// observeOperation treats the PoolOperation of a phase like its Job and pod: it is created once, starts, and ends with a result.
func (r *Reconciler) observeOperation(ctx context.Context, state *runs.State, i int, recorded bool) error {
	phase := state.Run.Spec.Phases[i]
	readers := []client.Reader{r.Client}
	if recorded {
		readers = append(readers, r.Live)
	}
	for _, reader := range readers {
		operation, err := readOperation(ctx, reader, state.Run, naming.RunOperationName(state.Run, phase))
		if err != nil {
			return err
		}
		if operation != nil {
			return playOperation(&state.Phases[i], state.Run, phase, operation)
		}
	}
	return nil
}

// readOperation reads an operation of a run. Nil if there is none of that name.
func readOperation(ctx context.Context, reader client.Reader, run *v1alpha1.BenchmarkRun, name string) (*v1alpha1.PoolOperation, error) {
	var operation v1alpha1.PoolOperation
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, &operation); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read PoolOperation %s: %w", name, err)
	}
	if !ofRun(&operation, run) { // nor was it found
		return nil, nil
	}
	return &operation, nil
}

// playOperation reads what the planner needs from an operation.
func playOperation(state *runs.PhaseState, run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, operation *v1alpha1.PoolOperation) error {
	state.Operation = true
	ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
	message := ""
	if ready != nil {
		message = ready.Reason + ": " + ready.Message
	}
	state.Job = runs.JobState{Exists: true, Deleting: !operation.DeletionTimestamp.IsZero(), UID: string(operation.UID),
		Created: operation.CreationTimestamp.Time, Message: message, StartAt: agreedStart(operation), BootID: notedBoot(operation)}
	if operation.Status.StartedAt != nil {
		state.Pod.Exists, state.Pod.Name, state.Pod.Started = true, operation.Name, &operation.Status.StartedAt.Time
	}
	if operation.Status.Outcome == "" {
		return nil
	}
	document := operationDocument(run, phase, operation)
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	state.Job.Succeeded = operation.Status.Outcome == v1alpha1.OutcomeSucceeded
	state.Job.Failed = !state.Job.Succeeded
	state.Pod.Ended = &document.FinishedAt
	state.Received, state.ReceivedBytes, state.ReceivedDigest = &document, text, results.Digest(text)
	return nil
}

// operationDocument is the result of an operate phase, in the format of the runner.
func operationDocument(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, operation *v1alpha1.PoolOperation) results.PhaseDocument {
	status := operation.Status
	document := results.PhaseDocument{
		Version: results.PhaseVersion, Run: results.RunIdentity{Namespace: run.Namespace, Name: run.Name, UID: string(run.UID)},
		Phase: string(phase.Name), Kind: results.KindOperate, Outcome: results.OutcomeValid,
		StartedAt: operation.CreationTimestamp.UTC(), FinishedAt: operation.CreationTimestamp.UTC(),
		Metrics:     operationMetrics(status.Metrics),
		Environment: map[string]string{"operation": operate.Name(operation.Spec.Action), "operation.pool": operation.Spec.Pool},
	}
	if status.StartedAt != nil {
		document.StartedAt, document.FinishedAt = status.StartedAt.UTC(), status.StartedAt.UTC()
	}
	if status.FinishedAt != nil && status.FinishedAt.After(document.StartedAt) {
		document.FinishedAt = status.FinishedAt.UTC()
	}
	if took := tookOf(operation, document.FinishedAt.Sub(document.StartedAt)); took > 0 {
		document.Metrics["durationNanoseconds"] = int64(took)
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil {
		document.Reason, document.Message = ready.Reason, ready.Message
	}
	if status.Outcome != v1alpha1.OutcomeSucceeded {
		document.Outcome = results.OutcomeInvalid
		if document.Reason == "" {
			document.Reason = v1alpha1.ReasonActionFailed
		}
	}
	return document
}

// tookOf is how long an operation took. Empty if unknown. Its times have whole seconds, and its end is when its agent noticed it.
func tookOf(operation *v1alpha1.PoolOperation, between time.Duration) time.Duration {
	const agentLooks = 10 * time.Second
	if took, known := operate.Duration(operation); known {
		return took
	}
	if between < agentLooks {
		return 0
	}
	return between
}

// operationMetrics are the metrics that gates and reports use, in their units.
func operationMetrics(measured []v1alpha1.OperationMetric) map[string]int64 {
	const partsPerMillionPerPercent = 10_000
	metrics := map[string]int64{}
	for _, metric := range measured {
		if metric.Name == "layoutScorePercent" {
			metrics["layoutScorePartsPerMillion"] = metric.Value * partsPerMillionPerPercent
		}
		if _, known := results.LookupMetric(metric.Name); known && metric.Value >= 0 {
			metrics[metric.Name] = metric.Value
		}
	}
	return metrics
}

// startOperation creates the PoolOperation of a phase.
func (r *Reconciler) startOperation(ctx context.Context, state *runs.State, i int, at time.Time) error {
	phase := state.Run.Spec.Phases[i]
	operation := poolOperation(state.Run, phase, naming.RunOperationName(state.Run, phase), phase.Operate.PoolAction, state.Pools.Datasets)
	agreeOnStart(operation, at)
	noteBoot(operation, state.BootID)
	if err := r.create(ctx, state.Run, operation); err != nil {
		return err
	}
	if operation.UID != "" {
		return playOperation(&state.Phases[i], state.Run, phase, operation)
	}
	return nil
}

// deleteOperations deletes the operations of a run. Their agent ends running ones.
func (r *Reconciler) deleteOperations(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	if run.Spec.Target.ZFS == nil {
		return nil
	}
	known, err := r.operations(ctx, run)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if err := r.deleteClusterWide(ctx, run, name, &v1alpha1.PoolOperation{}); err != nil {
			return err
		}
	}
	return nil
}

// recordedPhase says whether the status contains the Job or operation of a phase.
func recordedPhase(run *v1alpha1.BenchmarkRun, name v1alpha1.PhaseName) bool {
	return slices.ContainsFunc(run.Status.Phases, func(p v1alpha1.RunPhaseStatus) bool { return p.Name == name && p.JobUID != "" })
}
