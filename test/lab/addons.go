package lab

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The storage classes of a lab.
const (
	PathClass  = "lab-path"
	BlockClass = "lab-block"
)

// The labels of a block volume that say where its disk is.
const (
	labelNode = "storagebench.dev/lab-node"
	labelDisk = "storagebench.dev/lab-disk"
)

const fieldOwner = client.FieldOwner("storagebench-lab")

//go:embed addons/*.yaml
var manifests embed.FS

// applyAddons registers the nodes and applies DNS, storage classes and block volumes.
func (l *Lab) applyAddons(ctx context.Context, cluster client.Client, s *state, log io.Writer) error {
	for n := 1; n <= s.Options.Nodes; n++ {
		if err := registerNode(ctx, cluster, s, n); err != nil {
			return err
		}
	}
	objects, err := readManifests()
	if err != nil {
		return err
	}
	for n := 1; n <= s.Options.Nodes; n++ {
		for _, volume := range blockVolumes(s, n) {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(volume)
			if err != nil {
				return err
			}
			unstructured.RemoveNestedField(content, "status")
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
	for _, object := range objects {
		if err := cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		_, _ = fmt.Fprintf(log, "applied %s %s\n", object.GetKind(), object.GetName())
	}
	return nil
}

func readManifests() ([]*unstructured.Unstructured, error) {
	files, err := manifests.ReadDir("addons")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := manifests.ReadFile("addons/" + file.Name())
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", file.Name(), err)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// blockVolumes returns the PersistentVolumes of a node's volume disks. They are retained, because the keeper takes them back.
func blockVolumes(s *state, n int) []*corev1.PersistentVolume {
	name := nodeName(n)
	var volumes []*corev1.PersistentVolume
	for _, disk := range s.Options.Volumes {
		block := corev1.PersistentVolumeBlock
		volumes = append(volumes, &corev1.PersistentVolume{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
			ObjectMeta: metav1.ObjectMeta{Name: BlockClass + "-" + name + "-" + disk.Name,
				Labels: map[string]string{labelNode: name, labelDisk: disk.Name}},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: BlockClass, VolumeMode: &block, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity:    corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(disk.SizeBytes, resource.BinarySI)},
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					Local: &corev1.LocalVolumeSource{Path: "/dev/disk/by-id/virtio-" + name + "-" + disk.Name},
				},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
						Values: []string{name}}},
				}}}},
			},
		})
	}
	return volumes
}

// waitAddons waits until DNS and the provisioner are available.
func (l *Lab) waitAddons(ctx context.Context, cluster client.Client, log io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return l.poll(ctx, func() (bool, string, error) {
		var deployments appsv1.DeploymentList
		if err := cluster.List(ctx, &deployments, client.InNamespace("")); err != nil {
			return false, "", err
		}
		for _, deployment := range deployments.Items {
			if deployment.Name != "coredns" && deployment.Name != "local-path-provisioner" {
				continue
			}
			status := deployment.Status
			if status.ObservedGeneration < deployment.Generation || status.UpdatedReplicas == 0 || status.AvailableReplicas == 0 {
				said := fmt.Sprintf("deployment %s/%s is not available", deployment.Namespace, deployment.Name)
				_, _ = fmt.Fprintln(log, said)
				return false, said, nil
			}
		}
		return true, "", nil
	})
}
