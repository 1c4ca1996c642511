package pools

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// deletedPool destroys a pool that is certainly ours and unused, clears its labels, and removes the finalizer.
func deletedPool(state State) Decision {
	pool := state.Pool
	if !slices.Contains(pool.Finalizers, v1alpha1.FinalizerTeardown) {
		return Decision{Reason: v1alpha1.ReasonPoolChanging, Message: "the object is being deleted"}
	}
	if objects.LetsGo(pool) || state.Released { // the backup does not show the will of the person who released it
		return Leave(state)
	}
	if state.Live != nil && state.Live.OwnedBy(string(pool.UID)) {
		return state.withLeft(destroyPool(state))
	}
	if silence := state.silentDisks(); silence != "" {
		return stall(v1alpha1.ReasonPoolUnhealthy, "the remains of pool %s are unknown: %s. Bring the disk back, or %s", naming.PoolName(pool),
			silence, objects.ReleaseCommand(pool))
	}
	if state.Unsearched {
		return *state.stopsNode()
	}
	if guid := state.ownGUID(); guid != "" && state.Live == nil {
		decision := importPool(state, guid)
		if len(decision.Actions) == 0 { // it must not be imported
			return decision
		}
		decision.Actions = decision.Actions[1:] // finalizers cannot be added to an object that is being deleted
		decision.Message += " to destroy it"
		return decision
	}
	return afterPool(state)
}

func destroyPool(state State) Decision {
	live := state.Live
	if decision := state.readOnly(); decision != nil {
		return *decision
	}
	if health := live.Status.Health(); health == zfs.StateSuspended || health == zfs.StateUnavail || health == zfs.StateFaulted {
		return stall(v1alpha1.ReasonPoolUnhealthy, "pool %s is %s and cannot be destroyed: %s. Bring its disks back, or %s", live.Name, health,
			troubles(live.Status), objects.ReleaseCommand(state.Pool))
	}
	if decision := olderSpec(state); decision != nil { // the newer spec may have said Retain
		return *decision
	}
	if others := foreignDatasets(state); len(others) > 0 {
		decision := Decision{Reason: v1alpha1.ReasonPoolDatasetsRemain, Recheck: poolSoon,
			Message: fmt.Sprintf("waiting for datasets of others on pool %s: %s; delete the volumes (PersistentVolumeClaims) that they "+
				"belong to", live.Name, objects.SomeOf(others))}
		return decision
	}
	if decision := nestedMounts(state); decision != nil {
		return *decision
	}
	if len(state.Users) > 0 {
		return Decision{Reason: v1alpha1.ReasonPoolInUse, Recheck: poolSoon,
			Message: fmt.Sprintf("waiting until pool %s is unused: %s", live.Name, objects.SomeOf(state.Users))}
	}
	if recording := "recording the guids of pool " + live.Name + " before it is destroyed"; !state.recorded(recording) {
		return act(recording)
	}
	// The destruction does not update the label of an offline disk: it would still say that the pool is in use, and the next pool could not
	// take the disk.
	for _, leaf := range live.Status.Leaves() {
		if leaf.State == zfs.StateOffline {
			return act(fmt.Sprintf("bringing %s of pool %s online before it is destroyed", leaf.Name, live.Name),
				Action{Kind: OnlineDisk, GUID: live.GUID, Member: MemberName(leaf)})
		}
	}
	return act("destroying pool "+live.Name, Action{Kind: DestroyPool, GUID: live.GUID})
}

// foreignDatasets returns the datasets that the spec does not name and that no operation on this pool created: volumes of others. A dataset
// below one that an operation created inherits its mark, which does not count: only a local mark does. On a kept pool no operation creates
// datasets.
func foreignDatasets(state State) []string {
	if naming.KeptPool(state.Pool) {
		return state.strangers()
	}
	named := map[string]bool{state.Live.Name: true}
	for _, dataset := range state.Pool.Spec.Datasets {
		named[naming.DatasetName(state.Pool, dataset)] = !dataset.Awaited // those that operations create are recognized by their mark
	}
	var others []string
	for _, dataset := range state.Live.Datasets {
		mark, found := state.Live.Property(dataset.Name, naming.PropertyOperation)
		if madeByUs := found && mark.Local(); !named[dataset.Name] && !madeByUs {
			others = append(others, dataset.Name)
		}
	}
	return others
}

