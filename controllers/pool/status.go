package pool

import (
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/zfs"
)

// Limits of the API.
const (
	maxVdevs      = 160
	maxProperties = 128
	maxWarnings   = 8
)

// Properties that are relevant for measurements even if they were not requested.
var (
	poolMatters = []string{"ashift", "autotrim", "multihost"}
	rootMatters = []string{"recordsize", "compression", "checksum", "logbias", "sync", "primarycache", "secondarycache", "atime", "copies",
		"dedup", "redundant_metadata", "encryption"}
	// limits are relevant properties of a dataset of another component: they are not inherited.
	limits = []string{"quota", "refquota", "reservation", "refreservation", "volsize", "volblocksize"}
)

// summarise computes the status from the observation and the decision only, so that an unchanged world results in an unchanged status.
func summarise(state observed, decision pools.Decision) v1alpha1.BenchmarkPoolStatus {
	pool := state.Pool
	status := *pool.Status.DeepCopy()
	status.ObservedGeneration = pool.Generation
	status.ZFSVersion = spelling.Shorten(state.Version.Full(), 128)
	// If the pool is not visible now, its guid and its disks stay in the status: they show what to look for.
	status.Health = ""
	left, stillLeft := remembered(state, decision)
	if live := state.Live; live != nil && live.OwnedBy(string(pool.UID)) {
		status.GUID, status.Health = live.GUID, string(live.Status.Health())
		status.SizeBytes, status.AllocatedBytes, status.FreeBytes = live.Size, live.Allocated, live.Free
		status.FragmentationPercent = nil
		if live.FragmentationPercent != nil {
			status.FragmentationPercent = new(int32(*live.FragmentationPercent)) //nolint:gosec // a percentage
		}
		// The disks that were joining are in the tree by now, or not in the pool. The next turn will see the disks that this turn adds.
		vdevs := vdevStatuses(state)
		status.Vdevs, status.Joining = append(vdevs[:min(len(vdevs), maxVdevs-len(left))], left...), decision.Joining()
		status.Properties = effective(state)
	}
	for _, path := range objects.SpecDevices(pool) {
		if disk, seen := state.Disks[path]; seen && disk.Number != "" && state.Policy.Allows(pool.Spec.Namespace, path) {
			setPreflight(&status, preflight(path, disk, int(pool.Spec.Ashift)))
		}
	}
	message := decision.Message
	if pool.DeletionTimestamp.IsZero() { // the planner compares the message of a deleted pool with its own
		message += stillLeft
	}
	if missing := state.Version.Missing(); decision.Phase == pools.PoolDone && len(missing) > 0 {
		message += "; with " + state.Version.Userland + ": " + strings.Join(missing, "; ")
	}
	switch decision.Phase {
	case pools.PoolDone:
		kstatus.SetReady(&status.Conditions, pool.Generation, decision.Reason, message)
	case pools.PoolStalled:
		kstatus.SetStalled(&status.Conditions, pool.Generation, decision.Reason, message)
	case pools.PoolProgressing:
		kstatus.SetProgressing(&status.Conditions, pool.Generation, decision.Reason, message)
	}
	return status
}

// summariseFailure returns a status that says why nothing could be observed.
func summariseFailure(pool *v1alpha1.BenchmarkPool, err error) v1alpha1.BenchmarkPoolStatus {
	return summariseUnseen(pool, v1alpha1.ReasonActionFailed, err.Error()+" (will be retried)")
}

// summariseUnseen returns a status with the last known state, because nothing was observed.
func summariseUnseen(pool *v1alpha1.BenchmarkPool, reason, message string) v1alpha1.BenchmarkPoolStatus {
	status := *pool.Status.DeepCopy()
	status.ObservedGeneration = pool.Generation
	status.Health = ""
	kstatus.SetProgressing(&status.Conditions, pool.Generation, reason, message)
	return status
}

// vdevStatuses returns the tree of vdevs as a list, parents before children.
func vdevStatuses(state observed) []v1alpha1.VdevStatus {
	classes := map[string]string{"normal": "data", "l2cache": "cache"}
	var statuses []v1alpha1.VdevStatus
	var walk func(parent, class string, vdevs []zfs.VdevStatus)
	walk = func(parent, class string, vdevs []zfs.VdevStatus) {
		for _, vdev := range vdevs {
			if parent == "" {
				class = vdev.Class
				if named := classes[class]; named != "" {
					class = named
				}
			}
			status := v1alpha1.VdevStatus{
				Name: spelling.Shorten(vdevName(vdev, state.Live.Status), 200), Parent: parent, Class: class, GUID: vdev.GUID,
				State:      string(vdev.State),
				ReadErrors: vdev.ReadErrors, WriteErrors: vdev.WriteErrors, ChecksumErrors: vdev.ChecksumErrors, SizeBytes: vdev.SizeBytes,
			}
			if parent == "" {
				status.Ashift = ashift(state.ashifts, vdev.Name)
			}
			statuses = append(statuses, status)
			walk(status.Name, class, vdev.Children)
		}
	}
	walk("", "", state.Live.Status.Vdevs)
	return statuses[:min(len(statuses), maxVdevs)]
}

