package run

import (
	"context"
	"fmt"
	"path"

	"github.com/storagebench/storagebench/internal/runs"

	corev1 "k8s.io/api/core/v1"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
)

const filesName = "files"

// mountFile mounts the file of a phase into a pod, read-only, and no other key of its ConfigMap. The path of the file does not depend on
// the key.
func mountFile(pod *corev1.PodSpec, file *v1alpha1.ConfigMapKey) {
	if file == nil {
		return
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: filesName, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: file.Name},
			Items:                []corev1.KeyToPath{{Key: file.Key, Path: path.Base(workload.PhaseFile)}},
			DefaultMode:          new(int32(0o444)),
		}}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: filesName, MountPath: workload.FilesPath, ReadOnly: true})
}

// observeFile finds out why the pod of a phase waits for its file, which the kubelet reports only in an event. The file is read live,
// because the cache holds only the operator's own ConfigMaps, and only until the pod has started.
func (r *Reconciler) observeFile(ctx context.Context, state *runs.State) error {
	for i, spec := range state.Run.Spec.Phases {
		traits, _ := workload.PhaseTraits(&spec)
		file := traits.File
		if file == nil || !state.Phases[i].Starting() {
			continue
		}
		var found corev1.ConfigMap
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: state.Run.Namespace, Name: file.Name}, &found)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read ConfigMap %s/%s: %w", state.Run.Namespace, file.Name, err)
		}
		state.Phases[i].FileProblem = runs.FileProblem(file, &found, err == nil)
	}
	return nil
}
