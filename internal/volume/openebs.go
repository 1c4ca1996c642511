package volume

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

// ProvisionerOpenEBS is the provisioner whose volumes are created by the ZFS LocalPV driver of OpenEBS, below a dataset of the agent. The
// StorageClass holds the properties that the driver supports; the agent's dataset holds all inherited properties.
const ProvisionerOpenEBS = "OpenEBS"

// The ZFS LocalPV driver of OpenEBS.
const (
	// DriverName is the name of its CSIDriver and the provisioner of its classes.
	DriverName = "zfs.csi.openebs.io"
	// DriverNodeLabel is the label of a node that has the driver. Its value is the driver's name for the node.
	DriverNodeLabel = "openebs.io/nodeid"
	// DriverGroup and DriverVersion are the group and version of the driver's kinds.
	DriverGroup   = "zfs.openebs.io"
	DriverVersion = "v1"
)

type openebs struct{}

// Driver is ZFS LocalPV.
func (openebs) Driver() *Driver {
	kind := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: DriverGroup, Version: DriverVersion, Kind: name}
	}
	return &Driver{
		Name: DriverName, Volumes: kind("ZFSVolume"), Nodes: kind("ZFSNode"), NodeID: nodeID, Title: "the OpenEBS ZFS LocalPV driver",
		PoolOf: func(object map[string]any) (string, error) {
			on, _, err := unstructured.NestedString(object, "spec", "poolName")
			pool, _, _ := strings.Cut(on, "/")
			return pool, err
		},
		Install: "install OpenEBS ZFS LocalPV (https://openebs.io/docs), or write provisioner: Local, for which the agent creates the dataset",
	}
}

// Refuses returns a reason for properties that can neither be set in a StorageClass nor be inherited by a dataset, and for operations that
// the driver does not allow.
func (openebs) Refuses(volume RunVolume, phases []v1alpha1.Phase) string {
	if problem := driverCannotCreate(volume.Dataset); problem != "" {
		return fmt.Sprintf("volume %s: %s", volume.Name, problem)
	}
	for i := range phases {
		if problem := forbiddenOperation(volume.Name, &phases[i]); problem != "" {
			return fmt.Sprintf("phase %s: %s", phases[i].Name, problem)
		}
	}
	return ""
}

// Keeps is false: the driver recreates its datasets.
func (openebs) Keeps() bool { return false }

// Shares is false: the agent reports one dataset of the driver for each pool, and operations on other volumes could interfere with the
// driver.
func (openebs) Shares() bool { return false }

// Dataset is the parent of the driver's dataset, with all inherited properties.
func (openebs) Dataset(volume RunVolume) v1alpha1.PoolDataset {
	parent := v1alpha1.PoolDataset{Path: naming.RunParent, Type: "Filesystem", Properties: v1alpha1.Properties{}}
	maps.Copy(parent.Properties, volume.Dataset.Properties)
	maps.DeleteFunc(parent.Properties, func(name string, _ v1alpha1.PropertyValue) bool { return !inherited(name) })
	return parent
}

// Objects returns the volume's own StorageClass and the claim.
func (openebs) Objects(run *v1alpha1.BenchmarkRun, volume RunVolume, site Site) ([]client.Object, error) {
	id, err := nodeID(site.Node)
	if err != nil {
		return nil, err
	}
	class := openebsClass(run, volume, site.ClusterLabels, id)
	asked := size(volume, site.PoolBytes) // the size of the pool is no limit
	bytes := resource.NewQuantity(driverBytes(asked.Value()), resource.BinarySI)
	return []client.Object{class, claimOn(run, volume, site, class.Name, *bytes)}, nil
}

// BackingObject is the StorageClass.
func (openebs) BackingObject() client.Object { return &storagev1.StorageClass{} }

// BindsFirst is true: the driver creates the dataset after the claim, and may not set all requested properties.
func (openebs) BindsFirst() bool { return true }

