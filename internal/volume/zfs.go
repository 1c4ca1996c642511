package volume

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Pool is the BenchmarkPool of a volume of a run. It is cluster-scoped, so the run cannot own it: the run's finalizer deletes it,
// and its labels name its run.
func Pool(run *v1alpha1.BenchmarkRun, volume RunVolume, labels map[string]string) *v1alpha1.BenchmarkPool {
	name := naming.RunPoolName(run, volume.Name)
	if target := run.Spec.Target.ZFS; naming.KeepsPools(target) {
		labels = maps.Clone(labels)
		labels[v1alpha1.LabelReset] = string(target.Reset)
	}
	return &v1alpha1.BenchmarkPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: v1alpha1.BenchmarkPoolSpec{
			NodeName: run.Spec.NodeName, PoolName: v1alpha1.PoolName(name), PoolTemplate: *volume.Pool.DeepCopy(),
			Datasets: []v1alpha1.PoolDataset{Of(volume).Dataset(volume)}, Drift: "Report", DeletionPolicy: v1alpha1.DeletionDestroy,
			Namespace: run.Namespace,
		},
	}
}

// local volumes are datasets of the agent, which the kubelet mounts as local PersistentVolumes.
type local struct{}

// Dataset is the dataset for the workload.
func (local) Dataset(volume RunVolume) v1alpha1.PoolDataset {
	dataset := v1alpha1.PoolDataset{Path: naming.RunDataset, Type: volume.Dataset.Type, Properties: v1alpha1.Properties{}}
	maps.Copy(dataset.Properties, volume.Dataset.Properties)
	if volume.Dataset.Type == naming.DatasetVolume {
		dataset.Size = volume.Dataset.Size
		return dataset
	}
	dataset.Mounted = true
	if _, limited := dataset.Properties["refquota"]; volume.Dataset.Size != nil && !limited {
		dataset.Properties["refquota"] = v1alpha1.PropertyValue(strconv.FormatInt(volume.Dataset.Size.Value(), 10))
	}
	return dataset
}

// Objects are a PersistentVolume for one claim, and that claim.
func (local) Objects(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site) ([]client.Object, error) {
	hostname := site.Node.Labels[corev1.LabelHostname]
	if hostname == "" {
		return nil, fmt.Errorf("node %s has no label %s, which a local PersistentVolume needs", site.Node.Name, corev1.LabelHostname)
	}
	return []client.Object{
		OnNode(run, volume, site.ClusterLabels, hostname, site.PoolBytes),
		OnNodeClaim(run, volume, site.Labels, site.Owner, site.PoolBytes),
	}, nil
}

// Behind is the PersistentVolume.
func (local) Behind() client.Object { return &corev1.PersistentVolume{} }

// OnNode is the PersistentVolume for a run's dataset on the node. It is bound to one claim from the start. No other claim gets it,
// and the data is deleted with the pool, not with it.
func OnNode(run *v1alpha1.BenchmarkRun, volume RunVolume, labels map[string]string, hostname string,
	poolBytes int64) *corev1.PersistentVolume {
	name := naming.RunPoolName(run, volume.Name)
	local := &corev1.LocalVolumeSource{Path: naming.VolumePath(name, naming.RunDataset)}
	if volume.Dataset.Type == naming.DatasetVolume {
		local.Path = naming.VolumeDevice(name, naming.RunDataset)
		if volume.Dataset.FSType != "" {
			local.FSType = ptr.To(volume.Dataset.FSType)
		}
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size(volume, poolBytes)},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: local},
			VolumeMode:                    ptr.To(Mode(volume)),
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: run.Namespace,
				Name: naming.ClaimName(run, volume.Name)},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{hostname}}},
			}}}},
		},
	}
}

// OnNodeClaim is the claim for it. No class, because nothing is provisioned.
func OnNodeClaim(run *v1alpha1.BenchmarkRun, volume RunVolume, labels map[string]string, owner metav1.OwnerReference,
	poolBytes int64) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.ClaimName(run, volume.Name), Namespace: run.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(""), VolumeName: naming.RunPoolName(run, volume.Name), VolumeMode: ptr.To(Mode(volume)),
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size(volume, poolBytes)}},
		},
	}
}

// Mode is the volume mode of a volume of a zfs target.
func Mode(volume RunVolume) corev1.PersistentVolumeMode {
	if volume.Dataset.Type == naming.DatasetVolume && volume.Dataset.FSType == "" {
		return corev1.PersistentVolumeBlock
	}
	return corev1.PersistentVolumeFilesystem
}

