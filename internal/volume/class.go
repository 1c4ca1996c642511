package volume

import (
	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// class provides the volumes of storageClass targets, from the user's StorageClass. The storage behind them is unknown.
type class struct{}

// Driver is nil: the driver of the StorageClass is not known.
func (class) Driver() *Driver { return nil }

// Refuses returns "": the StorageClass decides what is possible.
func (class) Refuses(RunVolume, []v1alpha1.Phase) string { return "" }

// Keeps is false: each run has a new claim.
func (class) Keeps() bool { return false }

// Shares is false: there is no pool.
func (class) Shares() bool { return false }

// Dataset is empty: there is no pool.
func (class) Dataset(RunVolume) v1alpha1.PoolDataset { return v1alpha1.PoolDataset{} }

// Objects returns only the claim. The run owns it, so that it is deleted with the run even without the operator.
func (class) Objects(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site) ([]client.Object, error) {
	target := run.Spec.Target.StorageClass
	return []client.Object{&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.ClaimName(run, volume.Name), Namespace: run.Namespace, Labels: site.Labels,
			OwnerReferences: []metav1.OwnerReference{site.Owner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &target.Name,
			VolumeMode:       &target.VolumeMode,
			AccessModes:      []corev1.PersistentVolumeAccessMode{target.AccessMode},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: target.Size.Quantity},
			},
		},
	}}, nil
}

// BackingObject is nil: the run owns nothing behind the claim.
func (class) BackingObject() client.Object { return nil }

// BindsFirst is false: a StorageClass may wait for the first consumer.
func (class) BindsFirst() bool { return false }

// Made is empty: the dataset is unknown.
func (class) Made(RunVolume, *v1alpha1.BenchmarkPool, string) Made { return Made{} }
