package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// The provisioners of datasets.
const (
	ProvisionerLocal   = "Local"
	ProvisionerOpenEBS = "OpenEBS"
)

// The ZFS LocalPV driver of OpenEBS.
const (
	// DriverName is the name of its CSIDriver and the provisioner of its classes.
	DriverName = "zfs.csi.openebs.io"
	// DriverNodeLabel is the label of a node that has the driver: by its value the driver knows the node.
	DriverNodeLabel = "openebs.io/nodeid"
	// DriverGroup and DriverVersion are those of its own kinds.
	DriverGroup   = "zfs.openebs.io"
	DriverVersion = "v1"
)

// driverRecheck is how often the rest of a driver that is installed in part is looked for. The manager does not watch CRDs.
const driverRecheck = 30 * time.Second

// DriverState is what is known of the driver in a cluster.
type DriverState struct {
	// Installed says that it can be used.
	Installed bool
	// Missing says what of it is not there although its CSIDriver is.
	Missing string
}

// DefaultProvisioner is taken where a target names none: the one that the runs of this experiment have already, for a driver that
// comes or goes must not mix provisioners within one experiment; else the driver's, if there is one.
func DefaultProvisioner(state BenchmarkState) string {
	byIndex := map[int32]*v1alpha1.ZFSTarget{}
	for i := range state.Slots {
		byIndex[state.Slots[i].Index] = state.Slots[i].Target.ZFS
	}
	for i := range state.Runs {
		run, asked := &state.Runs[i], byIndex[state.Runs[i].Spec.Index]
		if run.Spec.Experiment != state.Experiment || run.Spec.Target.ZFS == nil || asked == nil {
			continue
		}
		left, resolved := datasetsOf(asked), datasetsOf(run.Spec.Target.ZFS)
		for k := range left {
			if left[k].Provisioner == "" && k < len(resolved) && resolved[k].Provisioner != "" {
				return resolved[k].Provisioner
			}
		}
	}
	if state.Driver.Installed {
		return ProvisionerOpenEBS
	}
	return ProvisionerLocal
}

// datasetsOf are the datasets of a target, in the order of its volumes.
func datasetsOf(target *v1alpha1.ZFSTarget) []*v1alpha1.DatasetTemplate {
	datasets := []*v1alpha1.DatasetTemplate{datasetOrDefault(target.Dataset)}
	for i := range target.Volumes {
		datasets = append(datasets, datasetOrDefault(target.Volumes[i].Dataset))
	}
	return datasets
}

// stepDriver stops at a target on pools where no agent is, or that asks the driver for what it cannot do, or for volumes of a driver that
// is not there. It comes after the end of an experiment: what has been measured stays, also if the driver goes.
func stepDriver(state BenchmarkState, decision *BenchmarkDecision) bool {
	if unsettled(state) != nil {
		return false
	}
	if refuseClassOfRun(state, decision) {
		return true
	}
	for i := range state.Slots {
		slot := &state.Slots[i]
		if slot.Target.ZFS == nil {
			continue
		}
		if state.WithoutAgent {
			decision.say(PositionStalled, v1alpha1.ReasonAgentNotInstalled, "variant %q has a zfs target, and the agent is off: ask an admin to install it "+
				"(agent.enabled=true in the Helm chart, or the component config/agent), or write target.storageClass", slot.Variant)
			releaseIfIdle(state, decision)
			return true
		}
		resolved := *slot
		resolved.Target = ResolveTarget(slot.Target, "", "", DefaultProvisioner(state))
		if !usesProvisioner(resolved.Target.ZFS, ProvisionerOpenEBS) {
			continue
		}
		reason, problem := "", driverCannot(&resolved)
		switch {
		case problem != "":
			reason = v1alpha1.ReasonNotSupported
			problem += "; or write provisioner: Local"
		case !state.Driver.Installed:
			reason, problem = v1alpha1.ReasonDriverNotInstalled, driverMissing(state.Driver)
			if state.Driver.Missing != "" {
				decision.WakeAt = state.Now.Add(driverRecheck)
			}
		default:
			continue
		}
		decision.say(PositionStalled, reason, "variant %q asks for provisioner: OpenEBS: %s", slot.Variant, problem)
		releaseIfIdle(state, decision)
		return true
	}
	return false
}

func driverMissing(driver DriverState) string {
	missing := "the cluster has no CSIDriver " + DriverName
	if driver.Missing != "" {
		missing = driver.Missing
	}
	return missing + ": install OpenEBS ZFS LocalPV (https://openebs.io/docs), or write provisioner: Local, for which the agent makes the dataset"
}

