package experiment

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
)

// Fits reports whether pods of a benchmark could run on a node now, and whether all its zfs targets may use it. The scheduler has the final
// say: this only prevents a benchmark from choosing a node that can never run its pods.
func Fits(node *corev1.Node, template v1alpha1.PodTemplate, slots []design.Slot) bool {
	return Ready(node) && node.DeletionTimestamp.IsZero() && !node.Spec.Unschedulable &&
		labels.SelectorFromSet(template.NodeSelector).Matches(labels.Set(node.Labels)) &&
		!slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return !tolerated(&taint, template.Tolerations) }) &&
		!slices.ContainsFunc(slots, func(slot design.Slot) bool { return slot.Target.ZFS != nil && !mayUse(node, slot.Target.ZFS) })
}

// mayUse reports whether a zfs target may use a node: it has an agent, and the target's selector matches it.
func mayUse(node *corev1.Node, target *v1alpha1.ZFSTarget) bool {
	return node.Labels[v1alpha1.LabelLabNode] == "true" &&
		labels.SelectorFromSet(target.Nodes.MatchLabels).Matches(labels.Set(node.Labels))
}

// Ready reports whether the kubelet of a node is ready.
func Ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// tolerated follows the rules of the scheduler for NoSchedule and NoExecute. Numeric operators tolerate only on clusters that
// support them; elsewhere the API server rejects them.
func tolerated(taint *corev1.Taint, tolerations []corev1.Toleration) bool {
	if taint.Effect == corev1.TaintEffectPreferNoSchedule {
		return true
	}
	return slices.ContainsFunc(tolerations, func(toleration corev1.Toleration) bool {
		return toleration.ToleratesTaint(klog.Background(), taint, true)
	})
}

// AssumedNode returns the node that the template names, or nil, for a manager that may not read nodes.
func AssumedNode(template v1alpha1.PodTemplate) *corev1.Node {
	name := template.NodeSelector[corev1.LabelHostname]
	if name == "" {
		return nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: template.NodeSelector},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// NamedClasses returns the StorageClasses that the targets name, for a manager that may not read StorageClasses.
func NamedClasses(slots []design.Slot) (classes []ClassState) {
	for _, slot := range slots {
		if class := slot.Target.StorageClass; class != nil && class.Name != "" {
			classes = append(classes, ClassState{Name: class.Name})
		}
	}
	return classes
}
