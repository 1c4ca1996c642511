package runs

import "github.com/storagebench/storagebench/api/v1alpha1"

// Troubled reports whether a reason needs the user's attention although the run continues.
func Troubled(reason string) bool {
	switch reason {
	case v1alpha1.ReasonPodUnschedulable, v1alpha1.ReasonPodRejected, v1alpha1.ReasonImagePullFailed,
		v1alpha1.ReasonVolumeNotBound, v1alpha1.ReasonResultUnreadable, v1alpha1.ReasonNameTaken, v1alpha1.ReasonPodsNotStopped,
		v1alpha1.ReasonOperationNotStopped, v1alpha1.ReasonTeardownStuck, v1alpha1.ReasonActionFailed, v1alpha1.ReasonAgentNotInstalled:
		return true
	}
	return false
}
