package benchmark

import (
	"context"
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/internal/experiment"

	corev1 "k8s.io/api/core/v1"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// observeNodesAndLeases finds the nodes that fit, their holders and their queues.
func (r *Reconciler) observeNodesAndLeases(ctx context.Context, observed *observation) error {
	uid := string(observed.Benchmark.UID)
	observed.Leases = r.Line.Leases(uid)
	if err := r.observeNodes(ctx, observed); err != nil {
		return err
	}
	if r.Limits.PerNamespace() {
		observed.Neighbours = r.Line.Neighbours(uid, observed.Benchmark.Namespace)
	}
	wanted := experiment.ChosenNodes(observed.State)
	observed.Waiting = r.Line.Ahead(uid, wanted)
	next := experiment.Next(observed.State)
	for _, node := range wanted {
		lease, held, known := r.Line.Lease(node)
		if !held || lease.Holder == uid {
			continue
		}
		if !known && next {
			var err error
			if lease.Vanished, lease.Abandoned, err = r.abandoned(ctx, &lease); err != nil {
				return err
			}
		}
		observed.Leases = append(observed.Leases, lease)
	}
	return nil
}

// observeNodes finds the nodes that fit. If the benchmark has already chosen its nodes, it only checks whether these still fit.
func (r *Reconciler) observeNodes(ctx context.Context, observed *observation) error {
	if r.WithoutClusterReads {
		if node := experiment.AssumedNode(observed.Benchmark.Spec.PodTemplate); node != nil {
			r.offer(observed, node)
		}
		return nil
	}
	for _, name := range experiment.Wish(observed.State) {
		var node corev1.Node
		if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &node); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read node %s: %w", name, err)
		} else if err == nil {
			r.offer(observed, &node)
		}
	}
	if !experiment.Chooses(observed.State) {
		return nil
	}
	observed.Nodes = nil
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.MatchingLabels(observed.Benchmark.Spec.PodTemplate.NodeSelector),
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		r.offer(observed, &nodes.Items[i])
	}
	return nil
}

// offer adds a node that fits.
func (r *Reconciler) offer(observed *observation, node *corev1.Node) {
	if experiment.Fits(node, observed.Benchmark.Spec.PodTemplate, observed.Slots) {
		observed.Nodes = append(observed.Nodes, experiment.NodeState{Name: node.Name,
			Load: r.Line.Length(string(observed.Benchmark.UID), node.Name)})
	}
}

func splitName(name string) (types.NamespacedName, error) {
	namespace, object, found := strings.Cut(name, "/")
	if !found {
		return types.NamespacedName{}, fmt.Errorf("the annotation %s is %q instead of NAMESPACE/NAME: delete that Lease if its benchmark is gone",
			v1alpha1.AnnotationHolder, name)
	}
	return types.NamespacedName{Namespace: namespace, Name: object}, nil
}
