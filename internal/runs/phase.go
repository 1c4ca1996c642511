package runs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/results"
)

// runPhase handles one phase. over is true once its result is stored and usable.
func runPhase(state State, i int) (decision Decision, over bool) {
	phase, spec := state.Phases[i], state.Run.Spec.Phases[i]
	decision = Decision{Phase: string(spec.Name)}
	end := func(ending *Ending) (Decision, bool) { return decision.endsWith(ending), false }
	switch {
	case phase.Stored != nil && phase.Stored.Outcome == results.OutcomeValid:
		return Decision{}, true
	case phase.Stored != nil:
		return end(invalid(v1alpha1.ReasonPhaseInvalid, mayPass(&spec, phase.Stored.Reason), "phase %s: %s: %s", spec.Name, phase.Stored.Reason,
			phase.Stored.Message))
	}
	if ending := rebooted(state); ending != nil {
		return end(ending)
	}
	if state.Taken != "" || state.Refused != "" {
		return notCreated(state, i, decision), false
	}
	if phase.Received != nil {
		if ending := unsoundEnding(state); ending != nil {
			return end(ending)
		}
		if ending := endCompanions(state, i, decision); ending != nil {
			return *ending, false
		}
		decision.Actions = []Action{{Kind: StoreResult, Phase: i}}
		decision.Reason, decision.Message = underWay(state, i)
		return decision, false
	}
	if ending := volumeEnding(state); ending != nil {
		return end(ending)
	}
	if !phase.Executor.Exists {
		return startPhase(state, i, decision), false
	}
	if ending := brokenPhase(state, i); ending != nil {
		return end(ending)
	}
	return waitForPhase(state, i, decision), false
}

// unsoundEnding ends a run whose pools or parameters are wrong when the result of a phase arrives, because they may have been wrong during
// the phase. The claim is not checked: it cannot be deleted while the pod is running.
func unsoundEnding(state State) *Ending {
	if ending := poolsEnding(state); ending != nil {
		return ending
	}
	return parametersEnding(state)
}

// disksChangeBy reports whether the given phase or an earlier one gives a pool disks other than those in its spec.
func disksChangeBy(run *v1alpha1.BenchmarkRun, last v1alpha1.PhaseName) bool {
	for i := range run.Spec.Phases {
		if changesDisks(&run.Spec.Phases[i]) {
			return true
		}
		if run.Spec.Phases[i].Name == last {
			break
		}
	}
	return false
}

// changesDisks reports whether a phase itself gives its pool disks other than those in its spec.
func changesDisks(phase *v1alpha1.Phase) bool {
	return slices.ContainsFunc(operate.Of(phase), operate.ChangesDisks)
}

// startPhase creates the volume and then the Job, if nothing prevents it.
func startPhase(state State, i int, decision Decision) Decision {
	spec := state.Run.Spec.Phases[i]
	for _, recorded := range state.Run.Status.Phases {
		if recorded.Name == spec.Name && recorded.ExecutorUID != "" {
			return decision.endsWith(invalid(v1alpha1.ReasonExecutorLost, true,
				"%s was deleted before its result was read; executing phase %s again would measure something else",
				executor(state.Run, spec), spec.Name))
		}
	}
	switch {
	case state.LeaseHolder == "":
		decision.Reason, decision.Message = v1alpha1.ReasonQueued, fmt.Sprintf("waiting for the benchmark to take node %s",
			state.Run.Spec.NodeName)
		return decision
	case state.LeaseHolder != state.Owner:
		decision.Reason, decision.Message = v1alpha1.ReasonQueued, fmt.Sprintf("node %s is held by %s", state.Run.Spec.NodeName,
			state.LeaseHolderName)
		return decision
	}
	// A group that continued without this run does not come back, whatever else this run waits for.
	if ending := leftBehind(state, i); ending != nil {
		return decision.endsWith(ending)
	}
	if preparing := preparePools(state, i, decision); preparing != nil {
		return *preparing
	}
	if waiting := awaitMade(state, i, decision); waiting != nil {
		return *waiting
	}
	if setting := setParameters(state, i, decision); setting != nil {
		return *setting
	}
	if preparing := bindFirst(state, i, decision); preparing != nil {
		return *preparing
	}
	if emptying := emptyFirst(state, i, decision); emptying != nil {
		return *emptying
	}
	switch {
	case state.Claims.Foreign:
		state.Taken = "PersistentVolumeClaim " + naming.ClaimName(state.Run, naming.VolumeData)
		return notCreated(state, i, decision)
	case state.Claims.Exists && state.Claims.Deleting:
		return until(state, decision, state.startOverdue(i), v1alpha1.ReasonPreparingVolume,
			"waiting for the deletion of an earlier volume of the same name")
	case !state.Claims.Exists || len(state.Unclaimed) > 0:
		decision.Actions = []Action{{Kind: CreateVolumes}}
	}
	decision.Actions = append(decision.Actions, Action{Kind: StartPhase, Phase: i})
	decision.Reason, decision.Message = underWay(state, i)
	return observeFirst(state, i, barrier(state, i, decision))
}