// Made returns the dataset that the driver has created for the PersistentVolume. The agent reports its properties on request.
func (openebs) Made(volume RunVolume, pool *v1alpha1.BenchmarkPool, persistent string) (made Made) {
	if persistent == "" {
		return Made{Unread: "the dataset of volume " + volume.Name}
	}
	path := naming.RunParent + "/" + v1alpha1.DatasetPath(persistent)
	made.Dataset = datasetOn(pool, path)
	differing, read := effectiveDifferences(volume, pool, made.Dataset)
	if made.Differing = differing; read {
		return made
	}
	made.Unread = made.Dataset
	if pool.Annotations[v1alpha1.AnnotationReport] != string(path) {
		made.Report = path
	}
	return made
}

// nodeID is the driver's name for a node.
func nodeID(node *corev1.Node) (string, error) {
	if id := node.Labels[DriverNodeLabel]; id != "" {
		return id, nil
	}
	return "", fmt.Errorf("node %s has no label %s: run the OpenEBS ZFS LocalPV driver there, or write provisioner: Local", node.Name,
		DriverNodeLabel)
}

// understood has the property values that the driver accepts. With any other value it would not create the volume, so other values are set
// only on the parent dataset.
var understood = map[string]*regexp.Regexp{
	"recordsize":   regexp.MustCompile(`^[0-9]+[kKmM]?$`),
	"volblocksize": regexp.MustCompile(`.`), // nothing else can set it
	"compression":  regexp.MustCompile(`^(on|off|lzjb|zle|lz4|gzip(-[1-9])?|zstd(-fast|-[1-9]|-1[0-9])?)$`),
	"dedup":        regexp.MustCompile(`^(on|off)$`),
}

// openebsClass returns the StorageClass of a volume. It binds immediately and names the node: with WaitForFirstConsumer, the claim would
// also have to wait, up to two minutes, until the driver and the scheduler know the free space of the new pool.
func openebsClass(run *v1alpha1.BenchmarkRun, volume RunVolume, labels map[string]string, nodeID string) *storagev1.StorageClass {
	name := naming.RunPoolName(run, volume.Name)
	parameters := map[string]string{"poolname": name + "/" + string(naming.RunParent)}
	for property, accepted := range understood {
		if value := string(volume.Dataset.Properties[property]); value != "" && accepted.MatchString(value) {
			parameters[property] = value
		}
	}
	if volume.Dataset.Type == naming.DatasetVolume {
		delete(parameters, "recordsize")
		// Like the volumes of the agent, it reserves its space unless the reservation is removed.
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
		ReclaimPolicy:     new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: new(storagev1.VolumeBindingImmediate),
		AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{
			Key: DriverNodeLabel, Values: []string{nodeID}}}}},
	}
}

// notInherited are the properties that a dataset does not inherit from its parent. A StorageClass can set volblocksize.
var notInherited = []string{"quota", "refquota", "reservation", "refreservation", "volsize", "volblocksize", "filesystem_limit",
	"snapshot_limit", "version", "volthreading"}

// inherited reports whether datasets inherit a property from their parent.
func inherited(property string) bool { return !slices.Contains(notInherited, property) }

// driverCannotCreate says why the driver cannot create a dataset.
func driverCannotCreate(dataset *v1alpha1.DatasetTemplate) string {
	for _, name := range notInherited {
		value, asked := dataset.Properties[name]
		switch {
		case !asked || name == "volblocksize" || name == "refreservation" && dataset.Type == naming.DatasetVolume &&
			zfs.SameValue(string(value), "0"):
		case name == "refquota":
			return "the driver sets refquota from the size: write size instead of the property refquota"
		default:
			return fmt.Sprintf("a StorageClass of the driver cannot set %s: remove it from the properties", name)
		}
	}
	if dataset.Size != nil {
		if bytes := dataset.Size.Value(); driverBytes(bytes) != bytes {
			return fmt.Sprintf("the driver rounds the size of %d bytes up to %d: use a multiple of 1Gi, or of 1Mi up to 1Gi", bytes,
				driverBytes(bytes))
		}
	}
	return ""
}

