package operations

var metaslabMapKind = traits{job: true, begin: beginMetaslabMap, stage: jobStage}

func beginMetaslabMap(State) (string, *obstacle) { return "", nil }
