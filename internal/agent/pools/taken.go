package pools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// foreignPool says whose the pool of that name is, and which ways there are to get what is asked for.
func foreignPool(state State) Decision {
	live := state.Live
	whose, way := "it carries no mark of a BenchmarkPool", "destroy it on the node if its data is not needed"
	if mark, found := live.Property(live.Name, naming.PropertyUID); found && mark.Local() {
		at := slices.IndexFunc(state.Rivals, func(other v1alpha1.BenchmarkPool) bool {
			return mark.Value != "" && string(other.UID) == mark.Value
		})
		if at >= 0 {
			whose, way = "it is that of BenchmarkPool "+state.Rivals[at].Name, freeing(&state.Rivals[at])
		} else {
			whose = "it was made for another BenchmarkPool, uid " + mark.Value
			if name, named := live.Property(live.Name, naming.PropertyName); named {
				whose += ", then named " + name.Value
			}
			way = "take it over as it is by running on the node: " + takeOverCommand(state.Pool)
		}
	}
	return stall(v1alpha1.ReasonPoolNameTaken, "node %s has a pool %s (guid %s) already, and %s: it is left alone. Either %s; or %s",
		state.Pool.Spec.NodeName, live.Name, live.GUID, whose, way, state.otherName())
}

// namesake says the same of a pool that is not imported. Whose it is, an import tells.
func (s State) namesake(other zfs.Importable) Decision {
	return stall(v1alpha1.ReasonPoolNameTaken,
		"node %s has a pool %s (guid %s) on its disks that is not imported and not known to be this object's: it is left alone. Either %s; or %s",
		s.Pool.Spec.NodeName, other.Name, other.GUID, ImportByHand(other.GUID), s.otherName())
}

// ImportByHand is what a person does with a pool that the agent does not import.
func ImportByHand(guid string) string {
	return fmt.Sprintf("import it by hand on the node (zpool import -N -d /dev/disk/by-id %s), and this object says how to go on", guid)
}

// takeOverCommand makes a pool that of another object. The disks are noted as those of its spec: if they are others, that is told,
// and nothing is attached or detached.
func takeOverCommand(pool *v1alpha1.BenchmarkPool) string {
	words := []string{"zfs set"}
	for _, mark := range [][2]string{{naming.PropertyUID, string(pool.UID)}, {naming.PropertyName, pool.Name},
		{naming.PropertyDisks, layoutMark(pool)}, {PropertySpec, "0"}, {naming.PropertyGeneration, "0"}} {
		words = append(words, mark[0]+"="+mark[1])
	}
	return strings.Join(append(words, naming.PoolName(pool)), " ")
}

// otherName says whether another poolName is a way out. A pool keeps its name, and as long as this object is there it claims the disks.
func (s State) otherName() string {
	const again = "delete this BenchmarkPool and make it again with another poolName"
	if _, refused := s.Take(SpecDevices(s.Pool)); refused != nil {
		return again + " and other disks, for these are not to be had: " + refused.Message
	}
	return again
}

// conflict says which other BenchmarkPool has a better claim on the name or on a disk: the one that has it already, else
// the older one. A pool that is there has its name.
func (s State) conflict(paths []string) string {
	for i := range s.Rivals {
		rival := &s.Rivals[i]
		if rival.UID == s.Pool.UID || rival.Spec.NodeName != s.Pool.Spec.NodeName {
			continue
		}
		var claims []string
		for _, path := range paths {
			// This pool does not hold the disk, or it would not ask for it.
			claimed := s.claims(rival, path)
			// Who may not have the disk cannot keep others from it.
			entitled := s.Policy.Allows(rival.Spec.Namespace, claimed) || holdsDisk(rival, claimed)
			if claimed != "" && entitled && prevails(rival, holdsDisk(rival, claimed), s.Pool, false) {
				claims = append(claims, path)
			}
		}
		way := "name other disks"
		if s.Live == nil && s.Pool.Status.GUID == "" && naming.PoolName(rival) == naming.PoolName(s.Pool) &&
			prevails(rival, rival.Status.GUID != "", s.Pool, false) {
			way = "delete this BenchmarkPool and make it again with another poolName"
			if len(claims) > 0 {
				way += " and other disks"
			}
			claims = append(claims, "the pool name "+naming.PoolName(s.Pool))
		}
		if len(claims) > 0 {
			return fmt.Sprintf("BenchmarkPool %s claims %s on this node as well, and came first. Either %s; or %s", rival.Name, SomeOf(claims), way,
				freeing(rival))
		}
	}
	return ""
}

// freeing is how the name and the disks of another BenchmarkPool become free.
func freeing(rival *v1alpha1.BenchmarkPool) string {
	const data = ", which destroys its pool and all data on it"
	switch {
	case !rival.DeletionTimestamp.IsZero():
		return "wait until BenchmarkPool " + rival.Name + " is gone, which is being deleted"
	case rival.Labels[v1alpha1.LabelRun] != "":
		return "wait until BenchmarkPool " + rival.Name + " is gone, which goes with its benchmark"
	case rival.Status.GUID == "":
		return "delete BenchmarkPool " + rival.Name
	case Destroys(rival):
		return "delete BenchmarkPool " + rival.Name + data
	}
	return "set spec.deletionPolicy: Destroy on BenchmarkPool " + rival.Name + " and delete it" + data
}
