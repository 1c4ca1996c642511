package pools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// foreignPool reports whom the existing pool of that name belongs to, and what a user can do.
func foreignPool(state State) Decision {
	live := state.Live
	whose, way := "it carries no mark of a BenchmarkPool", "destroy it on the node if its data is not needed"
	if mark, found := live.Property(live.Name, naming.PropertyUID); found && mark.Local() {
		at := slices.IndexFunc(state.Rivals, func(other v1alpha1.BenchmarkPool) bool {
			return mark.Value != "" && string(other.UID) == mark.Value
		})
		if at >= 0 {
			whose, way = "it belongs to BenchmarkPool "+state.Rivals[at].Name, freeing(&state.Rivals[at])
		} else {
			whose = "it was created for another BenchmarkPool, uid " + mark.Value
			if name, named := live.Property(live.Name, naming.PropertyName); named {
				whose += ", then named " + name.Value
			}
			way = "take it over as it is by running on the node: " + takeOverCommand(state.Pool)
		}
	}
	return stall(v1alpha1.ReasonPoolNameTaken, "node %s already has a pool %s (guid %s), and %s: it is left alone. Either %s; or %s",
		state.Pool.Spec.NodeName, live.Name, live.GUID, whose, way, state.otherName())
}

// namesake is like foreignPool, but for a pool that is not imported. Only an import shows its owner.
func (s State) namesake(other zfs.Importable) Decision {
	return stall(v1alpha1.ReasonPoolNameTaken,
		"node %s has a pool %s (guid %s) on its disks that is not imported and may not belong to this object: it is left alone. Either %s; or %s",
		s.Pool.Spec.NodeName, other.Name, other.GUID, ImportByHand(other.GUID), s.otherName())
}

// ImportByHand returns instructions for an admin to import a pool that the agent does not import.
func ImportByHand(guid string) string {
	return fmt.Sprintf("import it by hand on the node (zpool import -N -d /dev/disk/by-id %s), and this object shows the next step", guid)
}

// takeOverCommand returns the command that assigns a pool to the given object. It also marks the disks of the object's spec as already
// applied: differences are then reported, and nothing is attached or detached.
func takeOverCommand(pool *v1alpha1.BenchmarkPool) string {
	words := []string{"zfs set"}
	for _, mark := range [][2]string{{naming.PropertyUID, string(pool.UID)}, {naming.PropertyName, pool.Name},
		{naming.PropertyDisks, layoutMark(pool)}, {PropertySpec, "0"}, {naming.PropertyGeneration, "0"}} {
		words = append(words, mark[0]+"="+mark[1])
	}
	return strings.Join(append(words, naming.PoolName(pool)), " ")
}

// otherName returns the advice to choose another poolName, and whether other disks are needed too. poolName is immutable, so the object has
// to be recreated, and it claims the disks as long as it exists.
func (s State) otherName() string {
	const again = "recreate this BenchmarkPool with another poolName"
	if _, refused := s.Take(objects.SpecDevices(s.Pool)); refused != nil {
		return again + " and other disks, because these are not available: " + refused.Message
	}
	return again
}

// conflict returns which other BenchmarkPool has priority for the pool name or for a disk, or "" if none has: the one that already has it,
// otherwise the older one. A BenchmarkPool whose pool exists has the name of that pool.
func (s State) conflict(paths []string) string {
	for i := range s.Rivals {
		rival := &s.Rivals[i]
		if rival.UID == s.Pool.UID || rival.Spec.NodeName != s.Pool.Spec.NodeName {
			continue
		}
		var claims []string
		for _, path := range paths {
			// This pool does not hold the disk yet: otherwise it would not request it.
			claimed := s.claims(rival, path)
			// A pool that may not have the disk cannot block others.
			entitled := s.Policy.Allows(rival.Spec.Namespace, claimed) || holdsDisk(rival, claimed)
			if claimed != "" && entitled && prevails(rival, holdsDisk(rival, claimed), s.Pool) {
				claims = append(claims, path)
			}
		}
		way := "use other disks"
		if s.Live == nil && s.Pool.Status.GUID == "" && naming.PoolName(rival) == naming.PoolName(s.Pool) &&
			prevails(rival, rival.Status.GUID != "", s.Pool) {
			way = "recreate this BenchmarkPool with another poolName"
			if len(claims) > 0 {
				way += " and other disks"
			}
			claims = append(claims, "the pool name "+naming.PoolName(s.Pool))
		}
		if len(claims) > 0 {
			return fmt.Sprintf("BenchmarkPool %s also claims %s on this node, and has priority. Either %s; or %s", rival.Name,
				objects.SomeOf(claims), way,
				freeing(rival))
		}
	}
	return ""
}

// freeing returns what to do so that the name and the disks of another BenchmarkPool become free.
func freeing(rival *v1alpha1.BenchmarkPool) string {
	const data = ", which destroys its pool and all data on it"
	switch {
	case !rival.DeletionTimestamp.IsZero():
		return "wait until BenchmarkPool " + rival.Name + " is gone: it is being deleted"
	case rival.Labels[v1alpha1.LabelRun] != "":
		return "wait until BenchmarkPool " + rival.Name + " is gone: its benchmark deletes it"
	case rival.Status.GUID == "":
		return "delete BenchmarkPool " + rival.Name
	case objects.Destroys(rival):
		return "delete BenchmarkPool " + rival.Name + data
	}
	return "set spec.deletionPolicy: Destroy on BenchmarkPool " + rival.Name + " and delete it" + data
}
