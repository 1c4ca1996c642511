package runs

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// passing are the reasons of failed operations whose cause may be gone at the next attempt. For any other reason, ZFS or the agent would
// refuse the operation again.
var passing = map[string]bool{
	v1alpha1.ReasonAgentDied: true, v1alpha1.ReasonAgentRestarted: true, v1alpha1.ReasonObservationInterrupted: true,
	v1alpha1.ReasonParameterInterrupted: true,
	v1alpha1.ReasonStoppedElsewhere:     true, v1alpha1.ReasonCancelled: true, v1alpha1.ReasonDeadlineExceeded: true,
	v1alpha1.ReasonPhaseDeadlineExceeded: true, v1alpha1.ReasonPoolNotReady: true, v1alpha1.ReasonPoolLost: true,
	v1alpha1.ReasonDatasetInUse: true, v1alpha1.ReasonScanRunning: true,
}

// refused are the reasons of workloads for which only another spec helps.
var refused = map[string]bool{
	results.ReasonJobRefused: true, results.ReasonNotPossible: true, results.ReasonNoData: true, results.ReasonVolumeFull: true,
	results.ReasonQuotaExceeded: true,
}

// mayPass reports whether another attempt at a phase may end differently.
func mayPass(phase *v1alpha1.Phase, reason string) bool {
	switch {
	case phase.Operate != nil:
		return passing[reason]
	case workload.EndsWithOperation(phase) && reason == v1alpha1.ReasonOperationDidNotOverlap: // it takes longer than the longest time
		return false
	}
	return !refused[reason]
}
