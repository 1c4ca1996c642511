package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/workload"
)

// Companion is a PoolOperation that accompanies a phase: the observation of its pool, measure.operate, or the operation that empties the
// caches before it.
type Companion string

// The companions of a phase.
const (
	// Observation is the window in which the agent records the disk counters of the phase's pool. Each other pool with a workload of the
	// phase has its own observation, see ObservationOf.
	Observation Companion = "observe"
	// Beside is the operation that measure.operate requests.
	Beside Companion = "operate"
)

// otherVolume is the prefix of observations of pools other than the phase's own.
const otherVolume = Observation + "-"

// ObservationOf is the observation of the pool of a volume, in a phase that works on it. All volumes on a pool share one observation.
func ObservationOf(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, volume v1alpha1.VolumeName) Companion {
	pool := HomeOf(run, volume)
	if pool == HomeOf(run, phase.Volume) {
		return Observation
	}
	return otherVolume + Companion(pool)
}

// Observes reports whether a companion is an observation. If it observes a pool other than the phase's own, it also names the volume that
// owns that pool.
func (c Companion) Observes() (other v1alpha1.VolumeName, is bool) {
	if name, found := strings.CutPrefix(string(c), string(otherVolume)); found {
		return v1alpha1.VolumeName(name), true
	}
	return "", c == Observation
}

// Companions are the companions of a phase, in the order in which they start.
func Companions(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase) []Companion {
	if run.Spec.Target.ZFS == nil || phase.Operate != nil {
		return nil
	}
	var companions []Companion
	if Empties(run, phase) {
		companions = append(companions, Emptying)
	}
	companions = append(companions, Observation)
	for _, part := range workload.Named(&phase) {
		if one := ObservationOf(run, phase, part.Phase.Volume); !slices.Contains(companions, one) {
			companions = append(companions, one)
		}
	}
	if phase.Measure != nil && phase.Measure.Operate != nil {
		companions = append(companions, Beside)
	}
	return companions
}

// CompanionName is the name of the PoolOperation of a companion. No phase has a dot in its name.
func CompanionName(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, companion Companion) string {
	return naming.RunOperationName(run, phase) + "." + string(companion)
}

// minBesidePercent is the part of the measured time during which a continuous operation must be running. The operation starts with the pod,
// and the measurement starts a little later.
const minBesidePercent = 90

// BesideShare is the part of the measured time in which an operation was running, in parts per million, and the reason if that is
// not enough. Operations that are not continuous have no share.
func BesideShare(operation *v1alpha1.PoolOperation, from, to time.Time) (partsPerMillion int64, problem string) {
	name := operate.Name(operation.Spec.Action)
	if operation.Status.Outcome == v1alpha1.OutcomeFailed {
		return 0, fmt.Sprintf("the %s during the workload failed: %s", name, operationWords(operation))
	}
	if !operate.Continuous(&operation.Spec.Action) {
		if operation.Status.Outcome != v1alpha1.OutcomeSucceeded {
			return 0, fmt.Sprintf("the %s during the workload had not finished when the workload ended: %s", name, operationWords(operation))
		}
		return 0, ""
	}
	if operation.Status.StartedAt == nil {
		return 0, fmt.Sprintf("the %s during the workload never started: %s", name, operationWords(operation))
	}
	began, ended := operation.Status.StartedAt.Time, to
	if operation.Status.FinishedAt != nil {
		ended = endOf(operation)
		if took, measured := operate.Measured(operation); measured { // it may have prepared its work first
			began = ended.Add(-took)
		}
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
		problem = fmt.Sprintf("the %s was running for %d%% of the measured time: shorten the measurement, or give the operation more to do", name,
			partsPerMillion/10_000)
	}
	return partsPerMillion, problem
}

// endOf returns the time at which an operation ended. Its agent may notice the end up to ten seconds late, unless the operation measures
// its work. The reported duration can be more precise, although it is in whole seconds.
func endOf(operation *v1alpha1.PoolOperation) time.Time {
	noticed := operation.Status.FinishedAt.Time
	_, measured := operate.Measured(operation)
	if took, known := operate.Duration(operation); known && !measured {
		if ended := operation.Status.StartedAt.Add(took + time.Second); ended.Before(noticed) {
			return ended
		}
	}
	return noticed
}

// HasBegun reports whether a continuous operation is running, which it shows by reporting progress, or has ended, perhaps without ever
// starting.
func HasBegun(operation *v1alpha1.PoolOperation) bool {
	return operation.Status.Progress != nil || HasEnded(operation)
}

// HasEnded reports whether an operation has ended.
func HasEnded(operation *v1alpha1.PoolOperation) bool { return operation.Status.Outcome != "" }

