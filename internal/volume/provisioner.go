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

// Provisioner is one way to provide a volume of a run. Each provisioner has its own file, and all other code uses this interface.
type Provisioner interface {
	// Driver returns the driver that the cluster must have, or nil if the provisioner needs none.
	Driver() *Driver
	// Refuses says why the provisioner cannot provide a volume, or why a phase on that volume is not possible. It returns "" if everything
	// is possible.
	Refuses(volume RunVolume, phases []v1alpha1.Phase) string
	// Keeps reports whether its datasets can be kept between runs.
	Keeps() bool
	// Shares reports whether a pool with one of its volumes can hold other volumes.
	Shares() bool
	// Dataset returns the dataset that the agent creates on the volume's pool. It is only used for volumes on pools.
	Dataset(volume RunVolume) v1alpha1.PoolDataset
	// Objects returns the objects that provide the volume to the workload, in the order of creation. The claim is the last.
	Objects(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site) ([]client.Object, error)
	// BackingObject returns an empty object of the cluster-scoped kind behind the claim, or nil if there is none. The object has the name that
	// naming.RunPoolName gives for the volume, and is deleted after the claim.
	BackingObject() client.Object
	// BindsFirst reports whether the claim must be bound, and the dataset compared with the request, before the first pod of the run.
	BindsFirst() bool
	// Made returns the dataset that holds the volume. persistent is the name of the PersistentVolume that the claim is bound to, or empty.
	Made(volume RunVolume, pool *v1alpha1.BenchmarkPool, persistent string) Made
}

// Made is the dataset that holds a volume.
type Made struct {
	// Dataset is its ZFS name. Empty while it does not exist.
	Dataset string
	// Unread names the dataset while its properties are not known although they must be.
	Unread string
	// Report is the path of a dataset that the agent must be asked to report. Empty if that is not needed, or if the agent has been asked.
	Report v1alpha1.DatasetPath
	// Differing describes how the dataset differs from the request.
	Differing []string
}

// Driver is a CSI driver that a provisioner needs, with the kinds of its own objects.
type Driver struct {
	// Name is the name of its CSIDriver.
	Name string
	// Volumes is the kind of the driver's objects for volumes. PoolOf reads the pool from such an object.
	Volumes schema.GroupVersionKind
	PoolOf  func(object map[string]any) (string, error)
	// Nodes is the kind of the driver's objects for nodes. NodeID returns the name of such an object. The driver looks for new pools when
	// the object changes.
	Nodes  schema.GroupVersionKind
	NodeID func(node *corev1.Node) (string, error)
	// Title and Install are for messages: the readable name of the driver, and how to install it.
	Title, Install string
}

// DriverState is the observed state of a driver in a cluster.
type DriverState struct {
	// Installed is true if the driver can be used.
	Installed bool
	// Lacks is a kind of the driver that the cluster lacks although it has the CSIDriver. Empty if there is none.
	Lacks string
}

// Missing says which part of a driver is missing, and what to do.
func (d *Driver) Missing(state DriverState) string {
	missing := "the cluster has no CSIDriver " + d.Name
	if state.Lacks != "" {
		missing = fmt.Sprintf("the cluster has CSIDriver %s, but not the kind %s of %s", d.Name, state.Lacks, d.Volumes.GroupVersion())
	}
	return missing + ": " + d.Install
}

// Site is the context of a volume besides the run.
type Site struct {
	// Node is the node of the run, for volumes on pools.
	Node *corev1.Node
	// PoolBytes is the size of the volume's pool.
	PoolBytes int64
	// Labels are the labels of objects in the run's namespace, ClusterLabels those of cluster-scoped objects.
	Labels, ClusterLabels map[string]string
	// Owner is the owner of the objects in the run's namespace.
	Owner metav1.OwnerReference
}

// registered lists the provisioners with their names in dataset.provisioner, in order of preference. The last one needs no driver.
var registered = []struct {
	name string
	Provisioner
}{
	{ProvisionerOpenEBS, openebs{}},
	{ProvisionerLocal, local{}},
}

// Of returns the provisioner of a volume. It is Local if the dataset names none because its default was not filled in.
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

// Drivers returns the drivers of the provisioners, by the name of the provisioner.
func Drivers() map[string]*Driver {
	drivers := map[string]*Driver{}
	for _, one := range registered {
		if driver := one.Driver(); driver != nil {
			drivers[one.name] = driver
		}
	}
	return drivers
}

// Default returns the name of the preferred provisioner in a cluster with the given drivers, which are keyed by provisioner.
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
