package workload

import "github.com/storagebench/storagebench/api/v1alpha1"

func postgres(w *v1alpha1.Workload) (Traits, bool) {
	if w.Postgres == nil {
		return Traits{}, false
	}
	return Traits{
		Name: "postgres", Spec: w.Postgres, Duration: length(w.Postgres.Duration), RampUp: length(w.Postgres.RampUp),
		Files: true, RefusesRoot: true, HidesCache: noReads, File: w.Postgres.Script, Postgres: true, Yields: transactions,
		Once: "each round of postgres would reload its data: remove it, and set postgres.duration",
		Moves: func(int64) int64 {
			if w.Postgres.DatabaseSize == nil {
				return 0
			}
			return 3 * w.Postgres.DatabaseSize.Value() // the tables, their WAL, their vacuum
		},
	}, true
}
