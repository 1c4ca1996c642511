package operations

var layoutScoreKind = traits{job: true, begin: beginLayoutScore, stage: jobStage}

func beginLayoutScore(state State) (string, *obstacle) { return "", state.sourceMissing() }