// vdevName returns the name of a vdev. ZFS names a lost disk by its guid and adds the path that it had. The agent finds the disk again by
// this path, so it is the name, unless another disk has the path now.
func vdevName(vdev zfs.VdevStatus, all zfs.Status) string {
	was, lost := strings.CutPrefix(vdev.Note, "was ")
	has := func(other zfs.VdevStatus) bool { return other.Name == was }
	if !lost || !strings.HasPrefix(was, "/dev/") || slices.ContainsFunc(all.Leaves(), has) {
		return vdev.Name
	}
	return was
}

// ashift returns the ashift of a vdev. Vdev properties name disks without their folder.
func ashift(known map[string]string, name string) int32 {
	value, found := known[name]
	if !found {
		short := name[strings.LastIndex(name, "/")+1:]
		if value, found = known[short]; !found {
			value = known[strings.TrimSuffix(short, "-part1")]
		}
	}
	number, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0 // a cache or spare has none
	}
	return int32(number)
}

// effective returns the current values of the requested properties, followed by other relevant ones. For a dataset of another component, it
// returns the properties that are requested for any dataset, because it may inherit them. The marks come first, because other components
// wait for them.
func effective(state observed) []v1alpha1.EffectiveProperty {
	asked := state.InForce()
	wanted := slices.Concat(naming.RunMarks(state.Pool), arrivedMarks(state), asked)
	for _, name := range poolMatters {
		wanted = append(wanted, naming.Setting{Name: name})
	}
	for _, name := range rootMatters {
		wanted = append(wanted, naming.Setting{Dataset: state.Live.Name, Name: name})
	}
	for _, name := range state.Arrived() {
		wanted = append(wanted, unlikeRoot(state, name, asked)...)
	}
	if reported := pools.ReportedDataset(state.Pool); reported != "" {
		for _, setting := range asked {
			if setting.Dataset != "" {
				wanted = append(wanted, naming.Setting{Dataset: reported, Name: setting.Name})
			}
		}
		for _, name := range slices.Concat(limits, rootMatters) {
			wanted = append(wanted, naming.Setting{Dataset: reported, Name: name})
		}
	}
	var properties []v1alpha1.EffectiveProperty
	seen := map[naming.Setting]bool{}
	for _, setting := range wanted {
		setting.Value = ""
		property, found := state.Live.Property(setting.Dataset, setting.Name)
		if !found || seen[setting] || property.Value == "" {
			continue
		}
		seen[setting] = true
		properties = append(properties, v1alpha1.EffectiveProperty{Dataset: setting.Dataset, Name: setting.Name,
			Value: spelling.Shorten(property.Value, 256), Source: spelling.Shorten(property.Source, 300)})
	}
	return properties[:min(len(properties), maxProperties)]
}

// arrivedMarks returns the marks that show which of the awaited datasets are ready for pods.
func arrivedMarks(state observed) (marks []naming.Setting) {
	for _, name := range state.Arrived() {
		marks = append(marks, naming.Setting{Dataset: name, Name: naming.PropertyOperation})
	}
	return marks
}

// unlikeRoot returns the relevant properties of a dataset created by an operation that differ from those of the root, from which it
// inherits. Only these are reported, because many such datasets have to fit into a status.
func unlikeRoot(state observed, dataset string, asked []naming.Setting) (unlike []naming.Setting) {
	names := slices.Clone(rootMatters)
	for _, setting := range asked {
		if setting.Dataset != "" && !slices.Contains(names, setting.Name) {
			names = append(names, setting.Name)
		}
	}
	for _, name := range names {
		is, _ := state.Live.Property(dataset, name)
		root, reported := state.Live.Property(state.Live.Name, name)
		if !reported || !slices.Contains(rootMatters, name) || is.Value != root.Value {
			unlike = append(unlike, naming.Setting{Dataset: dataset, Name: name})
		}
	}
	return unlike
}

func preflight(path string, disk pools.Disk, ashift int) v1alpha1.PreflightStatus {
	warnings := disk.Warnings(ashift)
	return v1alpha1.PreflightStatus{
		Device: v1alpha1.DevicePath(path), Number: spelling.Shorten(disk.Number, 16), Serial: spelling.Shorten(disk.Serial, 64),
		SizeBytes:           disk.SizeBytes,
		LogicalSectorBytes:  int32(disk.LogicalSectorBytes),  //nolint:gosec // sectors are small
		PhysicalSectorBytes: int32(disk.PhysicalSectorBytes), //nolint:gosec // sectors are small
		Rotational:          disk.Rotational,
		WriteCache:          spelling.Shorten(disk.WriteCache, 32),
		Warnings:            warnings[:min(len(warnings), maxWarnings)],
	}
}

func setPreflight(status *v1alpha1.BenchmarkPoolStatus, found v1alpha1.PreflightStatus) {
	at := slices.IndexFunc(status.Preflight, func(p v1alpha1.PreflightStatus) bool { return p.Device == found.Device })
	if at < 0 {
		status.Preflight = append(status.Preflight, found)
		return
	}
	status.Preflight[at] = found
}
