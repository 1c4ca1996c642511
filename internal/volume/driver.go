package volume

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

// The ZFS LocalPV driver of OpenEBS.
const (
	// DriverName is the name of its CSIDriver and the provisioner of its classes.
	DriverName = "zfs.csi.openebs.io"
	// DriverNodeLabel is the label of a node that has the driver. Its value is the driver's name for the node.
	DriverNodeLabel = "openebs.io/nodeid"
	// DriverGroup and DriverVersion are those of the driver's kinds.
	DriverGroup   = "zfs.openebs.io"
	DriverVersion = "v1"
)

// DriverState is the observed state of the driver in a cluster.
type DriverState struct {
	// Installed says that it can be used.
	Installed bool
	// Missing lists the missing parts although its CSIDriver exists.
	Missing string
}

// DriverMissing says what is missing, and what to do.
func DriverMissing(driver DriverState) string {
	missing := "the cluster has no CSIDriver " + DriverName
	if driver.Missing != "" {
		missing = driver.Missing
	}
	return missing +
		": install OpenEBS ZFS LocalPV (https://openebs.io/docs), or write provisioner: Local, for which the agent creates the dataset"
}

// notInherited are the properties that a dataset does not inherit from its parent. A StorageClass can set volblocksize.
var notInherited = []string{"quota", "refquota", "reservation", "refreservation", "volsize", "volblocksize", "filesystem_limit",
	"snapshot_limit", "version", "volthreading"}

// Inherited says whether datasets inherit a property from their parent.
func Inherited(property string) bool { return !slices.Contains(notInherited, property) }

// DriverCannotMake says why the driver cannot create a dataset.
func DriverCannotMake(dataset *v1alpha1.DatasetTemplate) string {
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
		if bytes := dataset.Size.Value(); DriverBytes(bytes) != bytes {
			return fmt.Sprintf("the driver rounds the size of %d bytes up to %d: use a multiple of 1Gi, or of 1Mi up to 1Gi", bytes,
				DriverBytes(bytes))
		}
	}
	return ""
}

// DriverBytes is the size that the driver gives a volume: whole Mi up to 1 Gi, whole Gi above.
func DriverBytes(bytes int64) int64 {
	unit := int64(1 << 20)
	if bytes > 1<<30 {
		unit = 1 << 30
	}
	return (bytes + unit - 1) / unit * unit
}

// DriverCannotBear says which operations on the driver's dataset, or those above it, are not allowed: a clone would prevent the
// driver from destroying it, and without the dataset the driver would not find its volume.
func DriverCannotBear(phase *v1alpha1.Phase) string {
	for _, action := range operate.Of(phase) {
		if clone := action.Clone; clone != nil {
			if ofDriver(clone.Dataset) {
				return fmt.Sprintf("a clone of dataset %s would prevent the driver from destroying its volume: remove the clone", clone.Dataset)
			}
			if ofDriver(clone.To) {
				return fmt.Sprintf("the driver creates its volume in dataset %s: write another path in to, such as copy", clone.To)
			}
		}
		if destroy := action.DestroyDataset; destroy != nil && ofDriver(destroy.Dataset) {
			return fmt.Sprintf("dataset %s is or contains the volume of the driver, which only the driver may destroy: remove destroyDataset",
				destroy.Dataset)
		}
	}
	return ""
}

// ofDriver says whether a dataset is the volume of a driver, by the name that phases use, its parent, or anything in it.
func ofDriver(path v1alpha1.DatasetPath) bool {
	return path == naming.RunDataset || path == naming.RunParent || strings.HasPrefix(string(path), string(naming.RunParent)+"/")
}

// DrivenPath is the path below its pool of the dataset that a driver created for a PersistentVolume.
func DrivenPath(persistentVolume string) v1alpha1.DatasetPath {
	return naming.RunParent + "/" + v1alpha1.DatasetPath(persistentVolume)
}

// EffectiveDifferences compares the dataset that a driver created with the request, and the properties that were not requested with
// the pool's root, from which they are inherited. Nothing is known of the dataset until read is true.
func EffectiveDifferences(volume RunVolume, pool *v1alpha1.BenchmarkPool, dataset string) (differences []string, read bool) {
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
		if _, has := is[name]; has && Inherited(name) { // a volume has no recordsize, for example
			wanted[name] = value
		}
	}
	for name, value := range volume.Dataset.Properties {
		wanted[name] = string(value)
	}
	switch size := volume.Dataset.Size; {
	case size == nil: // the size of the pool, which is no limit
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
