package workload

import (
	"regexp"
	"strconv"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func postgres(w *v1alpha1.Workload) (Traits, bool) {
	if w.Postgres == nil {
		return Traits{}, false
	}
	return Traits{
		Name: "postgres", Spec: w.Postgres, Duration: length(w.Postgres.Duration), RampUp: length(w.Postgres.RampUp),
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

// sizeSetting is a size in postgresql.conf. Without a unit, max_wal_size is in MB.
var sizeSetting = regexp.MustCompile(`^([0-9]{1,9})(kB|MB|GB|TB)?$`)

// WALBytes is how much a write-ahead log can need: max_wal_size, and a quarter more, for PostgreSQL goes on while a checkpoint lasts. 0 if
// that is not known.
func WALBytes(given *v1alpha1.PostgresWorkload) int64 {
	most := int64(defaultMaxWAL)
	if text, set := given.Settings["max_wal_size"]; set {
		match := sizeSetting.FindStringSubmatch(string(text))
		if match == nil {
			return 0
		}
		number, _ := strconv.ParseInt(match[1], 10, 64) // at most nine digits
		unit := map[string]int64{"kB": 1 << 10, "": 1 << 20, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}[match[2]]
		if number > 1<<60/unit {
			return 0 // PostgreSQL refuses it
		}
		most = number * unit
	}
	return most + most/4
}
