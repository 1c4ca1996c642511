package operations

var destroySnapshotKind = traits{job: true, once: true, begin: beginDestroySnapshot, stage: destroys("snapshot", ofSnapshot),
	size: sizeOf(ofSnapshot)}

func ofSnapshot(state State) Object { return state.Snapshot }

// beginDestroySnapshot records the guid of the snapshot: a later snapshot of the same name has another guid.
func beginDestroySnapshot(state State) (string, *obstacle) {
	if missing := state.snapshotMissing(); missing != nil {
		return "", missing
	}
	meant := state.Operation.Spec.Action.DestroySnapshot.GUID
	if another := isMeant(meant, "snapshot "+state.Snapshot.Name, state.Snapshot.GUID); another != nil {
		return "", another
	}
	return state.Snapshot.GUID, nil
}
