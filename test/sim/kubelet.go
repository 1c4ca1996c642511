package sim

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pods plays the kubelets: each pod that is bound to a node goes one step further.
func (p *pass) pods(ctx context.Context) error {
	for i := range p.seenPods {
		pod := &p.seenPods[i]
		if err := p.pod(ctx, pod); err != nil {
			return fmt.Errorf("play the kubelet for %s: %w", client.ObjectKeyFromObject(pod), err)
		}
	}
	return nil
}

// pod takes one pod a step further.
func (p *pass) pod(ctx context.Context, pod *corev1.Pod) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return p.removePod(ctx, pod)
	case pod.Spec.NodeName == "" || ended(pod):
		return nil
	case pod.Status.Phase == corev1.PodRunning:
		if p.script(pod); p.held(pod) {
			return nil
		}
		return p.endPod(ctx, pod)
	}
	return p.startPod(ctx, pod)
}

// removePod ends a deleted pod, as the kubelet and, for pods without a node, the pod garbage collector do: they never remove
// a pod before it is Failed or Succeeded. The job controller's finalizer may keep it longer.
func (p *pass) removePod(ctx context.Context, pod *corev1.Pod) error {
	if !ended(pod) {
		return p.terminate(ctx, pod, termination{code: 143, reason: "Error"})
	}
	if ptr.Deref(pod.DeletionGracePeriodSeconds, 0) == 0 {
		return nil
	}
	return p.forceDelete(ctx, pod)
}

// forceDelete deletes a pod without asking the kubelet.
func (p *pass) forceDelete(ctx context.Context, pod *corev1.Pod) error {
	return p.wrote(p.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
}

// startPod starts the containers of a pod, or shows why it cannot.
func (p *pass) startPod(ctx context.Context, pod *corev1.Pod) error {
	script := p.script(pod)
	switch {
	case script.Outcome == Reject:
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Reason, pod.Status.Message = cmp.Or(script.Reason, "OutOfcpu"),
			cmp.Or(script.Message, "Pod was rejected: Node didn't have enough resource: cpu")
		p.setPodCondition(pod, corev1.PodReady, corev1.ConditionFalse, "PodFailed", "")
		return p.writeStatus(ctx, pod)
	case script.Outcome == ImagePull:
		message := cmp.Or(script.Message, fmt.Sprintf("failed to pull and unpack image %q: not found", pod.Spec.Containers[0].Image))
		if reason := waitingReason(pod); reason == "ErrImagePull" || reason == "ImagePullBackOff" {
			return p.waiting(ctx, pod, "ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", pod.Spec.Containers[0].Image,
				message))
		}
		return p.waiting(ctx, pod, "ErrImagePull", message)
	case script.Outcome == NeverStart || !p.bound(pod):
		return p.waiting(ctx, pod, "ContainerCreating", "")
	}
	now := metav1.NewTime(p.now)
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	p.setContainers(pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}})
	for _, condition := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.setPodCondition(pod, condition, corev1.ConditionTrue, "", "")
	}
	p.changed = true
	if err := p.client.Status().Update(ctx, pod); err != nil { // if this fails, it did not start
		return p.wrote(err)
	}
	p.kubelet.logs.start(pod, opening(script), script.LogFailures)
	p.started(pod)
	return nil
}

// bound reports whether all claims of a pod are bound.
func (p *pass) bound(pod *corev1.Pod) bool {
	for _, name := range claimNames(pod) {
		if claim := p.claim(pod.Namespace, name); claim == nil || claim.Status.Phase != corev1.ClaimBound {
			return false
		}
	}
	return true
}

// waiting shows why the containers of a pod do not start, unless the status shows it already.
func (p *pass) waiting(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	if waitingReason(pod) == reason {
		return nil
	}
	pod.Status.Phase = corev1.PodPending
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &metav1.Time{Time: p.now}
	}
	p.setContainers(pod, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
	p.setPodCondition(pod, corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "")
	return p.writeStatus(ctx, pod)
}

// waitingReason returns why the first container waits.
func waitingReason(pod *corev1.Pod) string {
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
		return ""
	}
	return pod.Status.ContainerStatuses[0].State.Waiting.Reason
}

