package operations

var replicateKind = traits{job: true, begin: beginReplicate, stage: jobStage}

// beginReplicate records the guid of the other pool.
func beginReplicate(state State) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	return state.ToLive.GUID, state.targetTaken()
}
