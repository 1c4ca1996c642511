package pools

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// nestedMounts unmounts the datasets that are mounted below the mount point of another dataset: pods write there, and such a mount appears
// in the volumes of pods, which the kubelet then cannot unmount.
func nestedMounts(state State) *Decision {
	if len(state.Nested) == 0 {
		return nil
	}
	var actions []Action
	for _, name := range state.Nested {
		actions = append(actions, Action{Kind: UnmountDataset, GUID: state.Live.GUID, Dataset: zfs.DatasetSpec{Name: name}})
	}
	decision := act("unmounting what is mounted within other datasets of pool "+state.Live.Name+": "+objects.SomeOf(state.Nested), actions...)
	decision.Recheck = poolSoon
	return &decision
}

// unsafeDatasets refuses specs that the API refuses too, because an object may be older than the API's rules.
func unsafeDatasets(state State) *Decision {
	spec := state.Pool.Spec
	refuse := func(format string, values ...any) *Decision {
		return new(stall(v1alpha1.ReasonSpecInvalid, format, values...))
	}
	for _, name := range settings.Operators() {
		if _, set := spec.RootProperties[name]; set {
			return refuse("remove %s from spec.rootProperties: only the agent sets it", name)
		}
	}
	for _, dataset := range spec.Datasets {
		for _, name := range settings.Operators() {
			if _, set := dataset.Properties[name]; set {
				return refuse("remove %s from the properties of dataset %s: only the agent sets it", name, dataset.Path)
			}
		}
		for _, other := range spec.Datasets {
			if dataset.Mounted && strings.HasPrefix(string(other.Path), string(dataset.Path)+"/") {
				return refuse("dataset %s lies below %s, which is mounted: pods write where it would be mounted; choose another path", other.Path,
					dataset.Path)
			}
		}
	}
	return nil
}

// mountWanted mounts or unmounts a dataset, as the spec requests. It returns nil if nothing is left to do. A mount point that others set
// stays, unless the spec requests ours. Because canmount=noauto is set first, setting a mount point mounts nothing: the agent mounts the
// dataset after it has checked the place.
func mountWanted(state State, dataset v1alpha1.PoolDataset, is zfs.Dataset) *Decision {
	if dataset.Type == naming.DatasetVolume {
		return nil
	}
	ours := naming.MountPoint(naming.PoolName(state.Pool), dataset.Path)
	set := func(message string, settings ...naming.Setting) *Decision {
		return new(act(message+is.Name, Action{Kind: SetPoolProperties, GUID: state.Live.GUID, Settings: settings}))
	}
	act := func(message string, kind ActionKind) *Decision {
		return new(act(message+is.Name, Action{Kind: kind, GUID: state.Live.GUID, Dataset: zfs.DatasetSpec{Name: is.Name}}))
	}
	noauto, point := naming.Setting{Dataset: is.Name, Name: "canmount", Value: "noauto"}, naming.Setting{Dataset: is.Name, Name: "mountpoint",
		Value: ours}
	auto, known := state.Live.Property(is.Name, "canmount")
	switch {
	case dataset.Mounted && is.MountPoint != ours && is.Mounted:
		return act("unmounting, from another place, dataset ", UnmountDataset)
	case dataset.Mounted && is.MountPoint != ours:
		return set("setting the mount point of dataset ", noauto, point)
	case dataset.Mounted && known && auto.Value != noauto.Value:
		return set("preventing ZFS from automatically mounting dataset ", noauto)
	case dataset.Mounted && (!is.Mounted || slices.Contains(state.Unplaced, is.Name)):
		return act("mounting dataset ", MountDataset)
	case !dataset.Mounted && is.MountPoint == ours:
		point.Value = "none"
		return set("unmounting dataset ", point)
	}
	return nil
}
