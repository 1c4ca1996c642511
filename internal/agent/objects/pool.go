// Package objects derives facts from BenchmarkPools and PoolOperations alone, without access to their node: the disks that they claim, and
// what they leave behind. The manager uses it for nodes without an agent.
package objects

import (
	"cmp"
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/spelling"
)

// Destroys reports whether a pool is destroyed when its object is deleted, which requires an explicit policy.
func Destroys(pool *v1alpha1.BenchmarkPool) bool {
	return pool.Spec.DeletionPolicy == v1alpha1.DeletionDestroy
}

// LetsGo reports whether a deleted object is released while its pool stays: because of its policy, or because a user released it.
func LetsGo(pool *v1alpha1.BenchmarkPool) bool {
	return Released(pool) || !Destroys(pool)
}

// StaysBehind describes what remains when an object is released while its pool stays, and how to deal with it.
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
		name, guid, pool.Spec.NodeName, SomeOf(ClaimedDevices(pool)), name)
}

// Released reports whether a user allowed the release of an object although its pool stays. The result does not depend on whether the
// object is already deleted.
func Released(pool *v1alpha1.BenchmarkPool) bool {
	return pool.Annotations[v1alpha1.AnnotationReleasePool] == pool.Spec.NodeName
}

// ReleaseCommand returns the command that releases a deleted BenchmarkPool although its pool stays.
func ReleaseCommand(pool *v1alpha1.BenchmarkPool) string {
	return fmt.Sprintf("release it: kubectl annotate benchmarkpool %s %s=%s", pool.Name, v1alpha1.AnnotationReleasePool,
		pool.Spec.NodeName)
}

// Disown returns what to do so that an object that a backup of the cluster brings back does not destroy a pool that was released, if the
// node has no record of the release.
func Disown(pool *v1alpha1.BenchmarkPool) string {
	name := naming.PoolName(pool)
	return fmt.Sprintf("run 'zfs inherit %s %s' on node %s, so that no restored backup of the cluster destroys pool %s",
		naming.PropertyUID, name, pool.Spec.NodeName, name)
}

// LeftBehind describes which pool may be left behind, and where.
func LeftBehind(pool *v1alpha1.BenchmarkPool) string {
	guid := cmp.Or(pool.Status.GUID, "not known")
	return fmt.Sprintf("pool %s (guid %s) may be left on node %s, on %s", naming.PoolName(pool), guid, pool.Spec.NodeName,
		SomeOf(ClaimedDevices(pool)))
}

// SomeOf returns a text that lists the first few items.
func SomeOf(items []string) string {
	if len(items) == 0 {
		return "none"
	}
	return spelling.Some(items, 4)
}
