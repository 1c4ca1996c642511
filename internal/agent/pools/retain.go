package pools

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// Destroys says whether a pool goes with its object. A pool is destroyed only where the object says so in so many words.
func Destroys(pool *v1alpha1.BenchmarkPool) bool {
	return pool.Spec.DeletionPolicy == v1alpha1.DeletionDestroy
}

// LetsGo says whether a deleted object goes without its pool: because of its policy, or because a person released it.
func LetsGo(pool *v1alpha1.BenchmarkPool) bool {
	return Released(pool) || !Destroys(pool)
}

// StaysBehind says what stays after an object that goes without its pool, and what a person can do with it.
func StaysBehind(pool *v1alpha1.BenchmarkPool, guid string) string {
	switch {
	case Released(pool):
		return "released by its annotation: " + LeftBehind(pool)
	case guid == "":
		return "spec.deletionPolicy is Retain, and no pool is known to have been made: if there is one, it stays as it is"
	}
	name := naming.PoolName(pool)
	return fmt.Sprintf("spec.deletionPolicy is Retain: pool %s (guid %s) stays on node %s as it is, with its data, on %s. To destroy it, "+
		"run 'zpool destroy %s' on the node, "+
		"and 'zpool labelclear DISK-part1' for each of the disks. To use it further, make a BenchmarkPool with this poolName: it says how to "+
		"take the pool over",
		name, guid, pool.Spec.NodeName, SomeOf(SpecDevices(pool)), name)
}

// leavePool lets an object go without its pool.
func leavePool(state State) Decision {
	guid := state.Pool.Status.GUID
	if state.Live != nil && state.Live.OwnedBy(string(state.Pool.UID)) {
		guid = state.Live.GUID
	}
	return Decision{Reason: v1alpha1.ReasonPoolLeftBehind, Message: StaysBehind(state.Pool, guid),
		Actions: []Action{{Kind: RemovePoolFinalizer}}}
}
