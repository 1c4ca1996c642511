package volume

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// ProvisionerLocal is the provisioner whose volumes are datasets of the agent, which the kubelet mounts as local PersistentVolumes.
const ProvisionerLocal = "Local"

type local struct{}

// Driver is nil: no driver is needed.
func (local) Driver() *Driver { return nil }

// Refuses returns "": the agent can set any property.
func (local) Refuses(RunVolume, []v1alpha1.Phase) string { return "" }

// Keeps is true: the agent resets its own datasets.
func (local) Keeps() bool { return true }

// Shares is true: each volume is a dataset of the agent.
func (local) Shares() bool { return true }

// Dataset is the dataset for the workload.
func (local) Dataset(volume RunVolume) v1alpha1.PoolDataset {
	dataset := v1alpha1.PoolDataset{Path: naming.RunDataset(volume.Name), Type: volume.Dataset.Type, Properties: v1alpha1.Properties{}}
	maps.Copy(dataset.Properties, volume.Dataset.Properties)
	if volume.Dataset.Type == naming.DatasetVolume {
		dataset.Size = volume.Dataset.Size
		return dataset
	}
	dataset.Mounted = true
	if volume.MadeIn != "" {
		dataset.Awaited, dataset.Properties = true, nil
		return dataset
	}
	if _, limited := dataset.Properties["refquota"]; volume.Dataset.Size != nil && !limited {
		dataset.Properties["refquota"] = v1alpha1.PropertyValue(strconv.FormatInt(volume.Dataset.Size.Value(), 10))
	}
	return dataset
}

// Objects returns a PersistentVolume for one claim, and that claim.
func (local) Objects(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site) ([]client.Object, error) {
	hostname := site.Node.Labels[corev1.LabelHostname]
	if hostname == "" {
		return nil, fmt.Errorf("node %s has no label %s, which a local PersistentVolume needs", site.Node.Name, corev1.LabelHostname)
	}
	claim := claimOn(run, volume, site, "", size(volume, site.PoolBytes))
	claim.Spec.VolumeName = naming.RunPoolName(run, volume.Name)
	return []client.Object{onNode(run, volume, site, hostname), claim}, nil
}

// BackingObject is the PersistentVolume.
func (local) BackingObject() client.Object { return &corev1.PersistentVolume{} }

// BindsFirst is false: claim and PersistentVolume name each other from the start.
func (local) BindsFirst() bool { return false }

// Made returns the dataset of the agent. Its pool is Ready only if the dataset is as requested. A dataset that an operation makes exists
// once the agent reports it.
func (p local) Made(volume RunVolume, pool *v1alpha1.BenchmarkPool, _ string) Made {
	made := Made{Dataset: datasetOn(pool, p.Dataset(volume).Path)}
	if volume.MadeIn != "" && !slices.ContainsFunc(pool.Status.Properties, func(is v1alpha1.EffectiveProperty) bool {
		return is.Dataset == made.Dataset && is.Name == naming.PropertyOperation
	}) {
		made.Dataset = ""
	}
	return made
}

// onNode returns the PersistentVolume for a run's dataset on the node. It is bound to one claim from the start, so that no other claim gets
// it. The data is deleted with the pool, not with the PersistentVolume.
func onNode(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site, hostname string) *corev1.PersistentVolume {
	name, pool := naming.RunPoolName(run, volume.Name), naming.RunPoolName(run, volume.PoolOf)
	local := &corev1.LocalVolumeSource{Path: naming.VolumePath(pool, naming.RunDataset(volume.Name))}
	if volume.Dataset.Type == naming.DatasetVolume {
		local.Path = naming.VolumeDevice(pool, naming.RunDataset(volume.Name))
		if volume.Dataset.FSType != "" {
			local.FSType = new(volume.Dataset.FSType)
		}
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: site.ClusterLabels},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size(volume, site.PoolBytes)},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: local},
			VolumeMode:                    new(Mode(volume)),
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: run.Namespace,
				Name: naming.ClaimName(run, volume.Name)},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{hostname}}},
			}}}},
		},
	}
}
