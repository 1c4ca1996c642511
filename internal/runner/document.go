package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/internal/workload/engine"
)

const (
	// maxMessage and maxTermination are below the limits of a document and a termination message.
	maxMessage     = 3000
	maxTermination = 3000
)

// stopped is the document of a phase whose context has ended: never Valid, because it is unknown how much of the measurement was
// affected. The executor's own account of the end is kept.
func stopped(ctx context.Context, document results.PhaseDocument, err error) results.PhaseDocument {
	cause := context.Cause(ctx)
	if err == nil && document.Outcome == results.OutcomeInvalid && document.Reason != "" {
		if errors.Is(cause, errDeadline) && document.Reason == engine.ReasonInterrupted {
			document.Reason = v1alpha1.ReasonPhaseDeadlineExceeded
		}
		return document
	}
	document.Outcome, document.Reason = results.OutcomeInvalid, engine.ReasonInterrupted
	document.Message = fmt.Sprintf("the phase was stopped before its end: %v", cause)
	if errors.Is(cause, errDeadline) {
		document.Reason, document.Message = v1alpha1.ReasonPhaseDeadlineExceeded, cause.Error()
	}
	if err != nil {
		document.Message = spelling.Shorten(document.Message+" ("+err.Error()+")", maxMessage)
	}
	return document
}

// addressed sets the identity of the request in the document, and times if it has none. The end uses the monotonic clock, so that a
// clock step cannot put it before the start.
func addressed(document results.PhaseDocument, request workload.Request, began time.Time) results.PhaseDocument {
	document.Version = results.PhaseVersion
	document.Run, document.Phase, document.Kind = request.Run, string(request.Phase.Name), workload.KindOf(&request.Phase)
	if document.StartedAt.IsZero() || document.FinishedAt.IsZero() {
		document.StartedAt, document.FinishedAt = began, began.Add(time.Since(began))
	}
	return document
}

// emit writes the document and returns what it has written. An invalid document is replaced by one that reports that: hours of work
// must not end silently.
func emit(log *log, document results.PhaseDocument) (results.PhaseDocument, results.Receipt, error) {
	problem := document.Validate()
	if problem == nil {
		receipt, err := log.result(document)
		if !errors.Is(err, results.ErrTooLarge) {
			return document, receipt, err
		}
		problem = err
	}
	end := document.FinishedAt
	if end.Before(document.StartedAt) {
		end = document.StartedAt
	}
	instead := results.PhaseDocument{
		Version: document.Version, Run: document.Run, Phase: document.Phase, Kind: document.Kind,
		StartedAt: document.StartedAt, FinishedAt: end,
		Outcome: results.OutcomeInvalid, Reason: ReasonResultRefused,
		Message: spelling.Shorten(fmt.Sprintf("the result violates its format: %v", problem), maxMessage),
	}
	receipt, err := log.result(instead)
	return instead, receipt, err
}
