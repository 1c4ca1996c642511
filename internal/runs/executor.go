package runs

import (
	"encoding/json"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/packing"
)

// annotationBoot is set on the executor of a phase: the boot ID of the node at its creation.
const annotationBoot = "storagebench.dev/boot"

// Mark adds annotations to the executor of a phase that a later reconciliation needs: the agreed start time of a group, and the boot ID of
// the node.
func Mark(executor metav1.Object, startAt time.Time, boot string) {
	annotations := executor.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if !startAt.IsZero() {
		annotations[v1alpha1.AnnotationStartAt] = startAt.UTC().Format(time.RFC3339Nano)
	}
	if boot != "" {
		annotations[annotationBoot] = boot
	}
	executor.SetAnnotations(annotations)
}

// executorOf reads the fields that Jobs and PoolOperations have in common.
func executorOf(object metav1.Object, message string) ExecutorState {
	state := ExecutorState{
		Exists: true, Deleting: !object.GetDeletionTimestamp().IsZero(), UID: string(object.GetUID()),
		Created: object.GetCreationTimestamp().Time, Message: message, BootID: object.GetAnnotations()[annotationBoot],
	}
	if at, err := time.Parse(time.RFC3339Nano, object.GetAnnotations()[v1alpha1.AnnotationStartAt]); err == nil {
		state.StartAt = &at
	}
	return state
}

// JobExecutor reads the Job of a phase. The message says why it has no pod.
func JobExecutor(job *batchv1.Job, message string) ExecutorState {
	state := executorOf(job, message)
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			state.Succeeded = true
		case batchv1.JobFailed:
			state.Failed, state.Message = true, condition.Reason+": "+condition.Message
		default: // on its way to one of the two
		}
	}
	return state
}

// ExecuteByOperation treats the PoolOperation of a phase like a Job and its pod: it is created once, starts, and ends with a result.
func (s *PhaseState) ExecuteByOperation(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, operation *v1alpha1.PoolOperation) error {
	s.Operation = true
	ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
	message := ""
	if ready != nil {
		message = ready.Reason + ": " + ready.Message
	}
	s.Executor = executorOf(operation, message)
	if operation.Status.StartedAt != nil {
		s.Pod.Exists, s.Pod.Name, s.Pod.Started = true, operation.Name, &operation.Status.StartedAt.Time
	}
	if operation.Status.Outcome == "" {
		return nil
	}
	document := operationDocument(run, phase, operation)
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	s.Executor.Succeeded = operation.Status.Outcome == v1alpha1.OutcomeSucceeded
	s.Executor.Failed = !s.Executor.Succeeded
	s.Pod.Ended = &document.FinishedAt
	s.Received, s.ReceivedBytes, s.ReceivedDigest = &document, text, packing.Digest(text)
	return nil
}

// Recorded reports whether the status contains the executor of a phase. If it does but the executor seems to be missing, the API server
// must confirm that.
func Recorded(run *v1alpha1.BenchmarkRun, name v1alpha1.PhaseName) bool {
	return slices.ContainsFunc(run.Status.Phases, func(p v1alpha1.RunPhaseStatus) bool { return p.Name == name && p.ExecutorUID != "" })
}
