package operations

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/naming"
)

var destroyDatasetKind = traits{job: true, once: true, begin: beginDestroyDataset, stage: destroys("dataset", ofSource),
	size: sizeOf(ofSource)}

func ofSource(state State) Object { return state.Source }

// beginDestroyDataset records the guid of the dataset: a later dataset of the same name has another guid.
func beginDestroyDataset(state State) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	if another := isMeant(state.Operation.Spec.Action.DestroyDataset.GUID, "dataset "+state.Source.Name, state.Source.GUID); another != nil {
		return "", another
	}
	if len(state.Users) > 0 {
		return "", waits(v1alpha1.ReasonDatasetInUse, operationSoon, "waiting until dataset %s is unused: %s", state.Source.Name,
			objects.SomeOf(state.Users))
	}
	return state.Source.GUID, nil
}

// AwaitedPoints returns the mount points at which the agent itself mounts the dataset to destroy, if the spec of the pool awaits that
// dataset. These mounts do not count as use by others.
func AwaitedPoints(state State) (points []string) {
	action := state.Operation.Spec.Action.DestroyDataset
	if action == nil || state.Pool == nil {
		return nil
	}
	for _, dataset := range state.Pool.Spec.Datasets {
		if dataset.Awaited && dataset.Path == action.Dataset {
			points = append(points, naming.MountPoint(naming.PoolName(state.Pool), dataset.Path))
		}
	}
	return points
}