// afterPool clears the labels of our destroyed pool. If all disks of the spec are visible and none has such a label, nothing is left.
func afterPool(state State) Decision {
	pool := state.Pool
	guid := pool.Status.GUID
	done := Decision{Reason: v1alpha1.ReasonPoolChanging, Message: "nothing of the pool is left",
		Actions: []Action{{Kind: RemovePoolFinalizer}}}
	if guid == "" {
		return neverRecorded(state, done)
	}
	var destroyed, others []Disk
	var whole, unseen, taken []string
	own, asked := AuxiliaryGUIDs(pool, nil), objects.SpecDevices(pool)
	for _, path := range objects.ClaimedDevices(pool) { // an operation may have added disks that are not in the spec
		disk := state.Disks[path]
		served := slices.ContainsFunc(disk.Pools, func(label host.PoolLabel) bool {
			return OwnAuxiliary(label, own) || label.Left() && OwnLabel(label, guid)
		})
		switch is := carried(disk, guid); {
		case disk.missing(): // such a disk may show its label, but not who uses it
			if served || is != noLabel || slices.Contains(asked, path) {
				unseen = append(unseen, path)
			}
		case is == host.PoolActive, is == host.PoolExported:
			whole = append(whole, path)
		case (is == host.PoolDestroyed || served) && !OnlyLabels(disk.Disk), served && state.holder(path) != "":
			taken = append(taken, path)
		case is == host.PoolDestroyed:
			destroyed = append(destroyed, disk)
		case served:
			others = append(others, disk)
		}
	}
	switch {
	case len(whole) > 0:
		return stall(v1alpha1.ReasonPoolLost,
			"pool %s (guid %s) cannot be imported to destroy it; it is on %s; missing: %s. Bring its disks back, or %s",
			naming.PoolName(pool), guid, objects.SomeOf(whole), objects.SomeOf(unseen), objects.ReleaseCommand(pool))
	case len(destroyed) > 0:
		return act("clearing the labels of pool "+naming.PoolName(pool),
			Action{Kind: ClearPoolLabels, GUID: guid, Disks: append(destroyed, others...)})
	case len(unseen) > 0:
		return stall(v1alpha1.ReasonPoolLost,
			"disks of pool %s (guid %s) are missing on node %s and may still belong to it: %s. Bring them back, or %s",
			naming.PoolName(pool), guid, pool.Spec.NodeName, objects.SomeOf(unseen), objects.ReleaseCommand(pool))
	case len(others) > 0:
		return act("clearing the labels of cache devices, spares and disks that were taken out of pool "+naming.PoolName(pool),
			Action{Kind: ClearPoolLabels, GUID: guid, Disks: others})
	}
	if len(taken) > 0 {
		done.Message = fmt.Sprintf("nothing is left of the pool but labels on %s, which now have other contents or users: the labels stay",
			objects.SomeOf(taken))
	}
	return done
}

// neverRecorded removes the finalizer of an object without a known pool, unless one of its disks carries a pool of that name: the agent may
// have died after creating the pool and before recording it, and the pool cannot be imported now because it is incomplete.
func neverRecorded(state State, done Decision) Decision {
	pool := state.Pool
	for _, path := range objects.SpecDevices(pool) {
		for _, label := range state.Disks[path].Pools {
			if label.Joining() && label.Name == naming.PoolName(pool) {
				done.Message = fmt.Sprintf("nothing is left of the pool but labels of its unfinished creation, such as on %s: clear them with "+
					"zpool labelclear", path)
			}
			if label.State == host.PoolActive && label.Name == naming.PoolName(pool) && !label.Left() {
				return stall(v1alpha1.ReasonPoolLost,
					"disk %s carries a pool %s (guid %d) that may belong to this object and cannot be imported to destroy it: "+
						"bring its other disks back, or %s",
					path, label.Name, label.GUID, objects.ReleaseCommand(pool))
			}
		}
	}
	return done
}

// OnlyLabels reports whether a disk is unused and holds only the partition table and labels that a pool leaves. Labels can survive a new
// partition table, or a file system or RAID that was created between them. Clearing the labels would damage these.
func OnlyLabels(disk host.Disk) bool {
	return disk.AfterPool && !slices.ContainsFunc(disk.Findings, func(f host.Finding) bool {
		return f.Reason != host.PoolMember && f.Reason != host.ActivePool && f.Reason != host.PoolRemains
	})
}

// noLabel is not a state that ZFS writes.
const noLabel = host.PoolState(1 << 32)

// carried returns the most active state of a pool on a disk, or noLabel if the disk has no label of it. The labels of a disk that has left
// the pool do not count.
func carried(disk Disk, guid string) host.PoolState {
	state := noLabel
	for _, label := range disk.Pools {
		if strconv.FormatUint(label.GUID, 10) == guid && !label.Left() {
			state = min(state, label.State)
		}
	}
	return state
}

// Leave removes the finalizer without destroying the pool. Unless a user has released it, the object stays until all of its disks are
// online again: otherwise the operation that took a disk offline could not find the pool any more.
func Leave(state State) Decision {
	if len(state.Offlined) > 0 && !objects.Released(state.Pool) {
		return Decision{Reason: v1alpha1.ReasonPoolRebuilding, Recheck: poolSoon,
			Message: fmt.Sprintf("waiting until a PoolOperation has brought disk %s of pool %s online again; or %s",
				objects.SomeOf(state.Offlined), naming.PoolName(state.Pool), objects.ReleaseCommand(state.Pool))}
	}
	guid := state.Pool.Status.GUID
	if state.Live != nil && state.Live.OwnedBy(string(state.Pool.UID)) {
		guid = state.Live.GUID
	}
	message := objects.StaysBehind(state.Pool, guid)
	if !objects.LetsGo(state.Pool) {
		message = fmt.Sprintf("released before a backup of the cluster was restored, as %s on the node says, and not destroyed: %s. To destroy "+
			"it, run 'zpool destroy %s' on the node", ReleasePath(state.Pool.UID), objects.LeftBehind(state.Pool), naming.PoolName(state.Pool))
	}
	return Decision{Reason: v1alpha1.ReasonPoolLeftBehind, Message: message,
		Actions: []Action{{Kind: RemovePoolFinalizer, Stays: message}}}
}
