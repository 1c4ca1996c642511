// Package volume builds the volumes for workloads.
package volume

import (
	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Claim is the PersistentVolumeClaim of a run on a storageClass target. The run owns it, so that it is deleted with the run even
// without the operator.
func Claim(run *v1alpha1.BenchmarkRun, labels map[string]string, owner metav1.OwnerReference) *corev1.PersistentVolumeClaim {
	target := run.Spec.Target.StorageClass
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.VolumeName(run.Name), Namespace: run.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &target.Name,
			VolumeMode:       &target.VolumeMode,
			AccessModes:      []corev1.PersistentVolumeAccessMode{target.AccessMode},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: target.Size.Quantity},
			},
		},
	}
}

// State reads what the planner needs from a claim of the run with the given UID. Nil means that there is none.
func State(claim *corev1.PersistentVolumeClaim, runUID, problem string) VolumeState {
	if claim == nil {
		return VolumeState{}
	}
	if owner := metav1.GetControllerOf(claim); owner == nil || string(owner.UID) != runUID {
		return VolumeState{Foreign: true}
	}
	return VolumeState{
		Exists:   true,
		Deleting: !claim.DeletionTimestamp.IsZero(),
		Bound:    claim.Status.Phase == corev1.ClaimBound,
		Lost:     claim.Status.Phase == corev1.ClaimLost,
		Problem:  problem,
	}
}

// Join combines the volumes of a run: it is ready once all exist, and nothing is left once none does.
func Join(states []VolumeState) VolumeState {
	joined := VolumeState{Exists: true, Bound: true}
	for _, state := range states {
		joined.Foreign = joined.Foreign || state.Foreign
		joined.Exists, joined.Bound = joined.Exists && state.Exists, joined.Bound && state.Bound
		joined.Some, joined.Deleting, joined.Lost = joined.Some || state.Left(), joined.Deleting || state.Deleting, joined.Lost || state.Lost
		joined.Driven = joined.Driven || state.Driven
		if joined.Problem == "" {
			joined.Problem = state.Problem
		}
		if joined.Unwatched == "" {
			joined.Unwatched = state.Unwatched
		}
	}
	return joined
}
