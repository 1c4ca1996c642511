package volume

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// driven volumes are created by the ZFS LocalPV driver of OpenEBS, below a dataset of the agent. The StorageClass holds the
// properties that the driver supports; that dataset also holds all inherited ones.
type driven struct{}

// Dataset is the parent of the driver's dataset, with all inherited properties.
func (driven) Dataset(volume RunVolume) v1alpha1.PoolDataset {
	parent := v1alpha1.PoolDataset{Path: naming.RunParent, Type: "Filesystem", Properties: v1alpha1.Properties{}}
	maps.Copy(parent.Properties, volume.Dataset.Properties)
	maps.DeleteFunc(parent.Properties, func(name string, _ v1alpha1.PropertyValue) bool { return !Inherited(name) })
	return parent
}

// Objects are the volume's own StorageClass and the claim.
func (driven) Objects(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site) ([]client.Object, error) {
	id, err := NodeID(site.Node)
	if err != nil {
		return nil, err
	}
	return []client.Object{
		Class(run, volume, site.ClusterLabels, id),
		DrivenClaim(run, volume, site.Labels, site.Owner, site.PoolBytes),
	}, nil
}

// Behind is the StorageClass.
func (driven) Behind() client.Object { return &storagev1.StorageClass{} }

// NodeID is the driver's name for a node.
func NodeID(node *corev1.Node) (string, error) {
	if id := node.Labels[DriverNodeLabel]; id != "" {
		return id, nil
	}
	return "", fmt.Errorf("node %s has no label %s: run the OpenEBS ZFS LocalPV driver there, or write provisioner: Local", node.Name,
		DriverNodeLabel)
}

// Property values that the driver accepts. With others it would not create the volume: those come only from the parent dataset.
var understood = map[string]*regexp.Regexp{
	"recordsize":   regexp.MustCompile(`^[0-9]+[kKmM]?$`),
	"volblocksize": regexp.MustCompile(`.`), // nothing else can set it
	"compression":  regexp.MustCompile(`^(on|off|lzjb|zle|lz4|gzip(-[1-9])?|zstd(-fast|-[1-9]|-1[0-9])?)$`),
	"dedup":        regexp.MustCompile(`^(on|off)$`),
}

// Class is the StorageClass of a volume. It binds immediately and names the node: with WaitForFirstConsumer the claim would also
// wait, up to two minutes, until driver and scheduler have counted the space of the new pool.
func Class(run *v1alpha1.BenchmarkRun, volume RunVolume, labels map[string]string, nodeID string) *storagev1.StorageClass {
	name := naming.RunPoolName(run, volume.Name)
	parameters := map[string]string{"poolname": name + "/" + string(naming.RunParent)}
	for property, accepted := range understood {
		if value := string(volume.Dataset.Properties[property]); value != "" && accepted.MatchString(value) {
			parameters[property] = value
		}
	}
	if volume.Dataset.Type == naming.DatasetVolume {
		delete(parameters, "recordsize")
		// Like those of the agent: with reserved space, unless the reservation is removed.
		_, sparse := volume.Dataset.Properties["refreservation"]
		parameters["thinprovision"] = map[bool]string{true: "yes", false: "no"}[sparse]
		if volume.Dataset.FSType != "" {
			parameters["fstype"] = volume.Dataset.FSType
		}
	} else {
		// A quota would also count snapshots.
		parameters["fstype"], parameters["quotatype"], parameters["thinprovision"] = "zfs", "refquota", "yes"
	}
	return &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: name, Labels: labels},
		Provisioner:       DriverName,
		Parameters:        parameters,
		ReclaimPolicy:     ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
		AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{
			Key: DriverNodeLabel, Values: []string{nodeID}}}}},
	}
}

// DrivenClaim is the claim for such a volume.
func DrivenClaim(run *v1alpha1.BenchmarkRun, volume RunVolume, labels map[string]string, owner metav1.OwnerReference,
	poolBytes int64) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.ClaimName(run, volume.Name), Namespace: run.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(naming.RunPoolName(run, volume.Name)), VolumeMode: ptr.To(Mode(volume)),
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: *resource.NewQuantity(drivenBytes(volume, poolBytes), resource.BinarySI)}},
		},
	}
}

// drivenBytes is the size of a volume of the driver: as requested, or the size of the pool, which is no limit.
func drivenBytes(volume RunVolume, poolBytes int64) int64 {
	asked := size(volume, poolBytes)
	return DriverBytes(asked.Value())
}

// readDriven compares the dataset that the driver created for a volume with the request, once it exists and is reported.
func readDriven(state *Pools, wanted RunVolume, pool *v1alpha1.BenchmarkPool, persistent string) {
	if persistent == "" {
		state.Unread = append(state.Unread, "the dataset of volume "+wanted.Name)
		return
	}
	path := DrivenPath(persistent)
	dataset := naming.PoolName(pool) + "/" + string(path)
	state.Datasets[wanted.Name] = dataset
	differences, read := EffectiveDifferences(wanted, pool, dataset)
	state.Differing = slices.Concat(state.Differing, differences)
	if !read {
		state.Unread = append(state.Unread, dataset)
		state.Unasked = state.Unasked || pool.Annotations[v1alpha1.AnnotationReport] != string(path)
	}
}