// endPod ends a running pod as its script says.
func (p *pass) endPod(ctx context.Context, pod *corev1.Pod) error {
	script := p.script(pod)
	switch script.Outcome {
	case Kill:
		p.changed = true
		return p.wrote(p.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}))
	case Lose:
		if err := p.untrack(ctx, pod); err != nil {
			return err
		}
		p.finished(pod, -1)
		return p.forceDelete(ctx, pod)
	case LoseNode:
		p.setPodCondition(pod, corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByPodGC", "PodGC: node no longer exists")
		pod.Status.Phase = corev1.PodFailed
		p.finished(pod, -1)
		if err := p.writeStatus(ctx, pod); err != nil {
			return err
		}
		return p.forceDelete(ctx, pod)
	case Reset:
		return p.resetNode(ctx, pod)
	case Evict:
		message := cmp.Or(script.Message, "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 512Mi.")
		p.setPodCondition(pod, corev1.DisruptionTarget, corev1.ConditionTrue, "TerminationByKubelet", message)
		pod.Status.Reason, pod.Status.Message = "Evicted", message
		return p.terminate(ctx, pod, termination{code: 137, reason: "Error"})
	}
	return p.complete(ctx, pod, script)
}

// complete lets a container end by itself, with its log and its termination message.
func (p *pass) complete(ctx context.Context, pod *corev1.Pod, script Script) error {
	log, message := opening(script), script.Message
	if request, is := requestOf(pod); is {
		started := p.now
		if running := pod.Status.ContainerStatuses[0].State.Running; running != nil {
			started = running.StartedAt.Time
		}
		var err error
		if log, message, err = output(request, script, started, p.now); err != nil {
			return err
		}
	}
	p.kubelet.logs.end(pod, log)
	if script.Outcome == Fail {
		return p.terminate(ctx, pod, termination{code: cmp.Or(script.ExitCode, 1), reason: "Error", message: message})
	}
	return p.terminate(ctx, pod, termination{reason: "Completed", message: message})
}

// termination is how a container ends.
type termination struct {
	code            int32
	reason, message string
}

// terminate writes the end of a pod's containers.
func (p *pass) terminate(ctx context.Context, pod *corev1.Pod, end termination) error {
	state := corev1.ContainerStateTerminated{
		ExitCode: end.code, Reason: end.reason, Message: end.message,
		StartedAt: metav1.NewTime(p.now), FinishedAt: metav1.NewTime(p.now),
	}
	pod.Status.Phase = corev1.PodSucceeded
	if end.code != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	reason := "PodCompleted"
	if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil {
		state.StartedAt = pod.Status.ContainerStatuses[0].State.Running.StartedAt
		p.setContainers(pod, corev1.ContainerState{Terminated: &state})
	}
	for _, condition := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		p.setPodCondition(pod, condition, corev1.ConditionFalse, reason, "")
	}
	p.changed = true
	if err := p.client.Status().Update(ctx, pod); err != nil {
		return p.wrote(err)
	}
	p.finished(pod, end.code)
	return nil
}

// setContainers gives all containers of a pod the same state.
func (p *pass) setContainers(pod *corev1.Pod, state corev1.ContainerState) {
	running := state.Running != nil
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: container.Name, Image: container.Image, State: state, Ready: running, Started: &running}
		if state.Waiting == nil {
			status.ContainerID = "sim://" + string(pod.UID) + "/" + container.Name
			status.ImageID = "sim@" + container.Image
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
}

// setPodCondition sets a condition of a pod.
func (p *pass) setPodCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	condition := corev1.PodCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(p.now),
		ObservedGeneration: pod.Generation,
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			pod.Status.Conditions[i] = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

// writeStatus writes a pod's status.
func (p *pass) writeStatus(ctx context.Context, pod *corev1.Pod) error {
	return p.wrote(p.client.Status().Update(ctx, pod))
}

// started records that a workload runs.
func (p *pass) started(pod *corev1.Pod) {
	request, _ := requestOf(pod)
	execution := Execution{
		Pod: pod.Name, PodUID: pod.UID, Namespace: pod.Namespace, Node: pod.Spec.NodeName,
		RunUID: request.Run.UID, Run: request.Run.Name, Phase: string(request.Phase.Name), Seed: request.Seed,
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		execution.JobUID = owner.UID
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.executions = append(p.executions, execution)
}

// finished records that a workload is over.
func (p *pass) finished(pod *corev1.Pod, code int32) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for i := range p.executions {
		if p.executions[i].PodUID == pod.UID && !p.executions[i].Ended {
			p.executions[i].Ended, p.executions[i].ExitCode = true, code
		}
	}
}
