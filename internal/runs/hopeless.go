package runs

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// retryableReasons are the reasons of failed operations whose cause may be gone at the next attempt. For any other reason, ZFS or the agent
// would refuse the operation again.
var retryableReasons = map[string]bool{
	v1alpha1.ReasonAgentDied: true, v1alpha1.ReasonAgentRestarted: true, v1alpha1.ReasonObservationInterrupted: true,
	v1alpha1.ReasonParameterInterrupted: true,
	v1alpha1.ReasonStoppedElsewhere:     true, v1alpha1.ReasonCancelled: true, v1alpha1.ReasonDeadlineExceeded: true,
	v1alpha1.ReasonPhaseDeadlineExceeded: true, v1alpha1.ReasonPoolNotReady: true, v1alpha1.ReasonPoolLost: true,
	v1alpha1.ReasonDatasetInUse: true, v1alpha1.ReasonScanRunning: true,
}

// permanentReasons are the reasons of failed workloads that can succeed only with another spec.
var permanentReasons = map[string]bool{
	results.ReasonJobRefused: true, results.ReasonNotPossible: true, results.ReasonNoData: true, results.ReasonVolumeFull: true,
	results.ReasonQuotaExceeded: true,
}

// mayPass reports whether another attempt at a phase may end differently.
func mayPass(phase *v1alpha1.Phase, reason string) bool {
	switch {
	case phase.Operate != nil:
		return retryableReasons[reason]
	case workload.EndsWithOperation(phase) && reason == v1alpha1.ReasonOperationDidNotOverlap: // the operation takes longer than allowed
		return false
	}
	return !permanentReasons[reason]
}
