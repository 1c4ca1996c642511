// Package pools plans a BenchmarkPool for the agent. Its functions are pure.
package pools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// No watch reports changes of the disks, mounts and properties of a node: they are checked periodically.
const (
	poolRecheck = time.Minute
	poolSoon    = 10 * time.Second
	poolFreed   = time.Second
	// AtOnce is for the next step, after a successful one.
	AtOnce = 10 * time.Millisecond
)

// State is the observed state of a BenchmarkPool.
type State struct {
	Pool   *v1alpha1.BenchmarkPool
	Policy DevicePolicy
	// Multihost is set on new pools.
	Multihost bool
	// Version of ZFS on the node.
	Version zfs.Version
	// HostName is the host name that the node writes into labels.
	HostName string
	// Live is the imported pool with the name of the object's pool, whoever created it.
	Live *LivePool
	// Importable are the pools on the node's disks that are not imported. Only read without a live pool. Unsearched says that the disks
	// were not searched for them: to find them, the kernel reads in a pool as for an import, and the node stops with this one.
	Importable []zfs.Importable
	Unsearched bool
	// Disks by path: those of the spec, of the live pool and of the rivals. Only read if the spec and the live pool do not have the
	// same disks under the same paths.
	Disks map[string]Disk
	// Rivals are the other BenchmarkPools of the node. Read whenever Disks are.
	Rivals []v1alpha1.BenchmarkPool
	// Stopped is how often the node has stopped while the pool was searched for, created or imported, or right afterwards. Only read without
	// a live pool.
	Stopped int
	// Released says that the node has a record of the release of this object: it is back from a backup of the cluster. Only read if the object
	// is being deleted.
	Released bool
	// Users of the live pool, for messages. Only read if the object is being deleted. For a kept pool, the users of the outdated
	// dataset, if there is one.
	Users []string
	// Unplaced are datasets that ZFS reports as mounted, but that the node does not show at their mount points with the folder for pods.
	Unplaced []string
	// Finished are the UIDs of the operations on the pool that have succeeded. Only read if the pool has datasets that are Unfinished.
	Finished map[string]bool
	// Offlined are the identities of the disks that running operations take offline. Only read if the pool is not in order, or is left
	// behind.
	Offlined []string
	// Nested are datasets mounted below the mount point of another one, where pods write. The deepest come first.
	Nested []string
}

// Disk is a disk that was checked.
type Disk struct {
	host.Disk
	// Refusal says why the disk is not taken. Nil if it may be taken.
	Refusal error
	// Reuse is the serial number of the disk if the spec gives up its old contents. Right says which contents the spec may give up.
	Reuse string
	Right host.Right
}

// LivePool is an imported pool.
type LivePool struct {
	zfs.PoolSummary
	Status zfs.Status
	// Properties are the properties of the pool itself.
	Properties []zfs.Property
	// Datasets are the datasets on the pool, including the root, without snapshots.
	Datasets []zfs.Dataset
	// Snapshots are the snapshots on the pool.
	Snapshots []string
	// DatasetProperties of the root, of the datasets of the spec, and of the one to report additionally.
	DatasetProperties []zfs.Property
}

// Property returns a property of the pool itself, or of a dataset.
func (l *LivePool) Property(dataset, name string) (zfs.Property, bool) {
	properties, object := l.DatasetProperties, dataset
	if dataset == "" {
		properties, object = l.Properties, l.Name
	}
	at := slices.IndexFunc(properties, func(p zfs.Property) bool { return p.Object == object && p.Name == name })
	if at < 0 {
		return zfs.Property{}, false
	}
	return properties[at], true
}

// ReadOnly reports whether the pool is imported read-only.
func (l *LivePool) ReadOnly() bool {
	mode, _ := l.Property("", "readonly")
	return mode.Value == "on"
}

// Look reports whether the agent itself has imported the pool read-only, to see whose it is.
func (l *LivePool) Look() bool {
	root, _ := l.Property("", "altroot")
	return l.ReadOnly() && root.Value == zfs.LookRoot
}

// OwnedBy reports whether the pool was created for an object. An inherited mark does not count.
func (l *LivePool) OwnedBy(uid string) bool {
	mark, found := l.Property(l.Name, naming.PropertyUID)
	return found && uid != "" && mark.Local() && mark.Value == uid
}

// Action is something to do for a BenchmarkPool.
type Action struct {
	Kind ActionKind
	// GUID of the pool to act on. Empty for a new one.
	GUID string
	// Create is the pool to create. Only its layout is used when a pool grows.
	Create zfs.PoolSpec
	// Disks that the action writes to.
	Disks []Disk
	// Member of the pool to attach a Device to, or to detach.
	Member, Device string
	// Settings to apply.
	Settings []naming.Setting
	// Dataset to create, mount or destroy.
	Dataset zfs.DatasetSpec
	// DatasetGUID is the guid of the dataset to destroy: a later dataset of the same name has another guid.
	DatasetGUID string
	// Auxiliary are the guids of cache devices and spares whose labels are cleared.
	Auxiliary []string
	// Stays says why the pool stays when its finalizer is removed. Empty if it does not stay.
	Stays string
}

