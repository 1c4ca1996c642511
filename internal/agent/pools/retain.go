package pools

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// Destroys says whether a pool is destroyed with its object, which requires an explicit policy.
func Destroys(pool *v1alpha1.BenchmarkPool) bool {
	return pool.Spec.DeletionPolicy == v1alpha1.DeletionDestroy
}

// LetsGo says whether a deleted object goes without its pool: because of its policy, or because a user released it.
func LetsGo(pool *v1alpha1.BenchmarkPool) bool {
	return Released(pool) || !Destroys(pool)
}

// StaysBehind says what remains after an object goes without its pool, and how to deal with it.
func StaysBehind(pool *v1alpha1.BenchmarkPool, guid string) string {
	switch {
	case Released(pool):
		return "released by its annotation: " + LeftBehind(pool)
	case guid == "":
		return "spec.deletionPolicy is Retain, and no pool is known to exist: if there is one, it stays as it is"
	}
	name := naming.PoolName(pool)
	return fmt.Sprintf("spec.deletionPolicy is Retain: pool %s (guid %s) stays on node %s as it is, with its data, on %s. To destroy it, "+
		"run 'zpool destroy %s' on the node, "+
		"and 'zpool labelclear DISK-part1' for each of the disks. To keep using it, create a BenchmarkPool with this poolName: it says how to "+
		"take the pool over",
		name, guid, pool.Spec.NodeName, SomeOf(SpecDevices(pool)), name)
}

// leavePool removes the finalizer without destroying the pool.
func leavePool(state State) Decision {
	guid := state.Pool.Status.GUID
	if state.Live != nil && state.Live.OwnedBy(string(state.Pool.UID)) {
		guid = state.Live.GUID
	}
	return Decision{Reason: v1alpha1.ReasonPoolLeftBehind, Message: StaysBehind(state.Pool, guid),
		Actions: []Action{{Kind: RemovePoolFinalizer}}}
}