func operationWords(operation *v1alpha1.PoolOperation) string {
	ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return waitsForAgent(operation.Spec.NodeName)
	}
	return ready.Reason + ": " + ready.Message
}

// observeFirst delays the start of a phase until the observations of its pools are recording.
func observeFirst(state State, i int, decision Decision) Decision {
	spec := state.Run.Spec.Phases[i]
	start := slices.IndexFunc(decision.Actions, func(action Action) bool { return action.Kind == StartPhase })
	companions, known := Companions(state.Run, spec), state.Phases[i].Companions
	late := slices.IndexFunc(companions, func(one Companion) bool {
		_, observes := one.Observes()
		return observes && (known[one] == nil || !HasBegun(known[one]))
	})
	if start < 0 || late < 0 {
		return decision
	}
	observation := known[companions[late]]
	overdue := state.beginOverdue(i, observation)
	decision.Actions = slices.Delete(slices.Clone(decision.Actions), start, start+1)
	switch {
	case observation == nil:
		decision.Actions = append(decision.Actions, Action{Kind: StartCompanion, Phase: i, Companion: companions[late]})
	case !state.Now.Before(overdue):
		ending := invalid(v1alpha1.ReasonPodNotStarted, false, "the observation of the pool for phase %s did not start within %s: %s",
			spec.Name, spec.StartDeadline.Duration.Duration, operationWords(observation))
		return decision.endsWith(ending)
	}
	decision.WakeAt = overdue
	return decision
}

// operateBeside starts measure.operate once the pod of the phase is running, or operateAfter later.
func operateBeside(state State, i int) []Action {
	spec, phase := state.Run.Spec.Phases[i], state.Phases[i]
	if spec.Measure == nil || spec.Measure.Operate == nil || phase.Pod.Started == nil || phase.Pod.Ended != nil ||
		phase.Companions[Beside] != nil || state.Now.Before(besideDue(phase, spec)) {
		return nil
	}
	return []Action{{Kind: StartCompanion, Phase: i, Companion: Beside}}
}

// besideDue returns the time at which measure.operate starts.
func besideDue(phase PhaseState, spec v1alpha1.Phase) time.Time {
	if after := spec.Measure.OperateAfter; after != nil {
		return phase.began().Add(after.Duration.Duration)
	}
	return *phase.Pod.Started
}

// brokenBeside ends a run at once if measure.operate has failed. An operation with operateAfter must end by itself and is never repeated:
// otherwise the time before the second operation would contain the first one.
func brokenBeside(state State, i int) *Ending {
	spec, phase := state.Run.Spec.Phases[i], state.Phases[i]
	if spec.Measure == nil || spec.Measure.Operate == nil {
		return nil
	}
	operation, name, within := phase.Companions[Beside], operate.Name(*spec.Measure.Operate), spec.Measure.OperateAfter != nil
	switch {
	case operation == nil && within && (phase.BesideSeen || phase.EndTold):
		return invalid(v1alpha1.ReasonPhaseInvalid, true, "phase %s: the %s during the workload was deleted", spec.Name, name)
	case operation == nil:
		return nil
	case operation.Status.Outcome == v1alpha1.OutcomeFailed:
		return failed(operation, "phase %s: the %s during the workload failed", spec.Name, name)
	case within && !operation.DeletionTimestamp.IsZero():
		return invalid(v1alpha1.ReasonPhaseInvalid, true, "phase %s: the %s during the workload is being deleted", spec.Name, name)
	case within && operation.Status.Outcome == v1alpha1.OutcomeCancelled:
		return failed(operation, "phase %s: the %s during the workload was cancelled", spec.Name, name)
	}
	return nil
}

// failed ends a run whose companion has failed. Another attempt may succeed if the cause may be temporary.
func failed(operation *v1alpha1.PoolOperation, format string, arguments ...any) *Ending {
	ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
	return invalid(v1alpha1.ReasonPhaseInvalid, ready != nil && retryableReasons[ready.Reason], format+": %s", append(arguments,
		operationWords(operation))...)
}

// endCompanions ends the companions of a phase whose result was received, and waits for their results. It returns nil once they have ended.
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
		_, observes := companion.Observes()
		if observes {
			patience = state.Timings.CompanionGrace
		}
		due := phase.Pod.Ended.Add(patience)
		switch {
		case !state.Now.Before(due) && observes:
			continue // its metrics are omitted, and the result says so
		case !state.Now.Before(due):
			ending := invalid(v1alpha1.ReasonPhaseDeadlineExceeded, true, "the %s during phase %s was still running %s after it: %s",
				operate.Name(operation.Spec.Action), spec.Name, patience, operationWords(operation))
			return new(decision.endsWith(ending))
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

// restOperations ends the running operations of a retained run.
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
