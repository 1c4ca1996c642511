package workload

import (
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func postgres(w *v1alpha1.Workload) (Traits, bool) {
	if w.Postgres == nil {
		return Traits{}, false
	}
	return Traits{
		// Since version 2, checkpoints and the WAL are those of the measurement only.
		Name: "postgres", Version: 2, Spec: w.Postgres, Duration: length(w.Postgres.Duration), RampUp: length(w.Postgres.RampUp),
		Files: true, RefusesRoot: true, HidesCache: noReads, File: w.Postgres.Script, Postgres: true, Yields: transactions,
		Once: "each round of postgres would reload its data: remove it, and set postgres.duration",
		Moves: func(int64) int64 {
			if w.Postgres.DatabaseSize == nil || w.Postgres.Keep {
				return 0
			}
			return 3 * w.Postgres.DatabaseSize.Value() // the tables, their WAL, their vacuum
		},
	}, true
}

// defaultMaxWAL is PostgreSQL's own max_wal_size.
const defaultMaxWAL = 1 << 30

// WALBytes is how much space a write-ahead log can need: max_wal_size and a quarter more, because PostgreSQL keeps writing during a
// checkpoint. 0 if that is not known.
func WALBytes(given *v1alpha1.PostgresWorkload) int64 {
	most := int64(defaultMaxWAL)
	if text, set := given.Settings["max_wal_size"]; set {
		bytes, valid := inUnits(string(text), 1<<20, pgBytes)
		if !valid || bytes > 1<<60 {
			return 0 // PostgreSQL refuses it
		}
		most = int64(bytes)
	}
	return most + most/4
}

// CheckpointTimeout returns a checkpoint timeout with which a measurement of PostgreSQL contains several checkpoints, as far as its
// duration allows: PostgreSQL accepts no timeout below 30 s, and its default is 5 min.
func CheckpointTimeout(duration time.Duration) time.Duration {
	const checkpoints, least, most = 5, 30 * time.Second, 5 * time.Minute
	return min(max(duration/checkpoints, least), most).Truncate(time.Second)
}
