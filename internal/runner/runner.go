// Package runner wraps a phase in a workload pod: it turns any end of the phase into a result document in the log and a receipt in
// the termination message, as the manager expects them (docs/reference/runner.md).
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/workload"
)

// Exit codes. With ExitValid, ExitInvalid and ExitInterrupted there is a document. With the others there is none, and the
// termination message is a sentence.
const (
	// ExitValid: the phase did what was requested.
	ExitValid = 0
	// ExitFailed: the phase could not be executed, or its result could not be handed over.
	ExitFailed = 1
	// ExitUsage: the arguments or the request are wrong.
	ExitUsage = 2
	// ExitInvalid: the phase did not do what was requested, and the document says why.
	ExitInvalid = 3
	// ExitInterrupted: a signal ended the phase, and the document says so.
	ExitInterrupted = 143
)

const (
	// ReasonResultRefused is the reason of a document that replaces an invalid one.
	ReasonResultRefused = "ResultRefused"
	// DefaultGrace is how long a phase may take to stop, well within the 30 seconds that Kubernetes gives a pod.
	DefaultGrace = 20 * time.Second
)

// errDeadline is the cause of a context that ends at the phase's own deadline.
var errDeadline = errors.New("the deadline of the phase has passed")

// Executor executes one phase; see engine.Executor. It also returns a document for a phase that did not do what was requested. An error
// means that there is no document.
type Executor interface {
	Execute(ctx context.Context, request workload.Request, progress func(results.Progress)) (results.PhaseDocument, error)
}

// Runner executes one phase and delivers its result.
type Runner struct {
	Executor Executor
	// Log receives the progress and the result. In a pod it is the standard output.
	Log io.Writer
	// TerminationLog is the path of the termination message. If the file does not exist, there is no kubelet, and nothing is written.
	TerminationLog string
	// Grace is how long the executor may take to stop. Zero is DefaultGrace.
	Grace time.Duration
}

// Run executes the phase and returns the exit code. The end of ctx requests a stop.
func (r *Runner) Run(ctx context.Context, request workload.Request) int {
	log := newLog(r.Log)
	phase := request.Phase
	log.say("storagebench runner: %s phase %s of run %s/%s on %s (%s)",
		workload.KindOf(&phase), phase.Name, request.Run.Namespace, request.Run.Name, request.Path, request.VolumeMode)
	began := time.Now()
	limited, cancel := withDeadline(ctx, request)
	defer cancel()
	document, err := r.execute(limited, request, log)
	interrupted := ctx.Err() != nil
	if limited.Err() != nil {
		document = stopped(limited, document, err)
	} else if err != nil {
		return r.Fail(ExitFailed, err)
	}
	document, receipt, err := emit(log, addressed(document, request, began))
	if err != nil {
		return r.Fail(ExitFailed, fmt.Errorf("the result of phase %s cannot be handed over: %w", phase.Name, err))
	}
	text, err := receipt.Encode()
	if err == nil {
		err = writeTermination(r.TerminationLog, text)
	}
	switch {
	case err != nil: // without a receipt the document will not be read
		log.say("storagebench runner: %v", err)
		return ExitFailed
	case interrupted:
		return ExitInterrupted
	case document.Outcome != results.OutcomeValid:
		log.say("storagebench runner: phase %s is Invalid: %s: %s", phase.Name, document.Reason, document.Message)
		return ExitInvalid
	}
	return ExitValid
}

// Fail reports why there will be no document, in the log and in the termination message, and returns the code.
func (r *Runner) Fail(code int, reason error) int {
	log := newLog(r.Log)
	log.say("storagebench runner: %v", reason)
	if err := writeTermination(r.TerminationLog, spelling.Shorten(reason.Error(), maxTermination)); err != nil {
		log.say("storagebench runner: %v", err)
	}
	return code
}

// withDeadline ends the phase at its deadline even without the manager. Waiting for other nodes does not count.
func withDeadline(ctx context.Context, request workload.Request) (context.Context, context.CancelFunc) {
	phase := request.Phase
	if phase.Deadline == nil || phase.Deadline.Duration.Duration <= 0 {
		return context.WithCancel(ctx)
	}
	limit := phase.Deadline.Duration.Duration
	return context.WithTimeoutCause(ctx, limit+request.StartWait(time.Now()), fmt.Errorf("%w (%s): increase its deadline or request less",
		errDeadline, limit))
}

// execute waits for the executor, but only for a limited time after the end of the context: a document about that is better than
// being killed without one.
func (r *Runner) execute(ctx context.Context, request workload.Request, log *log) (results.PhaseDocument, error) {
	type end struct {
		document results.PhaseDocument
		err      error
	}
	ended := make(chan end, 1) // buffered: the receiver may be gone
	go func() {
		var e end
		defer func() {
			if crash := recover(); crash != nil {
				log.say("%s", debug.Stack())
				e.err = fmt.Errorf("the runner crashed, which is a bug in storagebench: %v: please report it with the log of the pod", crash)
			}
			ended <- e
		}()
		e.document, e.err = r.Executor.Execute(ctx, request, log.progress)
	}()
	select {
	case e := <-ended:
		return e.document, e.err
	case <-ctx.Done():
	}
	grace := cmp.Or(r.Grace, DefaultGrace)
	select {
	case e := <-ended:
		return e.document, e.err
	case <-time.After(grace):
		return results.PhaseDocument{}, fmt.Errorf("the workload did not stop within %s", grace)
	}
}
