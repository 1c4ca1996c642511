package run

import (
	"context"
	"errors"
	"path"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/workload"
)

const endName = "end"

// mountEnd mounts the ConfigMap that tells the pod of a phase when the operation beside it has ended. The pod starts before that ConfigMap
// exists. There is no subPath, because the kubelet updates only whole volumes.
func mountEnd(pod *corev1.PodSpec, run *v1alpha1.BenchmarkRun, phase *v1alpha1.Phase) {
	if !workload.EndsWithOperation(phase) {
		return
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: endName, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.PhaseEndName(run.Name, phase.Name)},
			Items:                []corev1.KeyToPath{{Key: workload.EndKey, Path: path.Base(workload.EndFile)}},
			DefaultMode:          new(int32(0o444)), Optional: new(true),
		}}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: endName, MountPath: workload.EndPath, ReadOnly: true})
}

// tellEnd creates the ConfigMap that mountEnd mounts. It is deleted with the run. If its name is taken, or a quota or policy refuses it,
// the next reconcile tries again. In the worst case the pod measures for its longest time, which is valid too.
func (r *Reconciler) tellEnd(ctx context.Context, run *v1alpha1.BenchmarkRun, action runs.Action) error {
	labels, phase := runs.Labels(run), run.Spec.Phases[action.Phase].Name
	labels[v1alpha1.LabelPhase] = string(phase)
	err := r.create(ctx, run, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: naming.PhaseEndName(run.Name, phase), Namespace: run.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{ownerReference(run)}},
		Immutable: new(true),
		Data:      map[string]string{workload.EndKey: workload.EndText(string(run.UID), action.EndAt)},
	})
	_, taken := errors.AsType[*takenError](err)
	if _, refused := errors.AsType[*refusedError](err); taken || refused {
		return nil
	}
	return err
}