// size of a volume: as requested, or the whole pool.
func size(volume RunVolume, poolBytes int64) resource.Quantity {
	if volume.Dataset.Size != nil {
		return volume.Dataset.Size.Quantity
	}
	return *resource.NewQuantity(poolBytes, resource.BinarySI)
}

// PoolsState combines the states of the pools of a run, in the order of its volumes. Nil is one that does not exist. The
// PersistentVolumes are those that the run's claims are bound to, by volume.
func PoolsState(run *v1alpha1.BenchmarkRun, pools []*v1alpha1.BenchmarkPool, persistent map[string]string) Pools {
	state := Pools{Needed: true, Exist: true, Ready: true, Datasets: map[string]string{}, Kept: naming.KeepsPools(run.Spec.Target.ZFS)}
	for i, wanted := range RunVolumes(run) {
		pool := pools[i]
		if pool == nil {
			state.Exist, state.Ready = false, false
			continue
		}
		if pool.Labels[v1alpha1.LabelRunUID] != string(run.UID) && KeptFor(pool, run) {
			addEarlier(&state, pool)
			continue
		}
		if pool.Labels[v1alpha1.LabelRunUID] != string(run.UID) {
			state.Exist, state.Ready, state.Foreign = false, false, naming.RunPoolName(run, wanted.Name)
			continue
		}
		state.Some = true
		state.Deleting = state.Deleting || !pool.DeletionTimestamp.IsZero()
		reason, message, ready, broken := poolCondition(pool)
		if state.Kept {
			addKept(&state, wanted, pool)
			if ready && !handedOn(run, pool) {
				reason, message, ready = v1alpha1.ReasonPoolNotReady,
					"its agent has not made the dataset ready for this run: is it of the same release as the manager?", false
			}
		}
		state.Ready, state.Broken = state.Ready && ready, state.Broken || broken
		state.Volumes = append(state.Volumes, volumeStatus(wanted, pool))
		if Driven(wanted) {
			readDriven(&state, wanted, pool, persistent[wanted.Name])
		}
		if !ready && state.Reason == "" {
			state.Reason, state.Message = reason, "BenchmarkPool "+pool.Name+": "+message
		}
	}
	if len(state.Unread) > 0 {
		state.Volumes = nil // the values in effect are not known yet
	}
	return state
}

// poolCondition reads the agent's condition of a pool.
func poolCondition(pool *v1alpha1.BenchmarkPool) (reason, message string, ready, broken bool) {
	condition := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case condition == nil:
		return v1alpha1.ReasonPoolNotReady, "no agent has reconciled it: is an agent running on node " + pool.Spec.NodeName +
			" (label storagebench.dev/lab=true)?", false, false
	case condition.ObservedGeneration != pool.Generation:
		return v1alpha1.ReasonPoolNotReady, "its agent has not reconciled it yet", false, false
	}
	return condition.Reason, condition.Message, condition.Status == metav1.ConditionTrue, meta.IsStatusConditionTrue(pool.Status.Conditions,
		v1alpha1.ConditionStalled)
}

// maxRunProperties is the limit of the API.
const maxRunProperties = 64

// volumeStatus is the status of a pool for a volume of a run.
func volumeStatus(wanted RunVolume, pool *v1alpha1.BenchmarkPool) v1alpha1.RunVolumeStatus {
	properties := slices.DeleteFunc(slices.Clone(pool.Status.Properties), func(p v1alpha1.EffectiveProperty) bool {
		return p.Name == naming.PropertyRun
	})
	if Driven(wanted) { // properties of the parent apply only as far as the dataset has them too
		parent := naming.PoolName(pool) + "/" + string(naming.RunParent)
		properties = slices.DeleteFunc(slices.Clone(properties), func(p v1alpha1.EffectiveProperty) bool { return p.Dataset == parent })
	}
	return v1alpha1.RunVolumeStatus{
		Name: v1alpha1.PhaseName(wanted.Name), Pool: pool.Name, Provisioner: wanted.Dataset.Provisioner, GUID: pool.Status.GUID,
		KeptFrom: pool.Annotations[v1alpha1.AnnotationKeptFrom], ZFSVersion: pool.Status.ZFSVersion,
		Properties: properties[:min(len(properties), maxRunProperties)],
	}
}
