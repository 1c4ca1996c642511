package sim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateNodes creates the nodes, Ready and with the fake kubelet as theirs. Nodes that exist already, created by a parallel test, are taken
// over.
func (c *Cluster) CreateNodes(ctx context.Context) error {
	for _, name := range c.options.Nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}}}
		if err := c.client.Create(ctx, node); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make node %s: %w", name, err)
		}
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return c.readyNode(ctx, name) }); err != nil {
			return fmt.Errorf("make node %s ready: %w", name, err)
		}
	}
	return nil
}

// readyNode plays the components that make a new node Ready. Admission taints every new node; the node controller removes the taint.
func (c *Cluster) readyNode(ctx context.Context, name string) error {
	var node corev1.Node
	if err := c.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return err
	}
	kept := []corev1.Taint{}
	for _, taint := range node.Spec.Taints {
		if taint.Key != corev1.TaintNodeNotReady {
			kept = append(kept, taint)
		}
	}
	if len(kept) != len(node.Spec.Taints) {
		node.Spec.Taints = kept
		if err := c.client.Update(ctx, &node); err != nil {
			return err
		}
	}
	if node.Status.DaemonEndpoints.KubeletEndpoint.Port == c.kubelet.port() {
		return nil
	}
	now := metav1.NewTime(c.options.Now())
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status = corev1.NodeStatus{
		Capacity: resources, Allocatable: resources,
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: c.kubelet.port()}},
		NodeInfo: corev1.NodeSystemInfo{KernelVersion: "6.12.0-sim", OperatingSystem: "linux", Architecture: "amd64",
			KubeletVersion: "v1.36.0-sim", BootID: string(uuid.NewUUID())},
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
		}},
	}
	return c.client.Status().Update(ctx, &node)
}

// resetNode reboots the node of a running pod, and lets the pod wait to be started a second time.
func (p *pass) resetNode(ctx context.Context, pod *corev1.Pod) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var node corev1.Node
		if err := p.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node); err != nil {
			return err
		}
		node.Status.NodeInfo.BootID = string(uuid.NewUUID())
		return p.client.Status().Update(ctx, &node)
	})
	if err != nil {
		return fmt.Errorf("reset node %s: %w", pod.Spec.NodeName, err)
	}
	p.finished(pod, -1)
	p.scripts[pod.UID] = Script{}
	return p.waiting(ctx, pod, "ContainerCreating", "")
}

// CreateStorageClass makes a class that provisions when a pod uses the claim, or leaves one of this name as it is. The API
// server needs a moment to notice a default class: claims made within some ten milliseconds may not get it.
func (c *Cluster) CreateStorageClass(ctx context.Context, name string, isDefault bool) error {
	return c.CreateStorageClassWithMode(ctx, name, isDefault, storagev1.VolumeBindingWaitForFirstConsumer)
}

// CreateStorageClassWithMode is like CreateStorageClass, with a binding mode.
func (c *Cluster) CreateStorageClassWithMode(ctx context.Context, name string, isDefault bool, mode storagev1.VolumeBindingMode) error {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: Provisioner, VolumeBindingMode: &mode,
		ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimDelete),
	}
	if isDefault {
		class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	}
	if err := c.client.Create(ctx, class); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make StorageClass %s: %w", name, err)
	}
	return nil
}
