package volume

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Provisioner says what a volume of a run is made of.
type Provisioner interface {
	// Dataset that the agent makes on the volume's pool; only asked of volumes on pools.
	Dataset(volume RunVolume) v1alpha1.PoolDataset
	// Objects by which the workload gets the volume, in the order in which they are made; the claim is the last.
	Objects(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site) ([]client.Object, error)
	// Behind is an empty object of the kind that stands behind the claim in no namespace, with the name of the pool. It goes after the
	// claim. Nil if there is none.
	Behind() client.Object
}

// Site is what the objects of a volume need to know besides the run.
type Site struct {
	// Node of the run, for volumes on pools.
	Node *corev1.Node
	// PoolBytes is the size of the volume's pool.
	PoolBytes int64
	// Labels of objects in the run's namespace, ClusterLabels of those in none.
	Labels, ClusterLabels map[string]string
	// Owner of what is in the run's namespace.
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

// Driven says that the driver of OpenEBS makes a volume, on a pool of the agent.
func Driven(volume RunVolume) bool {
	return volume.Dataset != nil && volume.Dataset.Provisioner == ProvisionerOpenEBS
}

// anyClass volumes come from a StorageClass of the user's.
type anyClass struct{}

// Dataset is none: nothing is known of what is below such a volume.
func (anyClass) Dataset(RunVolume) v1alpha1.PoolDataset { return v1alpha1.PoolDataset{} }

// Objects are the claim alone.
func (anyClass) Objects(run *v1alpha1.BenchmarkRun, _ RunVolume, site Site) ([]client.Object, error) {
	return []client.Object{Claim(run, site.Labels, site.Owner)}, nil
}

// Behind is nothing of the run's.
func (anyClass) Behind() client.Object { return nil }

// The provisioners of datasets.
const (
	ProvisionerLocal   = "Local"
	ProvisionerOpenEBS = "OpenEBS"
)