// driverBytes is the size that the driver gives a volume: whole Mi up to 1 Gi, whole Gi above.
func driverBytes(bytes int64) int64 {
	unit := int64(1 << 20)
	if bytes > 1<<30 {
		unit = 1 << 30
	}
	return (bytes + unit - 1) / unit * unit
}

// forbiddenOperation says which operation of a phase is not allowed on the driver's dataset or on those above it: a clone would prevent the
// driver from destroying the dataset, and without the dataset the driver would not find its volume.
func forbiddenOperation(volume string, phase *v1alpha1.Phase) string {
	for _, action := range operate.Of(phase) {
		if clone := action.Clone; clone != nil {
			if ofDriver(volume, clone.Dataset) {
				return fmt.Sprintf("a clone of dataset %s would prevent the driver from destroying its volume: remove the clone", clone.Dataset)
			}
			if ofDriver(volume, clone.To) {
				return fmt.Sprintf("the driver creates its volume in dataset %s: write another path in to, such as copy", clone.To)
			}
		}
		if files := action.Copy; files != nil && ofDriver(volume, files.To) && files.To != naming.RunDataset(volume) {
			return fmt.Sprintf("the driver creates its volume in dataset %s: write another path in to, such as copy", files.To)
		}
		if set := action.SetProperty; set != nil && ofDriver(volume, set.Dataset) {
			return fmt.Sprintf("the driver sets the properties of dataset %s: write provisioner: Local, or remove setProperty", set.Dataset)
		}
		if destroy := action.DestroyDataset; destroy != nil && ofDriver(volume, destroy.Dataset) {
			return fmt.Sprintf("dataset %s is or contains the volume of the driver, which only the driver may destroy: remove destroyDataset",
				destroy.Dataset)
		}
	}
	return ""
}

// ofDriver reports whether a path, as phases write it, is the dataset of a driver's volume, its parent, or a dataset below the parent.
func ofDriver(volume string, path v1alpha1.DatasetPath) bool {
	return path == naming.RunDataset(volume) || path == naming.RunParent || strings.HasPrefix(string(path), string(naming.RunParent)+"/")
}

// effectiveDifferences compares the dataset that a driver created with the request. It compares properties that were not requested with the
// pool's root dataset, from which they are inherited. read is false while nothing is known about the dataset.
func effectiveDifferences(volume RunVolume, pool *v1alpha1.BenchmarkPool, dataset string) (differences []string, read bool) {
	is, root := map[string]v1alpha1.EffectiveProperty{}, map[string]string{}
	for _, property := range pool.Status.Properties {
		switch property.Dataset {
		case dataset:
			is[property.Name] = property
		case naming.PoolName(pool):
			root[property.Name] = property.Value
		}
	}
	if len(is) == 0 {
		return nil, false
	}
	wanted := map[string]string{}
	for name, value := range root {
		if _, has := is[name]; has && inherited(name) { // for example, a volume has no recordsize
			wanted[name] = value
		}
	}
	for name, value := range volume.Dataset.Properties {
		wanted[name] = string(value)
	}
	switch size := volume.Dataset.Size; {
	case size == nil: // the size is that of the pool, which is not a limit
	case volume.Dataset.Type == naming.DatasetVolume:
		wanted["volsize"] = fmt.Sprint(size.Value())
	default:
		wanted["refquota"] = fmt.Sprint(size.Value())
	}
	for name, value := range wanted {
		property, found := is[name]
		switch {
		case !found:
			differences = append(differences, fmt.Sprintf("%s of %s does not exist, requested is %s", name, dataset, value))
		case !zfs.SameValue(value, property.Value):
			differences = append(differences, fmt.Sprintf("%s of %s is %s (%s), requested is %s", name, dataset, property.Value, property.Source,
				value))
		}
	}
	slices.Sort(differences)
	return differences, true
}
