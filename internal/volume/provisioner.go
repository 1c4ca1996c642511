package volume

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Provisioner defines the objects behind a volume of a run.
type Provisioner interface {
	// Dataset that the agent creates on the volume's pool. Only for volumes on pools.
	Dataset(volume RunVolume) v1alpha1.PoolDataset
	// Objects that provide the volume to the workload, in the order of creation. The claim is the last.
	Objects(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site) ([]client.Object, error)
	// Behind is an empty object of the cluster-scoped kind behind the claim, with the name of the pool. It is deleted after the
	// claim. Nil if there is none.
	Behind() client.Object
}

// Site is the context of a volume besides the run.
type Site struct {
	// Node of the run, for volumes on pools.
	Node *corev1.Node
	// PoolBytes is the size of the volume's pool.
	PoolBytes int64
	// Labels of objects in the run's namespace, ClusterLabels of cluster-scoped objects.
	Labels, ClusterLabels map[string]string
	// Owner of the objects in the run's namespace.
	Owner metav1.OwnerReference
}

// Of is the provisioner of a volume.
func Of(volume RunVolume) Provisioner {
	switch {
	case volume.Pool == nil:
		return anyClass{}
	case Driven(volume):
		return driven{}
	}
	return local{}
}

// Driven says that the OpenEBS driver creates a volume, on a pool of the agent.
func Driven(volume RunVolume) bool {
	return volume.Dataset != nil && volume.Dataset.Provisioner == ProvisionerOpenEBS
}

// anyClass volumes come from a StorageClass of the user.
type anyClass struct{}

// Dataset is none: the storage below such a volume is unknown.
func (anyClass) Dataset(RunVolume) v1alpha1.PoolDataset { return v1alpha1.PoolDataset{} }

// Objects are only the claim.
func (anyClass) Objects(run *v1alpha1.BenchmarkRun, _ RunVolume, site Site) ([]client.Object, error) {
	return []client.Object{Claim(run, site.Labels, site.Owner)}, nil
}

// Behind is nil: the run owns nothing there.
func (anyClass) Behind() client.Object { return nil }

// The provisioners of datasets.
const (
	ProvisionerLocal   = "Local"
	ProvisionerOpenEBS = "OpenEBS"
)
