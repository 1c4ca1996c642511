package results

import (
	"fmt"
	"time"
)

// PoolAge says how much a pool has been used, up to and including a run.
type PoolAge struct {
	// Since is when the pool was created.
	Since time.Time `json:"since"`
	// Experiments is the number of experiments on the pool, including that of the run.
	Experiments int32 `json:"experiments"`
	// Runs is the number of runs on the pool, including this one.
	Runs int32 `json:"runs"`
}

// AgeOf returns the age of a pool after some runs. If the pool was recreated in between, the newest pool counts. It returns nil if
// experiments do not pass the pool on.
func AgeOf(runs []RunResult) *PoolAge {
	var newest *PoolAge
	for i := range runs {
		age := runs[i].PoolAge
		if age != nil && (newest == nil || age.Since.After(newest.Since) || age.Since.Equal(newest.Since) && age.Runs > newest.Runs) {
			newest = age
		}
	}
	return newest
}

// Words describes the age in one sentence.
func (a *PoolAge) Words() string {
	switch {
	case a == nil:
		return ""
	case a.Experiments == 1:
		return fmt.Sprintf("the age of the pool begins with this experiment, at %s", a.Since.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("the pool was aged over %d experiments (%d runs) since %s", a.Experiments, a.Runs, a.Since.UTC().Format(time.RFC3339))
}
