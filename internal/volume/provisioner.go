package volume

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// Provisioner is one way to provide a volume of a run. Each has a file of its own, and all other code uses this interface.
type Provisioner interface {
	// Driver that the cluster must have. Nil if the provisioner needs none.
	Driver() *Driver
	// Refuses says why it cannot provide a volume, or why a phase on that volume is not possible. Empty if all is possible.
	Refuses(volume RunVolume, phases []v1alpha1.Phase) string
	// Keeps says whether its datasets can be kept between runs.
	Keeps() bool
	// Shares says whether a pool with one of its volumes can hold other volumes.
	Shares() bool
	// Dataset that the agent creates on the volume's pool. Only for volumes on pools.
	Dataset(volume RunVolume) v1alpha1.PoolDataset
	// Objects that provide the volume to the workload, in the order of creation. The claim is the last.
	Objects(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site) ([]client.Object, error)
	// Behind is an empty object of the cluster-scoped kind behind the claim, with the name of the pool. It is deleted after the
	// claim. Nil if there is none.
	Behind() client.Object
	// BindsFirst says that the claim is bound, and the dataset compared with the request, before the first pod of the run.
	BindsFirst() bool
	// Made is the dataset that holds the volume. persistent is the PersistentVolume that the claim is bound to, or empty.
	Made(volume RunVolume, pool *v1alpha1.BenchmarkPool, persistent string) Made
}

// Made is the dataset that holds a volume.
type Made struct {
	// Dataset is its ZFS name. Empty while it does not exist.
	Dataset string
	// Unread names it while its properties are not known, if they have to be.
	Unread string
	// Report is the path that the agent has to be asked to report. Empty if that is not needed, or it has been asked.
	Report v1alpha1.DatasetPath
	// Differing describes how it differs from the request.
	Differing []string
}

// Driver is a CSI driver that a provisioner needs, with the kinds of its own objects.
type Driver struct {
	// Name of its CSIDriver.
	Name string
	// Volumes is the kind of its object for a volume, and PoolOf reads the pool from such an object.
	Volumes schema.GroupVersionKind
	PoolOf  func(object map[string]any) (string, error)
	// Nodes is the kind of its object for a node, and NodeID the name of such an object. The driver looks for new pools when it changes.
	Nodes  schema.GroupVersionKind
	NodeID func(node *corev1.Node) (string, error)
	// Title and Install are for messages: its name for people, and how to install it.
	Title, Install string
}

// DriverState is the observed state of a driver in a cluster.
type DriverState struct {
	// Installed says that it can be used.
	Installed bool
	// Lacks is the kind that the cluster does not have although it has the CSIDriver. Empty if there is none.
	Lacks string
}

// Missing says what is missing of a driver, and what to do.
func (d *Driver) Missing(state DriverState) string {
	missing := "the cluster has no CSIDriver " + d.Name
	if state.Lacks != "" {
		missing = fmt.Sprintf("the cluster has CSIDriver %s, but not the kind %s of %s", d.Name, state.Lacks, d.Volumes.GroupVersion())
	}
	return missing + ": " + d.Install
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

// registered are the provisioners by the name in dataset.provisioner, in the order in which they are preferred. The last needs no
// driver.
var registered = []struct {
	name string
	Provisioner
}{
	{ProvisionerOpenEBS, openebs{}},
	{ProvisionerLocal, local{}},
}

// Of is the provisioner of a volume. It is Local if the dataset names none, because its default was not filled in.
func Of(volume RunVolume) Provisioner {
	if volume.Pool == nil {
		return class{}
	}
	name := cmp.Or(volume.Dataset.Provisioner, ProvisionerLocal)
	for _, one := range registered {
		if one.name == name {
			return one.Provisioner
		}
	}
	panic("no provisioner " + name) // a test compares them with the API
}

// Drivers are the drivers of the provisioners, by the name of the provisioner.
func Drivers() map[string]*Driver {
	drivers := map[string]*Driver{}
	for _, one := range registered {
		if driver := one.Driver(); driver != nil {
			drivers[one.name] = driver
		}
	}
	return drivers
}

// Default is the preferred provisioner in a cluster with the given drivers, by the name of the provisioner.
func Default(drivers map[string]DriverState) string {
	for _, one := range registered {
		if one.Driver() == nil || drivers[one.name].Installed {
			return one.name
		}
	}
	return WithoutDriver
}

// WithoutDriver is the provisioner that works in every cluster with an agent.
const WithoutDriver = ProvisionerLocal

// datasetOn is the ZFS name of a dataset on a pool.
func datasetOn(pool *v1alpha1.BenchmarkPool, path v1alpha1.DatasetPath) string {
	return naming.PoolName(pool) + "/" + string(path)
}