// notCreated waits until a name that the run needs is free again, or until a quota or policy lets the run create an object. It waits at
// most as long as the phase may take to start, or as reading its result may take, because neither must hold the node forever. No watch
// reports the change.
func notCreated(state State, i int, decision Decision) Decision {
	due := state.startOverdue(i)
	if phase := state.Phases[i]; phase.Received != nil && phase.Pod.Ended != nil {
		due = phase.Pod.Ended.Add(state.Timings.UnreadableGrace)
	}
	reason, words := v1alpha1.ReasonNameTaken, state.Taken+" belongs to another owner: waiting for its deletion"
	if state.Refused != "" {
		reason, words = v1alpha1.ReasonActionFailed, state.Refused
	}
	decision = until(state, decision, due, reason, words)
	if decision.Ending == nil {
		decision.WakeAt = earlier(due, state.Now.Add(ForeignRecheck))
	}
	return decision
}

// startOverdue returns the time by which everything that a phase needs to start must be ready.
func (s State) startOverdue(i int) time.Time {
	return s.waitingSince(i).Add(s.Run.Spec.Phases[i].StartDeadline.Duration.Duration)
}

// beginOverdue returns the time by which an operation that a phase needs must have begun. A newly created operation gets the full time,
// because the manager may not have been running before.
func (s State) beginOverdue(i int, operation *v1alpha1.PoolOperation) time.Time {
	created := s.Now
	if operation != nil {
		created = operation.CreationTimestamp.Time
	}
	if due := created.Add(s.Run.Spec.Phases[i].StartDeadline.Duration.Duration); due.After(s.startOverdue(i)) {
		return due
	}
	return s.startOverdue(i)
}

