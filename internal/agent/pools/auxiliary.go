package pools

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/host"
)

// AuxiliaryGUIDs returns the guids of a pool's cache devices and spares: those recorded in the status, and those of the live pool, if there
// is one. Their labels name no pool, so after the pool is destroyed, only these guids show that they belonged to it.
func AuxiliaryGUIDs(pool *v1alpha1.BenchmarkPool, live *LivePool) []string {
	var guids []string
	for _, vdev := range pool.Status.Vdevs {
		if vdev.Parent == "" {
			guids = append(guids, auxiliaryOf(vdev)...)
		}
	}
	if live == nil {
		return guids
	}
	for _, vdev := range live.Status.Vdevs {
		if vdev.Auxiliary() && vdev.GUID != "" && !slices.Contains(guids, vdev.GUID) {
			guids = append(guids, vdev.GUID)
		}
	}
	return guids
}

// OwnAuxiliary reports whether a label belongs to a cache device or spare with one of these guids.
func OwnAuxiliary(label host.PoolLabel, guids []string) bool {
	return (label.State == host.PoolSpare || label.State == host.PoolCache) &&
		slices.Contains(guids, strconv.FormatUint(label.VdevGUID, 10))
}

// OwnLabel reports whether a label is one that our pool left on a disk: on a disk that was in the pool when the pool was destroyed, or on
// one that was taken out before, such as a replaced disk.
func OwnLabel(label host.PoolLabel, guid string) bool {
	return (label.State == host.PoolDestroyed || label.Left()) && strconv.FormatUint(label.GUID, 10) == guid
}

// recorded reports whether the status has all guids by which a later agent can identify the labels of the destroyed pool. A guid that is
// still missing after a status with this message was written did not fit into it, and the destruction does not wait for it.
func (s State) recorded(message string) bool {
	pool := s.Pool
	if pool.Status.GUID != s.Live.GUID {
		return false
	}
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	return len(AuxiliaryGUIDs(pool, s.Live)) == len(AuxiliaryGUIDs(pool, nil)) || ready != nil && ready.Message == message
}
