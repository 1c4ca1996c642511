package runs

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
)

// Companion is a PoolOperation beside a phase: the observation of its pool, or what a measure phase operates meanwhile.
type Companion string

// The companions of a phase.
const (
	// Observation is the window in which the agent counts what the disks of the phase's pool do.
	Observation Companion = "observe"
	// Beside is measure.operate.
	Beside Companion = "operate"
)

// Companions of a phase, in the order in which they begin.
func Companions(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase) []Companion {
	if run.Spec.Target.ZFS == nil || phase.Operate != nil {
		return nil
	}
	if phase.Measure != nil && phase.Measure.Operate != nil {
		return []Companion{Observation, Beside}
	}
	return []Companion{Observation}
}

// CompanionName is the name of its PoolOperation. No phase has a dot in its name.
func CompanionName(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, companion Companion) string {
	return naming.RunOperationName(run, phase) + "." + string(companion)
}

// Lasts says whether an action goes on for a while: a workload is measured beside it only as long as it does.
func Lasts(action v1alpha1.PoolAction) bool {
	return action.Scrub != nil || action.Trim != nil || action.Replicate != nil || action.Copy != nil || action.RemoveVdev != nil ||
		action.ReplaceDevice != nil || action.ModuleParameter != nil || action.DestroyDataset != nil || action.LayoutScore != nil ||
		action.MetaslabMap != nil
}

// minBesidePercent is how much of the measured time a lasting operation must have been at work: it begins with the pod, which takes
// a moment to begin its measurement.
const minBesidePercent = 90

// BesideShare is the part of the measured time in which an operation was at work, in parts per million, and why that is not what was
// asked for; empty if it is. An operation that does not last has no part.
func BesideShare(operation *v1alpha1.PoolOperation, from, to time.Time) (partsPerMillion int64, problem string) {
	name := operate.Name(operation.Spec.Action)
	if operation.Status.Outcome == v1alpha1.OutcomeFailed {
		return 0, fmt.Sprintf("the %s beside the workload failed: %s", name, operationWords(operation))
	}
	if !Lasts(operation.Spec.Action) {
		if operation.Status.Outcome != v1alpha1.OutcomeSucceeded {
			return 0, fmt.Sprintf("the %s beside the workload was not over when the workload was: %s", name, operationWords(operation))
		}
		return 0, ""
	}
	if operation.Status.StartedAt == nil {
		return 0, fmt.Sprintf("the %s beside the workload never began: %s", name, operationWords(operation))
	}
	began, ended := operation.Status.StartedAt.Time, to
	if operation.Status.FinishedAt != nil {
		ended = endOf(operation)
	}
	if began.Before(from) {
		began = from
	}
	if ended.After(to) {
		ended = to
	}
	if whole := to.Sub(from); whole > 0 && ended.After(began) {
		partsPerMillion = int64(float64(ended.Sub(began)) / float64(whole) * 1e6)
	}
	if partsPerMillion < minBesidePercent*10_000 {
		problem = fmt.Sprintf("the %s was at work for %d%% of the measured time: measure for a shorter time, or give it more to do", name,
			partsPerMillion/10_000)
	}
	return partsPerMillion, problem
}

// endOf is when an operation has ended. Its agent notices that up to ten seconds late; how long it took it may know better, in whole
// seconds.
func endOf(operation *v1alpha1.PoolOperation) time.Time {
	noticed := operation.Status.FinishedAt.Time
	if took, known := operate.Duration(operation); known {
		if ended := operation.Status.StartedAt.Add(took + time.Second); ended.Before(noticed) {
			return ended
		}
	}
	return noticed
}

// HasBegun says that a lasting operation is at work, or has come to its end without: what it does from its start to its end shows
// progress once it does it.
func HasBegun(operation *v1alpha1.PoolOperation) bool {
	return operation.Status.Progress != nil || HasEnded(operation)
}

// HasEnded says whether an operation beside a phase has ended.
func HasEnded(operation *v1alpha1.PoolOperation) bool { return operation.Status.Outcome != "" }

func operationWords(operation *v1alpha1.PoolOperation) string {
	ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return "its agent has not looked at it: is there one on node " + operation.Spec.NodeName + "?"
	}
	return ready.Reason + ": " + ready.Message
}

