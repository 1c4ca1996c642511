package operation

import (
	"strings"
	"unicode"

	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/operations"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/spelling"
)

// Limits of the API.
const (
	maxMetrics         = 64
	maxHandle          = 256
	maxProgressMessage = 256
)

// summarise computes the status from the observation and the decision only, so that an unchanged world results in an unchanged status.
func summarise(state operations.State, decision operations.Decision) v1alpha1.PoolOperationStatus {
	operation := state.Operation
	decision.Message = printable(decision.Message)
	status := *operation.Status.DeepCopy()
	status.ObservedGeneration = operation.Generation
	status.PoolUID, status.ToPoolUID = state.Seen()
	// Times have whole seconds.
	now := metav1.Time{Time: state.Now.UTC().Truncate(1e9)}
	if decision.Begin {
		status.StartedAt, status.Handle = &now, spelling.Shorten(decision.Handle, maxHandle)
	}
	if len(decision.Attempts) > 0 {
		status.Attempts = decision.Attempts
	}
	if decision.Progress != nil {
		progress := *decision.Progress
		progress.Message = spelling.Shorten(progress.Message, maxProgressMessage)
		status.Progress = &progress
	}
	generation := operation.Generation
	switch decision.Outcome {
	case "":
		kstatus.SetProgressing(&status.Conditions, generation, decision.Reason, decision.Message)
		return status
	case v1alpha1.OutcomeFailed:
		kstatus.SetStalled(&status.Conditions, generation, decision.Reason, decision.Message)
	default:
		kstatus.SetReady(&status.Conditions, generation, decision.Reason, decision.Message)
	}
	kstatus.Set(&status.Conditions, generation, v1alpha1.ConditionComplete, metav1.ConditionTrue, decision.Reason, decision.Message)
	status.Outcome, status.FinishedAt = decision.Outcome, &now
	if at := decision.Result.WorkedUntil; !at.IsZero() {
		status.FinishedAt = &metav1.Time{Time: at.UTC().Truncate(1e9)}
	}
	metrics := decision.Result.Metrics
	status.Metrics = metrics[:min(len(metrics), maxMetrics)]
	status.Data, status.DataDigest = decision.Result.Data, decision.Result.DataDigest
	return status
}

// outlived reports whether the spec of a finished operation was changed. The change has no effect, but tools wait until its generation is
// observed.
func outlived(operation *v1alpha1.PoolOperation) bool {
	status := operation.Status
	return status.Outcome != "" && status.ObservedGeneration != operation.Generation && operation.DeletionTimestamp.IsZero()
}

// seen returns the status of a finished operation, unchanged except for the new generation of its spec.
func seen(operation *v1alpha1.PoolOperation) v1alpha1.PoolOperationStatus {
	status := *operation.Status.DeepCopy()
	status.ObservedGeneration = operation.Generation
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = operation.Generation
	}
	return status
}

// summariseFailure returns a status with the error and the last known state, because the state could not be observed.
func summariseFailure(state operations.State, err error) v1alpha1.PoolOperationStatus {
	operation := state.Operation
	status := *operation.Status.DeepCopy()
	if status.Outcome != "" {
		return status
	}
	status.ObservedGeneration = operation.Generation
	status.PoolUID, status.ToPoolUID = state.Seen()
	message := printable(err.Error()) + " (will be retried)"
	if !operation.DeletionTimestamp.IsZero() {
		message += "; or " + objects.OperationReleaseCommand(operation)
	}
	kstatus.SetProgressing(&status.Conditions, operation.Generation, v1alpha1.ReasonActionFailed, message)
	return status
}

// printable converts a message to one line without control characters. Messages may contain names of files, which tenants choose.
func printable(text string) string {
	return strings.Map(func(letter rune) rune {
		if letter == unicode.ReplacementChar || !unicode.IsPrint(letter) {
			return '?'
		}
		return letter
	}, strings.ReplaceAll(text, "\n", "; "))
}
