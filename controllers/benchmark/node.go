package benchmark

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/experiment"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// nodes lists the nodes of the cluster. A manager that may not read them assumes the node that the template names.
func (r *Reconciler) nodes(ctx context.Context, template v1alpha1.PodTemplate) ([]corev1.Node, error) {
	if !r.WithoutClusterReads {
		var nodes corev1.NodeList
		if err := r.Client.List(ctx, &nodes); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		return nodes.Items, nil
	}
	name := template.NodeSelector[corev1.LabelHostname]
	if name == "" {
		return nil, nil
	}
	return []corev1.Node{{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: template.NodeSelector},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}}, nil
}

// namedClasses are the StorageClasses that the targets name, for a manager that may not read StorageClasses.
func namedClasses(slots []experiment.Slot) (classes []experiment.ClassState) {
	for _, slot := range slots {
		if class := slot.Target.StorageClass; class != nil && class.Name != "" {
			classes = append(classes, experiment.ClassState{Name: class.Name})
		}
	}
	return classes
}

// fits says whether pods of the template could run on a node now. The scheduler decides. This only prevents a benchmark from
// choosing a node that can never run them.
func fits(node *corev1.Node, template v1alpha1.PodTemplate) bool {
	if node.Spec.Unschedulable || !node.DeletionTimestamp.IsZero() || !ready(node) {
		return false
	}
	if !labels.SelectorFromSet(template.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}
	for i := range node.Spec.Taints {
		if !tolerated(&node.Spec.Taints[i], template.Tolerations) {
			return false
		}
	}
	return true
}

// chosen says whether all zfs targets of an experiment may use a node: it matches their selectors and has an agent.
func chosen(node *corev1.Node, slots []experiment.Slot) bool {
	return !slices.ContainsFunc(slots, func(slot experiment.Slot) bool {
		target := slot.Target.ZFS
		return target != nil && (node.Labels[v1alpha1.LabelLabNode] != "true" ||
			!labels.SelectorFromSet(target.Nodes.MatchLabels).Matches(labels.Set(node.Labels)))
	})
}

func ready(node *corev1.Node) bool {
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

func splitName(name string) (types.NamespacedName, error) {
	namespace, object, found := strings.Cut(name, "/")
	if !found {
		return types.NamespacedName{}, fmt.Errorf("the annotation %s is %q instead of NAMESPACE/NAME: delete that Lease if its benchmark is gone",
			v1alpha1.AnnotationHolder, name)
	}
	return types.NamespacedName{Namespace: namespace, Name: object}, nil
}
