package runs

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Invalidating returns the reasons with which a run is Invalid.
func Invalidating() []string {
	return []string{
		// Something that it waited for was not ready in time.
		v1alpha1.ReasonPodNotStarted, v1alpha1.ReasonPodUnschedulable, v1alpha1.ReasonPodRejected, v1alpha1.ReasonImagePullFailed,
		v1alpha1.ReasonPreparingVolume, v1alpha1.ReasonVolumeNotBound, v1alpha1.ReasonPoolNotReady, v1alpha1.ReasonNameTaken,
		v1alpha1.ReasonActionFailed,
		// Its storage is not as requested.
		v1alpha1.ReasonVolumeLost, v1alpha1.ReasonPoolLost, v1alpha1.ReasonPropertiesDiffer, v1alpha1.ReasonParameterNotSet,
		// A phase did not end well, or was disturbed.
		v1alpha1.ReasonPodEvicted, v1alpha1.ReasonPodLost, v1alpha1.ReasonPodFailed, v1alpha1.ReasonExecutorLost, v1alpha1.ReasonNodeRebooted,
		v1alpha1.ReasonLeaseLost, v1alpha1.ReasonPhaseDeadlineExceeded, v1alpha1.ReasonPhaseInvalid,
		// Its result cannot be used.
		v1alpha1.ReasonResultMissing, v1alpha1.ReasonResultCorrupt, v1alpha1.ReasonResultForeign, v1alpha1.ReasonResultUnreadable,
		// Another run of its group spoils it.
		v1alpha1.ReasonPeerInvalid, v1alpha1.ReasonOutOfStep,
	}
}

func invalid(reason string, retryable bool, format string, arguments ...any) *Ending {
	return &Ending{Reason: reason, Retryable: retryable, Message: fmt.Sprintf(format, arguments...)}
}