// until waits until due, and then gives up the run. The next attempt uses other names.
func until(state State, decision Decision, due time.Time, reason, words string) Decision {
	decision.Reason, decision.Message, decision.WakeAt = reason, words, due
	if !state.Now.Before(due) {
		decision.Ending, decision.WakeAt = invalid(reason, true, "given up at %s: %s", due.UTC().Format(time.RFC3339), words), time.Time{}
		decision.Message = decision.Ending.Message
	}
	return decision
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// executor names the object that executes a phase.
func executor(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase) string {
	if phase.Operate != nil {
		return "PoolOperation " + naming.RunOperationName(run, phase)
	}
	return "Job " + naming.PhaseObjectName(run.Name, phase.Name)
}

// underWay is the reason and message of a phase from its start until its result is stored. They do not change, so that a phase without
// trouble needs only one write of the status.
func underWay(state State, i int) (reason, message string) {
	return v1alpha1.ReasonPhaseRunning, fmt.Sprintf("phase %s (%d of %d) is under way", state.Run.Spec.Phases[i].Name, i+1, len(state.Phases))
}

// brokenPhase finds the reason why a started phase will not have a usable result.
func brokenPhase(state State, i int) *Ending {
	phase, spec := state.Phases[i], state.Run.Spec.Phases[i]
	if state.LeaseHolder != "" && state.LeaseHolder != state.Owner {
		return invalid(v1alpha1.ReasonLeaseLost, true, "node %s was taken by %s during phase %s: other load invalidates the measurements",
			state.Run.Spec.NodeName, state.LeaseHolderName, spec.Name)
	}
	if ending := disrupted(phase, spec.Name); ending != nil {
		return ending
	}
	if phase.Pod.Ended != nil {
		return failedPod(state, i)
	}
	if ending := brokenBeside(state, i); ending != nil {
		return ending
	}
	switch {
	case phase.Executor.Deleting:
		return invalid(v1alpha1.ReasonExecutorLost, true, "%s was deleted before phase %s had ended", executor(state.Run, spec), spec.Name)
	case phase.Pod.Deleting && phase.Pod.Started != nil:
		return invalid(v1alpha1.ReasonPodLost, true, "the pod of phase %s was deleted before it had ended", spec.Name)
	case phase.Executor.Failed || phase.Executor.Succeeded:
		return invalid(v1alpha1.ReasonPodLost, true, "the pod of phase %s is gone without a result: %s", spec.Name,
			orNone(phase.Executor.Message))
	}
	return overduePhase(state, i)
}

// disrupted evaluates a pod that the cluster removed before there was a result.
func disrupted(phase PhaseState, name v1alpha1.PhaseName) *Ending {
	switch phase.Pod.Problem {
	case v1alpha1.ReasonPodEvicted:
		return invalid(v1alpha1.ReasonPodEvicted, true, "the pod of phase %s was evicted: %s", name, phase.Pod.Message)
	case v1alpha1.ReasonPodLost:
		return invalid(v1alpha1.ReasonPodLost, true, "the pod of phase %s is lost: %s", name, phase.Pod.Message)
	}
	return nil
}

// failedPod evaluates a pod that ended without a verified document.
func failedPod(state State, i int) *Ending {
	phase, spec := state.Phases[i], state.Run.Spec.Phases[i]
	since := state.Now.Sub(*phase.Pod.Ended)
	switch {
	case phase.Pod.Hopeless:
		return invalid(v1alpha1.ReasonPodFailed, false, "phase %s: it could not be executed: %s", spec.Name, phase.Pod.Message)
	case !phase.Pod.HasReceipt && phase.Pod.Deleting && killed(phase.Pod.ExitCode):
		return invalid(v1alpha1.ReasonPodLost, true, "the pod of phase %s was deleted before it had ended: exit code %d", spec.Name,
			phase.Pod.ExitCode)
	case !phase.Pod.HasReceipt && phase.Pod.ExitCode == 0:
		return invalid(v1alpha1.ReasonResultMissing, true,
			"the pod of phase %s ended without a receipt for its result: is %s a storagebench runner?",
			spec.Name, state.Run.Spec.RunnerImage)
	case !phase.Pod.HasReceipt:
		return invalid(v1alpha1.ReasonPodFailed, true, "the pod of phase %s failed with exit code %d: %s", spec.Name, phase.Pod.ExitCode,
			orNone(phase.Pod.Message))
	case phase.ReceiveError == nil:
		return nil
	case errors.Is(phase.ReceiveError, ErrForeign):
		return invalid(v1alpha1.ReasonResultForeign, true, "phase %s: %v", spec.Name, phase.ReceiveError)
	case isCorrupt(phase.ReceiveError) && since >= state.Timings.CollectGrace:
		return invalid(v1alpha1.ReasonResultCorrupt, true, "the result of phase %s failed verification: %v", spec.Name, phase.ReceiveError)
	case since >= state.Timings.UnreadableGrace:
		return invalid(v1alpha1.ReasonResultUnreadable, true, "the log of phase %s could not be read for %s: %v", spec.Name,
			state.Timings.UnreadableGrace, phase.ReceiveError)
	}
	return nil
}

// killed reports whether an exit code is that of a container that the kubelet stopped, by SIGTERM or SIGKILL.
func killed(exitCode int32) bool { return exitCode == 128+15 || exitCode == 128+9 }

// ErrForeign marks a document that belongs to another run or phase.
var ErrForeign = errors.New("the result belongs to another run or phase")

// Receive accepts a document that was read for a phase, if it belongs to this run and phase.
func (s *PhaseState) Receive(run *v1alpha1.BenchmarkRun, phase v1alpha1.PhaseName, document results.PhaseDocument, text []byte,
	digest string) {
	if document.Run.UID != string(run.UID) || document.Phase != string(phase) {
		s.ReceiveError = fmt.Errorf("%w: it says run %s (%s), phase %s", ErrForeign, document.Run.Name, document.Run.UID, document.Phase)
		return
	}
	s.Received, s.ReceivedBytes, s.ReceivedDigest = &document, text, digest
}

func isCorrupt(err error) bool {
	return slices.ContainsFunc([]error{results.ErrMissing, results.ErrTruncated, results.ErrCorrupt, results.ErrTooLarge, results.ErrVersion},
		func(target error) bool { return errors.Is(err, target) })
}

// overduePhase enforces the deadlines.
func overduePhase(state State, i int) *Ending {
	phase, spec := state.Phases[i], state.Run.Spec.Phases[i]
	if phase.Pod.Started == nil {
		if state.Now.Before(phase.Executor.Created.Add(spec.StartDeadline.Duration.Duration)) {
			return nil
		}
		reason, why := notStarted(state, phase)
		// What prevents one pod from starting also prevents the next: no second attempt.
		what := "pod"
		if phase.Operation {
			what = "operation"
		}
		return invalid(reason, false, "the %s of phase %s did not start within %s: %s", what, spec.Name, spec.StartDeadline.Duration.Duration,
			why)
	}
	if state.Now.Before(phaseDue(phase, spec)) {
		return nil
	}
	return invalid(v1alpha1.ReasonPhaseDeadlineExceeded, true, "phase %s did not finish within %s: increase its deadline", spec.Name,
		spec.Deadline.Duration.Duration)
}

// notStarted finds the most specific reason why a pod does not start.
func notStarted(state State, phase PhaseState) (reason, message string) {
	switch {
	case phase.Operation:
		return v1alpha1.ReasonPodNotStarted, orNone(phase.Executor.Message)
	case phase.Pod.Problem == v1alpha1.ReasonImagePullFailed || phase.Pod.Problem == v1alpha1.ReasonPodRejected:
		return phase.Pod.Problem, phase.Pod.Message
	case !state.Claims.Bound && state.Claims.Problem != "":
		return v1alpha1.ReasonVolumeNotBound, state.Claims.Problem
	case phase.Pod.Problem != "":
		return phase.Pod.Problem, phase.Pod.Message
	case !phase.Pod.Exists && phase.Executor.Message != "":
		return v1alpha1.ReasonPodRejected, phase.Executor.Message
	case phase.FileProblem != "":
		return v1alpha1.ReasonPodRejected, phase.FileProblem
	case !phase.Pod.Exists:
		return v1alpha1.ReasonPodNotStarted, "no pod has been created for its Job yet"
	case !state.Claims.Bound:
		return v1alpha1.ReasonPodNotStarted, fmt.Sprintf("PersistentVolumeClaim %s is not bound yet",
			naming.ClaimName(state.Run, naming.VolumeData))
	}
	return v1alpha1.ReasonPodNotStarted, "the pod is starting"
}

// waitForPhase decides what a started phase waits for and when to check again.
func waitForPhase(state State, i int, decision Decision) Decision {
	phase, spec := state.Phases[i], state.Run.Spec.Phases[i]
	switch {
	case phase.Pod.Ended != nil:
		decision.Reason, decision.Message = v1alpha1.ReasonResultUnreadable, fmt.Sprintf("phase %s has ended, its result is being read: %v",
			spec.Name, phase.ReceiveError)
		decision.WakeAt = state.Now.Add(state.Timings.CollectGrace / 8)
	case phase.Pod.Started != nil:
		decision.Actions = append(operateBeside(state, i), tellEnd(state, i)...)
		decision.Reason, decision.Message = underWay(state, i)
		decision.WakeAt = phaseDue(phase, spec)
		if spec.Measure != nil && spec.Measure.Operate != nil && phase.Companions[Beside] == nil && len(decision.Actions) == 0 {
			decision.wake(besideDue(phase, spec))
		}
	default:
		decision.Reason, decision.Message = underWay(state, i)
		if reason, why := notStarted(state, phase); reason != v1alpha1.ReasonPodNotStarted {
			decision.Reason, decision.Message = reason, fmt.Sprintf("phase %s (%d of %d) cannot start: %s", spec.Name, i+1, len(state.Phases), why)
		}
		decision.WakeAt = phase.Executor.Created.Add(spec.StartDeadline.Duration.Duration)
	}
	if phase.Operation && phase.Executor.Message != "" {
		decision.Message += ": " + phase.Executor.Message
	}
	return decision
}

func orNone(message string) string {
	return cmp.Or(message, "there is no message")
}