// ActionKind is the kind of an Action.
type ActionKind string

// The kinds of an Action. RecordDisks comes before a command that adds disks: if the node dies right after that command, the pool is
// searched on these disks too.
const (
	AddPoolFinalizer    ActionKind = "AddFinalizer"
	CreatePool          ActionKind = "CreatePool"
	RecordDisks         ActionKind = "RecordDisks"
	ImportPool          ActionKind = "ImportPool"
	ReimportPool        ActionKind = "ReimportPool"
	GrowPool            ActionKind = "GrowPool"
	AttachDisk          ActionKind = "AttachDisk"
	DetachDisk          ActionKind = "DetachDisk"
	OnlineDisk          ActionKind = "OnlineDisk"
	SetPoolProperties   ActionKind = "SetProperties"
	CreateDataset       ActionKind = "CreateDataset"
	MountDataset        ActionKind = "MountDataset"
	UnmountDataset      ActionKind = "UnmountDataset"
	DestroyDataset      ActionKind = "DestroyDataset"
	DestroyPool         ActionKind = "DestroyPool"
	ClearPoolLabels     ActionKind = "ClearLabels"
	ClearLeftLabels     ActionKind = "ClearLeftLabels"
	RemovePoolFinalizer ActionKind = "RemoveFinalizer"
)

// Phase says which condition is true.
type Phase int

// The phases of a BenchmarkPool.
const (
	PoolProgressing Phase = iota
	PoolStalled
	PoolDone
)

// Decision is the plan for a State.
type Decision struct {
	Actions []Action
	Phase   Phase
	// Reason and Message describe the current work or problem.
	Reason  string
	Message string
	// Recheck is when to check again if no watch reports a change. Zero means never.
	Recheck time.Duration
	// Left are the disks that have left the live pool and may still have a label of it.
	Left []LeftDisk
	// Lost describes the disks that have left the live pool and may keep a label of it for good.
	Lost []string
}

// Joining returns the disks that the decision adds to the pool.
func (d Decision) Joining() (paths []v1alpha1.DevicePath) {
	for _, action := range d.Actions {
		if action.Kind == RecordDisks {
			for _, disk := range action.Disks {
				paths = append(paths, v1alpha1.DevicePath(disk.Path))
			}
		}
	}
	return paths
}

func stall(reason, format string, values ...any) Decision {
	return Decision{Phase: PoolStalled, Reason: reason, Message: fmt.Sprintf(format, values...), Recheck: poolRecheck}
}

func act(message string, actions ...Action) Decision {
	return Decision{Actions: actions, Reason: v1alpha1.ReasonPoolChanging, Message: message, Recheck: AtOnce}
}

// Plan decides what to do for a BenchmarkPool.
func Plan(state State) Decision {
	if !state.Pool.DeletionTimestamp.IsZero() {
		return deletedPool(state)
	}
	if state.Live == nil {
		return absentPool(state)
	}
	if !state.Live.OwnedBy(string(state.Pool.UID)) {
		return foreignPool(state)
	}
	return state.withLeft(livePool(state))
}

