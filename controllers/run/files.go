package run

import (
	"context"
	"fmt"
	"path"

	"github.com/storagebench/storagebench/internal/runs"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
)

const filesName = "files"

// mountFile gives a pod the file that its phase names, read-only, and no other key of that ConfigMap. It has the same path
// whatever the key is called.
func mountFile(pod *corev1.PodSpec, file *v1alpha1.ConfigMapKey) {
	if file == nil {
		return
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: filesName, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: file.Name},
			Items:                []corev1.KeyToPath{{Key: file.Key, Path: path.Base(workload.PhaseFile)}},
			DefaultMode:          ptr.To[int32](0o444),
		}}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: filesName, MountPath: workload.FilesPath, ReadOnly: true})
}

// observeFile says why the pod of a phase waits for its file: the kubelet tells that only in an event. It is asked for live,
// because the cache holds only ConfigMaps of the operator's own, and only while the pod has not started.
func (r *Reconciler) observeFile(ctx context.Context, state *runs.State) error {
	for i, spec := range state.Run.Spec.Phases {
		traits, _ := workload.PhaseTraits(&spec)
		phase, file := &state.Phases[i], traits.File
		if file == nil || !phase.Job.Exists || phase.Pod.Started != nil || phase.Pod.Ended != nil || phase.Stored != nil {
			continue
		}
		var found corev1.ConfigMap
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: state.Run.Namespace, Name: file.Name}, &found)
		switch _, isText := found.Data[file.Key]; {
		case apierrors.IsNotFound(err):
			phase.FileProblem = fmt.Sprintf("ConfigMap %s, which the phase names, does not exist: make it with the key %s", file.Name, file.Key)
		case err != nil:
			return fmt.Errorf("read ConfigMap %s/%s: %w", state.Run.Namespace, file.Name, err)
		case !isText && found.BinaryData[file.Key] == nil:
			phase.FileProblem = fmt.Sprintf("ConfigMap %s has no key %s, which the phase names: add it", file.Name, file.Key)
		}
	}
	return nil
}
