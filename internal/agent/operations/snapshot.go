package operations

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
)

var snapshotKind = traits{begin: beginSnapshot, stage: snapshotStage}

func beginSnapshot(state State) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	if state.Snapshot.Exists {
		return "", refuses(v1alpha1.ReasonSnapshotExists,
			"snapshot %s already exists, and this operation did not take it: choose another name", state.Snapshot.Name)
	}
	return "", nil
}

func snapshotStage(state State) operationStage {
	snapshot := state.Snapshot
	switch {
	case state.ours(snapshot):
		return state.timed(done([]v1alpha1.OperationMetric{metric("referencedBytes", snapshot.ReferencedBytes)}, "snapshot %s is taken",
			snapshot.Name))
	case snapshot.Exists:
		return failedStage(v1alpha1.ReasonSnapshotExists, "snapshot %s was taken by others meanwhile: choose another name", snapshot.Name)
	}
	return pending("taking snapshot %s", snapshot.Name)
}