// absentPool imports the pool, or creates it if it never existed. A pool that existed is never recreated: its data would be lost
// silently.
func absentPool(state State) Decision {
	if silence := state.silentDisks(); silence != "" {
		if conflict := state.conflict(objects.SpecDevices(state.Pool)); conflict != "" {
			return stall(v1alpha1.ReasonPoolConflict, "%s", conflict)
		}
		return stall(v1alpha1.ReasonPoolDeviceRefused, "pool %s is neither created nor imported: %s", naming.PoolName(state.Pool), silence)
	}
	if state.Unsearched {
		return *state.stopsNode()
	}
	if guid := state.ownGUID(); guid != "" {
		return importPool(state, guid)
	}
	if guid := state.Pool.Status.GUID; guid != "" {
		return stall(v1alpha1.ReasonPoolLost,
			"pool %s (guid %s) is no longer on node %s: bring its disks back. It is not recreated: for a new pool, delete and recreate this object",
			naming.PoolName(state.Pool), guid, state.Pool.Spec.NodeName)
	}
	for _, other := range state.Importable {
		if other.Name == naming.PoolName(state.Pool) {
			return state.namesake(other)
		}
	}
	if decision := cmp.Or(unsafeDatasets(state), state.stopsNode()); decision != nil {
		return *decision
	}
	layout := objects.SpecLayout(state.Pool.Spec.PoolTemplate)
	disks, refused := state.Take(layout.Devices())
	if refused != nil {
		return *refused
	}
	action := Action{Kind: CreatePool, Disks: disks, Create: zfs.PoolSpec{
		Name: naming.PoolName(state.Pool), Layout: layout, Ashift: int(state.Pool.Spec.Ashift),
		Multihost: state.Multihost, NoSnapdir: state.Version.Snapdir(),
		Properties: plain(state.Pool.Spec.Properties), RootProperties: map[string]string{},
	}}
	// The kernel sets the properties of the root dataset after it has made the pool. If it refuses one, such as a reservation that is too
	// large or a compression that the features of the pool do not include, it destroys the pool, whose labels then keep every later pool
	// from the disks. So only those are set here that cannot be set later.
	for name, value := range plain(state.Pool.Spec.RootProperties) {
		if settings.Once(name) {
			action.Create.RootProperties[name] = value
		}
	}
	action.Create.RootProperties[naming.PropertyUID] = string(state.Pool.UID)
	action.Create.RootProperties[naming.PropertyName] = state.Pool.Name
	action.Create.RootProperties[naming.PropertyDisks] = layoutMark(state.Pool)
	action.Create.RootProperties[PropertySpec] = strconv.FormatInt(state.Pool.Generation, 10)
	// Debian's scripts scrub and trim all pools each month, possibly during a measurement. They skip pools with these properties.
	action.Create.RootProperties["org.debian:periodic-scrub"] = "disable"
	action.Create.RootProperties["org.debian:periodic-trim"] = "disable"
	action.Create.RootProperties[naming.PropertyGeneration] = withoutProperties
	return act("making pool "+action.Create.Name, Action{Kind: AddPoolFinalizer}, action)
}

// ownGUID returns the guid of a pool on the disks that belongs, or may belong, to this object: the recorded one or, if the agent died
// between creating and recording the pool, one of that name on exactly these disks. The import shows the owner.
func (s State) ownGUID() string {
	recorded := s.Pool.Status.GUID
	for _, pool := range s.Importable {
		if pool.Name == naming.PoolName(s.Pool) && (pool.GUID == recorded || recorded == "" && s.labelled(pool.GUID)) {
			return pool.GUID
		}
	}
	return ""
}

// labelled reports whether all data disks of the spec have a label of the given pool which says that the pool was not exported.
func (s State) labelled(guid string) bool {
	for _, vdev := range s.Pool.Spec.Vdevs {
		for _, path := range vdev.Devices {
			if !slices.ContainsFunc(s.Disks[string(path)].Pools, func(label host.PoolLabel) bool {
				return label.State == host.PoolActive && strconv.FormatUint(label.GUID, 10) == guid
			}) {
				return false
			}
		}
	}
	return true
}

func importPool(state State, guid string) Decision {
	if decision := cmp.Or(state.elsewhere(guid), state.stopsNode()); decision != nil {
		return *decision
	}
	return act(fmt.Sprintf("importing pool %s (guid %s)", naming.PoolName(state.Pool), guid),
		Action{Kind: AddPoolFinalizer}, Action{Kind: ImportPool, GUID: guid})
}

// elsewhere refuses a pool that another host has used last, as a label says, and not exported. ZFS itself compares only host ids, but nodes
// often have none, or share one with clones of the same image.
func (s State) elsewhere(guid string) *Decision {
	if path, other := s.lastHost(guid); other != "" {
		return new(stall(v1alpha1.ReasonPoolLost,
			"pool %s (guid %s) was last used by host %q, as %s says, and not exported there: it may be in use. Export it there; or, if that host "+
				"is gone for good, import it by hand on node %s (zpool import -f), or %s",
			naming.PoolName(s.Pool), guid, other, path, s.Pool.Spec.NodeName, objects.ReleaseCommand(s.Pool)))
	}
	return nil
}

// lastHost returns another host that used the pool last and did not export it, and the disk whose label says so.
func (s State) lastHost(guid string) (path, other string) {
	for _, path := range slices.Sorted(maps.Keys(s.Disks)) {
		for _, label := range s.Disks[path].Pools {
			if label.State == host.PoolActive && strconv.FormatUint(label.GUID, 10) == guid && label.HostName != "" &&
				label.HostName != s.HostName {
				return path, label.HostName
			}
		}
	}
	return "", ""
}