// driverCannot says what a slot asks of the driver that a StorageClass cannot say and a dataset does not inherit.
func driverCannot(slot *Slot) string {
	target := slot.Target.ZFS
	if KeepsPools(target) {
		return fmt.Sprintf("reset: %s keeps what the agent makes, and the driver makes its volumes anew: write reset: Pool", target.Reset)
	}
	for i, dataset := range datasetsOf(target) {
		volume := VolumeData
		if i > 0 {
			volume = string(target.Volumes[i-1].Name)
		}
		if dataset.Provisioner != ProvisionerOpenEBS {
			continue
		}
		if problem := driverCannotMake(dataset); problem != "" {
			return fmt.Sprintf("volume %s: %s", volume, problem)
		}
		for k := range slot.Phases {
			phase := &slot.Phases[k]
			if on := string(phase.Volume); on != volume && (on != "" || volume != VolumeData) {
				continue
			}
			if problem := driverCannotBear(phase); problem != "" {
				return fmt.Sprintf("phase %s: %s", phase.Name, problem)
			}
		}
	}
	return ""
}

// notInherited are the properties that a dataset does not get from its parent. volblocksize a StorageClass can say.
var notInherited = []string{"quota", "refquota", "reservation", "refreservation", "volsize", "volblocksize", "filesystem_limit", "snapshot_limit", "version", "volthreading"}

// Inherited says whether datasets have a property from their parent.
func Inherited(property string) bool { return !slices.Contains(notInherited, property) }

// driverCannotMake says what of a dataset the driver cannot make.
func driverCannotMake(dataset *v1alpha1.DatasetTemplate) string {
	for _, name := range notInherited {
		value, asked := dataset.Properties[name]
		switch {
		case !asked || name == "volblocksize" || name == "refreservation" && dataset.Type == DatasetVolume && sameValue(string(value), "0"):
		case name == "refquota":
			return "the driver makes refquota from the size: write size instead of the property refquota"
		default:
			return fmt.Sprintf("a StorageClass of the driver cannot say %s: remove it from the properties", name)
		}
	}
	if dataset.Size != nil {
		if bytes := dataset.Size.Value(); DriverBytes(bytes) != bytes {
			return fmt.Sprintf("the driver rounds the size of %d bytes up to %d: write a size of whole Gi, or of whole Mi up to 1Gi", bytes, DriverBytes(bytes))
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

// driverCannotBear says what must not be done to the driver's dataset, or to those above it: a clone would keep the driver from destroying
// it, and without the dataset the driver would be at a loss.
func driverCannotBear(phase *v1alpha1.Phase) string {
	for _, action := range operationsOf(phase) {
		if clone := action.Clone; clone != nil {
			if ofDriver(clone.Dataset) {
				return fmt.Sprintf("a clone of dataset %s would keep the driver from destroying its volume: remove the clone", clone.Dataset)
			}
			if ofDriver(clone.To) {
				return fmt.Sprintf("dataset %s is where the driver makes its volume: write another path in to, such as copy", clone.To)
			}
		}
		if destroy := action.DestroyDataset; destroy != nil && ofDriver(destroy.Dataset) {
			return fmt.Sprintf("dataset %s is the driver's volume, or has it below it, and the driver's to destroy: remove destroyDataset", destroy.Dataset)
		}
	}
	return ""
}

// ofDriver says whether a dataset is the volume of a driver, by the name that phases have for it, the one below which the driver makes it,
// or anything there.
func ofDriver(path v1alpha1.DatasetPath) bool {
	return path == RunDataset || path == RunParent || strings.HasPrefix(string(path), string(RunParent)+"/")
}

// runClass is how StorageClasses of runs are named, as in the policy storagebench-claims.
var runClass = regexp.MustCompile(`^sb-[0-9a-f]{16}-[a-z]([-a-z0-9]*[a-z0-9])?$`)

// refuseClassOfRun stops at a target with the StorageClass of a run. The policy lets the manager claim on those, and it must not do so for
// somebody else: the disks below are granted to one namespace.
func refuseClassOfRun(state BenchmarkState, decision *BenchmarkDecision) bool {
	for i := range state.Slots {
		slot := &state.Slots[i]
		if slot.Target.StorageClass == nil || !runClass.MatchString(slot.Target.StorageClass.Name) {
			continue
		}
		decision.say(PositionStalled, v1alpha1.ReasonNotSupported, "variant %q names StorageClass %s, which is made for the claims of one run: write the name of another in target.storageClass",
			slot.Variant, slot.Target.StorageClass.Name)
		releaseIfIdle(state, decision)
		return true
	}
	return false
}
