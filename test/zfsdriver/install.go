package zfsdriver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Install creates the objects that an installation of the driver creates, and waits until its kinds are served. The CSIDriver comes last,
// because it shows others that the driver is there.
func Install(ctx context.Context, cluster client.Client) error {
	kinds, err := crds()
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := client.IgnoreAlreadyExists(cluster.Create(ctx, kind)); err != nil {
			return fmt.Errorf("make %s: %w", kind.GetName(), err)
		}
	}
	for _, kind := range []string{"ZFSVolume", "ZFSNode"} {
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(object(kind + "List").GroupVersionKind())
			return cluster.List(ctx, list) == nil, nil // a kind is served a moment after it is made
		})
		if err != nil {
			return fmt.Errorf("the kind %s is not served: %w", kind, err)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if err := client.IgnoreAlreadyExists(cluster.Create(ctx, namespace)); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(cluster.Create(ctx, csiDriver()))
}

func csiDriver() *storagev1.CSIDriver {
	return &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: storagev1.CSIDriverSpec{
			AttachRequired: ptr.To(false), PodInfoOnMount: ptr.To(true), FSGroupPolicy: ptr.To(storagev1.FileFSGroupPolicy),
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent},
		},
	}
}

// Remove deletes the objects that Install created, with all volumes and nodes of the driver.
func Remove(ctx context.Context, cluster client.Client) error {
	kinds, err := crds()
	if err != nil {
		return err
	}
	failures := []error{client.IgnoreNotFound(cluster.Delete(ctx, csiDriver()))}
	for _, kind := range kinds {
		failures = append(failures, client.IgnoreNotFound(cluster.Delete(ctx, kind)))
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	return errors.Join(append(failures, client.IgnoreNotFound(cluster.Delete(ctx, namespace)))...)
}

// Release removes the finalizers of all ZFSVolumes and deletes them, whatever happens to their datasets.
func Release(ctx context.Context, cluster client.Client) error {
	volumes := &unstructured.UnstructuredList{}
	volumes.SetGroupVersionKind(object("ZFSVolumeList").GroupVersionKind())
	if err := cluster.List(ctx, volumes); err != nil {
		return err
	}
	var failures []error
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		volume.SetFinalizers(nil)
		failures = append(failures, client.IgnoreNotFound(cluster.Update(ctx, volume)), client.IgnoreNotFound(cluster.Delete(ctx, volume)))
	}
	return errors.Join(failures...)
}

func crds() (kinds []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(CRDs), 4096)
	for {
		kind := &unstructured.Unstructured{}
		switch err := decoder.Decode(kind); {
		case errors.Is(err, io.EOF):
			return kinds, nil
		case err != nil:
			return nil, fmt.Errorf("the kinds of the driver: %w", err)
		}
		kinds = append(kinds, kind)
	}
}
