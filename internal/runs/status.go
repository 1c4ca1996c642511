package runs

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// Summarise computes the status only from the observed state and the decision. If nothing has changed, the status stays the same and is not
// written.
func Summarise(state State, decision Decision) v1alpha1.BenchmarkRunStatus {
	run := state.Run
	status := *run.Status.DeepCopy()
	status.ObservedGeneration = run.Generation
	if status.StartedAt == nil {
		status.StartedAt = &metav1.Time{Time: state.Now}
	}
	status.Phases = phaseStatuses(state)
	if state.Pools.Ready {
		status.Volumes = withNew(status.Volumes, state.Pools.Volumes)
	}
	status.CurrentPhase = decision.Phase
	if decision.ReadyFor != "" {
		status.ReadyFor = &v1alpha1.RunReadiness{Phase: v1alpha1.PhaseName(decision.ReadyFor), Since: metav1.NewMicroTime(state.Now)}
	}
	if decision.Ending == nil {
		status.State = decision.Reason
		kstatus.SetProgressing(&status.Conditions, run.Generation, decision.Reason, decision.Message)
		return status
	}
	return summariseEnding(state, decision, status)
}

// withNew adds the volumes that are not recorded yet. The others stay as they were before the first phase.
func withNew(recorded, now []v1alpha1.RunVolumeStatus) []v1alpha1.RunVolumeStatus {
	for _, one := range now {
		if !slices.ContainsFunc(recorded, func(known v1alpha1.RunVolumeStatus) bool { return known.Name == one.Name }) {
			recorded = append(recorded, one)
		}
	}
	return recorded
}

func summariseEnding(state State, decision Decision, status v1alpha1.BenchmarkRunStatus) v1alpha1.BenchmarkRunStatus {
	ending, generation := decision.Ending, state.Run.Generation
	if status.FinishedAt == nil {
		status.FinishedAt = &metav1.Time{Time: state.Now}
	}
	status.CurrentPhase, status.Retryable = "", ending.Retryable
	valid := metav1.ConditionFalse
	status.State = "Invalid"
	if ending.Valid {
		valid, status.State = metav1.ConditionTrue, "Valid"
	}
	kstatus.Set(&status.Conditions, generation, v1alpha1.ConditionComplete, metav1.ConditionTrue, ending.Reason, ending.Message)
	kstatus.Set(&status.Conditions, generation, v1alpha1.ConditionValid, valid, ending.Reason, ending.Message)
	switch {
	case decision.Settled:
		kstatus.SetReady(&status.Conditions, generation, decision.Reason, decision.Message)
	case Troubled(decision.Reason):
		kstatus.SetProgressing(&status.Conditions, generation, decision.Reason, decision.Message)
	default:
		kstatus.SetProgressing(&status.Conditions, generation, v1alpha1.ReasonTearingDown, ending.Message+" (cleaning up)")
	}
	return status
}

// phaseStatuses keeps recorded values and adds observed ones: a Job may be gone later.
func phaseStatuses(state State) []v1alpha1.RunPhaseStatus {
	recorded := map[v1alpha1.PhaseName]v1alpha1.RunPhaseStatus{}
	for _, phase := range state.Run.Status.Phases {
		recorded[phase.Name] = phase
	}
	var statuses []v1alpha1.RunPhaseStatus
	for i, spec := range state.Run.Spec.Phases {
		phase, status := state.Phases[i], recorded[spec.Name]
		if phase.Executor.Exists && status.ExecutorUID == "" {
			status.ExecutorUID = phase.Executor.UID
			status.StartedAt = &metav1.Time{Time: phase.Executor.Created}
			if phase.Executor.StartAt != nil {
				status.StartAt = &metav1.MicroTime{Time: *phase.Executor.StartAt}
			}
		}
		if phase.Stored != nil && phase.Stored.Digest != "" && (status.Digest == "" || status.Digest == phase.Stored.Digest) {
			// Otherwise the result is corrupt or differs from the one stored first: keep the recorded digest, which shows the difference.
			status.Result, status.Digest = phase.Stored.ConfigMap, phase.Stored.Digest
			status.FinishedAt = &metav1.Time{Time: phase.Stored.StoredAt}
			status.StartLagMilliseconds = phase.Stored.StartLagMilliseconds
		}
		if status.ExecutorUID != "" || status.Result != "" {
			status.Name = spec.Name
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// MinimalStatus returns a minimal status for a run whose full status the API server rejects as invalid, because of objects that others have
// created in its name: the stored status with new conditions. If nothing were written, the end and the teardown of the run would never be
// recorded, and it would hold its node forever. The progress of a run cannot be recorded either, so a run in progress ends.
func MinimalStatus(now time.Time, run *v1alpha1.BenchmarkRun, full v1alpha1.BenchmarkRunStatus) v1alpha1.BenchmarkRunStatus {
	status := *run.Status.DeepCopy()
	status.ObservedGeneration = run.Generation
	if run.DeletionTimestamp.IsZero() && RecordedEnding(run) == nil {
		ending := invalid(v1alpha1.ReasonActionFailed, true, "the API server refuses the status of the run as invalid: delete the ConfigMaps "+
			"and Jobs that name the run as their owner and were not created by storagebench; the log of the manager has the error")
		return summariseEnding(State{Now: now, Run: run}, Decision{}.endsWith(ending), status)
	}
	status.Conditions = full.Conditions
	return status
}

// SummariseFailure keeps the last known state, because nothing could be observed. A settled run stays settled, because others rely on that.
func SummariseFailure(run *v1alpha1.BenchmarkRun, err error) v1alpha1.BenchmarkRunStatus {
	status := *run.Status.DeepCopy()
	if Settled(run) && run.DeletionTimestamp.IsZero() {
		return status
	}
	status.ObservedGeneration = run.Generation
	if status.FinishedAt == nil { // otherwise the state says how it ended
		status.State = v1alpha1.ReasonActionFailed
	}
	kstatus.SetProgressing(&status.Conditions, run.Generation, v1alpha1.ReasonActionFailed, err.Error()+" (will be retried)")
	return status
}

// SummariseWithoutAgent keeps the last known state of a run on pools, because without the agent nothing can be observed, created or torn
// down. A settled run stays settled.
func SummariseWithoutAgent(run *v1alpha1.BenchmarkRun) v1alpha1.BenchmarkRunStatus {
	status := *run.Status.DeepCopy()
	if Settled(run) && run.DeletionTimestamp.IsZero() {
		return status
	}
	status.ObservedGeneration = run.Generation
	if status.FinishedAt == nil {
		status.State = v1alpha1.ReasonAgentNotInstalled
	}
	kstatus.SetStalled(&status.Conditions, run.Generation, v1alpha1.ReasonAgentNotInstalled,
		"the agent is not installed, so pools and volumes of this run can be neither used nor torn down: enable it (agent.enabled=true in the "+
			"Helm chart, or the component config/agent)")
	return status
}
