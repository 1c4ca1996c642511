package runs

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

var (
	imageReasons = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed"}
	rejectedReasons = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"}
)

// ContainerName is the name of the container that executes a phase.
const ContainerName = "runner"

// reasonPodGC is the reason of the pod garbage collector for a pod whose node is gone.
const reasonPodGC = "DeletionByPodGC"

// PodsAtWork counts the pods that were created for a run and whose containers may be running. jobs has the index of each phase by the UID
// of its Job. Pods that no Job of the run can have created do not hold the node: a tenant can create a pod with the labels of the run, its
// Job as the owner, and a grace period of years.
func PodsAtWork(run *v1alpha1.BenchmarkRun, jobs map[types.UID]int, pods []corev1.Pod) (count int) {
	for i := range pods {
		pod := &pods[i]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !ended && madeFor(run, jobs, pod) {
			count++
		}
	}
	return count
}

// madeFor reports whether a Job of the run can have created a pod: the pods of its Jobs are pinned to the node of the run and have the
// default grace period, and none is created long after the end. A tenant's pod on a node without a kubelet would never end.
func madeFor(run *v1alpha1.BenchmarkRun, jobs map[types.UID]int, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != run.Spec.NodeName {
		return false
	}
	if owner == nil || ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0) > corev1.DefaultTerminationGracePeriodSeconds {
		return false
	}
	_, ours := jobs[owner.UID]
	ours = ours || slices.ContainsFunc(run.Status.Phases, func(phase v1alpha1.RunPhaseStatus) bool {
		return phase.ExecutorUID == string(owner.UID)
	})
	return ours && !MadeLate(run, pod.CreationTimestamp.Time)
}

// PodOf reads a pod for the planner.
func PodOf(pod *corev1.Pod) PodState {
	state := PodState{Exists: true, Name: pod.Name, Deleting: !pod.DeletionTimestamp.IsZero()}
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			condition.Reason == corev1.PodReasonUnschedulable:
			state.Problem, state.Message = v1alpha1.ReasonPodUnschedulable, condition.Message
		case condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue:
			state.Problem, state.Message = v1alpha1.ReasonPodEvicted, condition.Reason+": "+condition.Message
			if condition.Reason == reasonPodGC {
				state.Problem = v1alpha1.ReasonPodLost
			}
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.Name == ContainerName {
			readContainer(&state, status)
			readRestarts(&state, status)
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		readFailure(&state, pod)
	}
	return state
}

func readContainer(state *PodState, status *corev1.ContainerStatus) {
	switch {
	case status.State.Waiting != nil:
		waiting := status.State.Waiting
		message := fmt.Sprintf("%s: %s", waiting.Reason, waiting.Message)
		if slices.Contains(imageReasons, waiting.Reason) {
			state.Problem, state.Message = v1alpha1.ReasonImagePullFailed, fmt.Sprintf("image %s: %s", status.Image, message)
		} else if slices.Contains(rejectedReasons, waiting.Reason) {
			state.Problem, state.Message = v1alpha1.ReasonPodRejected, message
		}
	case status.State.Running != nil:
		state.Started = new(status.State.Running.StartedAt.Time)
	case status.State.Terminated != nil:
		ended := status.State.Terminated
		state.Started, state.Ended = &ended.StartedAt.Time, &ended.FinishedAt.Time
		state.ExitCode = ended.ExitCode
		_, err := results.ParseReceipt(ended.Message)
		state.HasReceipt = err == nil
		switch {
		case state.HasReceipt: // the result may have been complete before the pod was disrupted
			state.Problem, state.Message = "", ended.Message
		case state.Problem == "" && ended.Message != "":
			state.Message = ended.Message
		case state.Problem == "":
			state.Message = ended.Reason
		}
	}
}

// readRestarts treats a restarted container as lost: it works on data that the first container has changed.
func readRestarts(state *PodState, status *corev1.ContainerStatus) {
	if status.RestartCount > 0 {
		state.HasReceipt = false
		state.Problem, state.Message = v1alpha1.ReasonPodLost, fmt.Sprintf("its container was lost and restarted %d times",
			status.RestartCount)
	}
}

// readFailure evaluates a pod that failed as a whole: evicted, rejected by the kubelet, lost with its node.
func readFailure(state *PodState, pod *corev1.Pod) {
	if pod.Status.Reason == "" || state.HasReceipt {
		return
	}
	state.Message = fmt.Sprintf("%s: %s", pod.Status.Reason, pod.Status.Message)
	if pod.Status.Reason == "Evicted" || pod.Status.Reason == "Preempting" {
		state.Problem = v1alpha1.ReasonPodEvicted
	}
	if state.Ended == nil {
		ended := failedAt(pod)
		state.Ended, state.ExitCode = &ended.Time, -1
	}
}

func failedAt(pod *corev1.Pod) metav1.Time {
	latest := pod.CreationTimestamp
	for _, condition := range pod.Status.Conditions {
		if latest.Before(&condition.LastTransitionTime) {
			latest = condition.LastTransitionTime
		}
	}
	return latest
}

// Starting reports whether the executor of a phase exists but has not started to work.
func (s PhaseState) Starting() bool {
	return s.Executor.Exists && s.Pod.Started == nil && s.Pod.Ended == nil && s.Stored == nil
}

// FileProblem says why a pod waits for its file, because the kubelet reports that only in an event. It returns "" if the file exists.
func FileProblem(file *v1alpha1.ConfigMapKey, found *corev1.ConfigMap, exists bool) string {
	_, isText := found.Data[file.Key]
	switch {
	case !exists:
		return fmt.Sprintf("ConfigMap %s, used by the phase, does not exist: create it with the key %s", file.Name, file.Key)
	case !isText && found.BinaryData[file.Key] == nil:
		return fmt.Sprintf("ConfigMap %s has no key %s, used by the phase: add it", file.Name, file.Key)
	}
	return ""
}