// observeFirst has a phase that is about to start wait until the observation of its pool counts.
func observeFirst(state State, i int, decision Decision) Decision {
	spec := state.Run.Spec.Phases[i]
	observation := state.Phases[i].Companions[Observation]
	start := slices.IndexFunc(decision.Actions, func(action Action) bool { return action.Kind == StartPhase })
	if start < 0 || len(Companions(state.Run, spec)) == 0 || observation != nil && HasBegun(observation) {
		return decision
	}
	decision.Actions = slices.Delete(slices.Clone(decision.Actions), start, start+1)
	overdue := state.waitingSince(i).Add(spec.StartDeadline.Duration.Duration)
	switch {
	case observation == nil:
		decision.Actions = append(decision.Actions, Action{Kind: StartCompanion, Phase: i, Companion: Observation})
	case !state.Now.Before(overdue):
		ending := invalid(v1alpha1.ReasonPodNotStarted, false, "the observation of the pool for phase %s did not begin within %s: %s",
			spec.Name, spec.StartDeadline.Duration.Duration, operationWords(observation))
		return Decision{Phase: decision.Phase, Ending: ending, Reason: ending.Reason, Message: ending.Message}
	}
	decision.WakeAt = overdue
	return decision
}

// operateBeside begins measure.operate once the pod of the phase is at work.
func operateBeside(state State, i int) []Action {
	spec, phase := state.Run.Spec.Phases[i], state.Phases[i]
	if spec.Measure == nil || spec.Measure.Operate == nil || phase.Pod.Started == nil || phase.Pod.Ended != nil ||
		phase.Companions[Beside] != nil {
		return nil
	}
	return []Action{{Kind: StartCompanion, Phase: i, Companion: Beside}}
}

// brokenBeside ends a run at once if what it measures under has failed.
func brokenBeside(state State, i int) *Ending {
	if operation := state.Phases[i].Companions[Beside]; operation != nil && operation.Status.Outcome == v1alpha1.OutcomeFailed {
		return invalid(v1alpha1.ReasonPhaseInvalid, true, "phase %s: the %s beside the workload failed: %s", state.Run.Spec.Phases[i].Name,
			operate.Name(operation.Spec.Action), operationWords(operation))
	}
	return nil
}

// endCompanions ends the companions of a phase whose result was received, and waits for theirs; nil once they have ended.
func endCompanions(state State, i int, decision Decision) *Decision {
	phase, spec := state.Phases[i], state.Run.Spec.Phases[i]
	if phase.Pod.Ended == nil {
		return nil
	}
	for _, companion := range Companions(state.Run, spec) {
		operation := phase.Companions[companion]
		if operation == nil || HasEnded(operation) || !operation.DeletionTimestamp.IsZero() {
			continue
		}
		patience := spec.Deadline.Duration.Duration
		if companion == Observation {
			patience = state.Timings.CompanionGrace
		}
		due := phase.Pod.Ended.Add(patience)
		switch {
		case !state.Now.Before(due) && companion == Observation:
			continue // its numbers are left out, and the result says so
		case !state.Now.Before(due):
			ending := invalid(v1alpha1.ReasonPhaseDeadlineExceeded, true, "the %s beside phase %s was still at work %s after it: %s",
				operate.Name(operation.Spec.Action), spec.Name, patience, operationWords(operation))
			return &Decision{Phase: decision.Phase, Ending: ending, Reason: ending.Reason, Message: ending.Message}
		case !operation.Spec.Cancel:
			decision.Actions = append(decision.Actions, Action{Kind: EndCompanion, Phase: i, Companion: companion})
		}
		if decision.WakeAt.IsZero() || due.Before(decision.WakeAt) {
			decision.WakeAt = due
		}
	}
	if decision.WakeAt.IsZero() {
		return nil
	}
	decision.Reason, decision.Message = underWay(state, i)
	return &decision
}

// restOperations ends what is at work for a run that is kept for a look.
func restOperations(state State) (actions []Action, atRest bool) {
	atRest = true
	for i, phase := range state.Phases {
		for _, companion := range Companions(state.Run, state.Run.Spec.Phases[i]) {
			operation := phase.Companions[companion]
			if operation == nil || HasEnded(operation) {
				continue
			}
			atRest = false
			if !operation.Spec.Cancel {
				actions = append(actions, Action{Kind: EndCompanion, Phase: i, Companion: companion})
			}
		}
	}
	for _, name := range RunParameters(state.Run) {
		if operation := state.Parameters[name]; operation != nil && !HasEnded(operation) {
			atRest = false
			if !operation.Spec.Cancel {
				actions = append(actions, Action{Kind: RestoreParameter, Parameter: name})
			}
		}
	}
	return actions, atRest
}