// readOnly decides about a pool that is imported read-only. The agent imports a pool in this way to see whose it is, and may have died
// right after that. Anyone else who does so may know that another host has the pool: then the agent leaves it as it is.
func (s State) readOnly() *Decision {
	live := s.Live
	if !live.ReadOnly() {
		return nil
	}
	if !live.Look() {
		decision := stall(v1alpha1.ReasonPoolUnhealthy,
			"pool %s was imported read-only by hand on node %s: nothing is done to it. Export it there (zpool export %s), and the agent "+
				"imports it unless another host had it last; or import it by hand without readonly=on", live.Name, s.Pool.Spec.NodeName, live.Name)
		if !s.Pool.DeletionTimestamp.IsZero() {
			decision.Message += "; or " + objects.ReleaseCommand(s.Pool)
		}
		return &decision
	}
	if decision := s.elsewhere(live.GUID); decision != nil {
		decision.Message += fmt.Sprintf(". It is still imported read-only, because the agent has looked at it: export it first "+
			"(zpool export %s)", live.Name)
		return decision
	}
	return new(act("importing pool "+live.Name+" again: it is read-only", Action{Kind: ReimportPool, GUID: live.GUID}))
}

// livePool changes our imported pool to match the spec, one step at a time.
func livePool(state State) Decision {
	live := state.Live
	finalizer := Action{Kind: AddPoolFinalizer}
	if decision := state.readOnly(); decision != nil { // nothing else works before that
		decision.Actions = append([]Action{finalizer}, decision.Actions...)
		return *decision
	}
	health, scan := live.Status.Health(), live.Status.Scan
	scanning := scan != nil && scan.State == zfs.Running
	if live.Status.Resilvering() && (scanning || health.Good()) && health != zfs.StateSuspended {
		message := "pool " + live.Name + " is rebuilding data onto a disk"
		if !health.Good() {
			message += "; " + troubles(live.Status)
		}
		return Decision{Reason: v1alpha1.ReasonPoolRebuilding, Message: message, Recheck: poolSoon, Actions: []Action{finalizer}}
	}
	if health == zfs.StateDegraded && len(state.Offlined) > 0 && len(state.unforeseen()) == 0 {
		return Decision{Reason: v1alpha1.ReasonPoolRebuilding, Recheck: poolSoon, Actions: []Action{finalizer},
			Message: fmt.Sprintf("a PoolOperation has taken a disk of pool %s offline: %s", live.Name, troubles(live.Status))}
	}
	if !health.Good() {
		decision := stall(v1alpha1.ReasonPoolUnhealthy, "pool %s is %s: %s", live.Name, health, troubles(live.Status))
		decision.Actions = []Action{finalizer}
		return decision
	}
	// First, mounts in places where pods write are removed. An older spec changes nothing. Apart from these unmounts, nothing is done to
	// datasets before the reset: one of them may belong to others.
	for _, step := range []func(State) *Decision{nestedMounts, olderSpec, unsafeDatasets, beginSpec, resetDatasets} {
		if decision := step(state); decision != nil {
			decision.Actions = append([]Action{finalizer}, decision.Actions...)
			return *decision
		}
	}
	// Differences that cannot be repaired are reported last: the rest of the spec is applied anyway. Differences of the disks are reported
	// only if there are no others: a run that changes the disks of its pool continues despite them.
	var differs *Decision
	for _, step := range []func(State) *Decision{rootProperties, growPool, poolDatasets, poolProperties} {
		decision := step(state)
		if decision != nil && len(decision.Actions) > 0 {
			decision.Actions = append([]Action{finalizer}, decision.Actions...)
			return *decision
		}
		if decision != nil && (differs == nil || differs.Reason == v1alpha1.ReasonPoolDisksDiffer) {
			differs = decision
		}
	}
	if differs != nil {
		differs.Actions = []Action{finalizer}
		return *differs
	}
	return Decision{Phase: PoolDone, Reason: v1alpha1.ReasonPoolReady,
		Message: fmt.Sprintf("pool %s (guid %s) is %s, as specified%s", live.Name, live.GUID, live.Status.Health(), state.changedWords()),
		Recheck: poolRecheck, Actions: []Action{finalizer}}
}

// unforeseen returns the disks that are not in order and that no operation has taken offline.
func (s State) unforeseen() (disks []zfs.VdevStatus) {
	for _, leaf := range s.Live.Status.Leaves() {
		if !leaf.State.Good() && (leaf.State != zfs.StateOffline || !slices.Contains(s.Offlined, Identity(leaf))) {
			disks = append(disks, leaf)
		}
	}
	return disks
}

func troubles(status zfs.Status) string {
	parts := status.Troubles()
	if status.Message != "" {
		parts = append(parts, status.Message)
	}
	if len(parts) == 0 {
		return "see 'zpool status' on the node"
	}
	return strings.Join(parts, "; ")
}

func plain(properties v1alpha1.Properties) map[string]string {
	values := map[string]string{}
	for name, value := range properties {
		values[name] = string(value)
	}
	return values
}
