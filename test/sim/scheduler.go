package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// schedule plays the scheduler for all pods without a node.
func (p *pass) schedule(ctx context.Context) error {
	for i := range p.seenPods {
		pod := &p.seenPods[i]
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || ended(pod) || len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		if err := p.schedulePod(ctx, pod); err != nil {
			return fmt.Errorf("play the scheduler for %s: %w", client.ObjectKeyFromObject(pod), err)
		}
	}
	return nil
}

// schedulePod binds a pod to the first node that fits, once its claims are bound, or says why it cannot.
func (p *pass) schedulePod(ctx context.Context, pod *corev1.Pod) error {
	if err := inParallel(
		func() error { return p.needNodes(ctx) }, func() error { return p.needClasses(ctx) }, func() error { return p.needVolumes(ctx) },
	); err != nil {
		return err
	}
	script := p.script(pod)
	if script.Outcome == Unschedulable {
		return p.unschedulable(ctx, pod, cmp.Or(script.Message,
			"0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."))
	}
	waiting, problem := p.claimsOf(pod)
	if problem != "" {
		return p.unschedulable(ctx, pod, problem)
	}
	node := p.nodeFor(pod)
	if node == "" {
		return p.unschedulable(ctx, pod, fmt.Sprintf("0/%[1]d nodes are available: %[1]d node(s) didn't match Pod's node affinity/selector. "+
			"preemption: 0/%[1]d nodes are available: %[1]d Preemption is not helpful for scheduling.", len(p.nodes)))
	}
	if len(waiting) == 0 {
		return p.wrote(p.client.SubResource("binding").Create(ctx, pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		}))
	}
	if script.Outcome == NeverBind {
		for _, claim := range waiting {
			if err := p.warn(ctx, "PersistentVolumeClaim", claim, "ProvisioningFailed",
				cmp.Or(script.Message, "failed to provision volume: rpc error: code = ResourceExhausted desc = out of space")); err != nil {
				return err
			}
		}
		return nil
	}
	for _, claim := range waiting {
		if err := p.provision(ctx, claim, node); err != nil {
			return err
		}
	}
	return nil
}

// claimsOf returns the claims that wait for this pod to be bound, or why the pod cannot be scheduled.
func (p *pass) claimsOf(pod *corev1.Pod) (waiting []*corev1.PersistentVolumeClaim, problem string) {
	for _, name := range claimNames(pod) {
		claim := p.claim(pod.Namespace, name)
		switch {
		case claim == nil:
			return nil, fmt.Sprintf("persistentvolumeclaim %q not found", name)
		case claim.DeletionTimestamp != nil:
			return nil, fmt.Sprintf("persistentvolumeclaim %q is being deleted", name)
		case claim.Status.Phase == corev1.ClaimLost:
			return nil, fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name, claim.Spec.VolumeName)
		case claim.Status.Phase == corev1.ClaimBound:
			continue
		case p.waitsForPod(claim) && p.claimProblem(claim) == "":
			waiting = append(waiting, claim)
		default:
			return nil, fmt.Sprintf("0/%[1]d nodes are available: pod has unbound immediate PersistentVolumeClaims. "+
				"preemption: 0/%[1]d nodes are available: %[1]d Preemption is not helpful for scheduling.", len(p.nodes))
		}
	}
	return waiting, ""
}

// waitsForPod reports whether a claim is bound only when a pod uses it.
func (p *pass) waitsForPod(claim *corev1.PersistentVolumeClaim) bool {
	class, known := p.classes[ptr.Deref(claim.Spec.StorageClassName, "")]
	return known && ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer
}

// unschedulable writes why a pod cannot be scheduled, unless the status says so already.
func (p *pass) unschedulable(ctx context.Context, pod *corev1.Pod, message string) error {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Message == message {
			return nil
		}
	}
	p.setPodCondition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, message)
	return p.writeStatus(ctx, pod)
}

// nodeFor returns the first node that a pod and its bound volumes accept; empty if there is none.
func (p *pass) nodeFor(pod *corev1.Pod) string {
	for i := range p.nodes {
		node := &p.nodes[i]
		if !node.Spec.Unschedulable && selected(pod, node) && tolerated(pod, node) && p.reachesVolumes(pod, node) {
			return node.Name
		}
	}
	return ""
}

// selected reports whether a pod's selector and required affinity match a node.
func selected(pod *corev1.Pod, node *corev1.Node) bool {
	for key, value := range pod.Spec.NodeSelector {
		if node.Labels[key] != value {
			return false
		}
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return true
	}
	return matches(pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, node)
}

// reachesVolumes reports whether the bound volumes of a pod can be used on a node.
func (p *pass) reachesVolumes(pod *corev1.Pod, node *corev1.Node) bool {
	for _, name := range claimNames(pod) {
		claim := p.claim(pod.Namespace, name)
		if claim == nil || claim.Spec.VolumeName == "" {
			continue
		}
		volume := p.volume(claim.Spec.VolumeName)
		if volume != nil && volume.Spec.NodeAffinity != nil && !matches(volume.Spec.NodeAffinity.Required, node) {
			return false
		}
	}
	return true
}

// tolerated reports whether a pod tolerates the taints of a node.
func tolerated(pod *corev1.Pod, node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == taint.Key || t.Key == "") &&
				(t.Operator == corev1.TolerationOpExists || (t.Key != "" && t.Value == taint.Value))
		}) {
			return false
		}
	}
	return true
}

// matches reports whether one of the terms of a selector matches a node. Without a selector, every node matches.
func matches(selector *corev1.NodeSelector, node *corev1.Node) bool {
	if selector == nil {
		return true
	}
	return slices.ContainsFunc(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		for _, requirement := range term.MatchExpressions {
			value, has := node.Labels[requirement.Key]
			if !meets(requirement, value, has) {
				return false
			}
		}
		for _, requirement := range term.MatchFields { // metadata.name is the only field there is
			if !meets(requirement, node.Name, true) {
				return false
			}
		}
		return len(term.MatchExpressions)+len(term.MatchFields) > 0
	})
}

// meets reports whether a value meets a requirement.
func meets(requirement corev1.NodeSelectorRequirement, value string, has bool) bool {
	listed := has && slices.Contains(requirement.Values, value)
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn:
		return listed
	case corev1.NodeSelectorOpNotIn:
		return !listed
	case corev1.NodeSelectorOpExists:
		return has
	case corev1.NodeSelectorOpDoesNotExist:
		return !has
	}
	return false // Gt and Lt are not simulated
}
