package foresee

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/workload"
)

// logSettings are settings of the write-ahead log. Transactions that only read write nothing to it.
var logSettings = []string{"full_page_writes", "wal_compression", "wal_sync_method", "wal_buffers", "wal_init_zero", "wal_recycle",
	"commit_delay", "synchronous_commit"}

// foreseeReadOnly warns if phases that only read compare settings of the write-ahead log.
func foreseeReadOnly(spec *v1alpha1.StorageBenchmarkSpec, variants []design.Slot, f *Foresight) {
	for i := range variants {
		for j := range variants[i].Phases {
			if given := databaseOf(&variants[i].Phases[j]); given != nil && given.Mode != selectOnly {
				return
			}
		}
	}
	for _, one := range settingsOf(spec) {
		if slices.Contains(logSettings, one.name) && (one.further || strings.Contains(one.field, ".set[")) {
			f.warn(wholePath(one.field), "it has no effect, because all postgres phases are SelectOnly, which writes no log: write mode: TPCBLike")
			return
		}
	}
}

// pageSettings are settings of full page images, with their defaults: at its first change after a checkpoint, PostgreSQL logs the whole
// page.
var pageSettings = []struct{ name, otherwise string }{{"full_page_writes", "on"}, {"wal_compression", "off"}}

// rareEnough is the shortest interval of checkpoints at which whole pages cost about as much as with PostgreSQL's default of 5 minutes.
const rareEnough = 150 * time.Second

// foreseeCheckpoints warns if phases compare settings of whole pages while checkpoints are far more frequent than usual.
func foreseeCheckpoints(variants []design.Slot, f *Foresight) {
	seen := map[string]string{}
	for i := range variants {
		slot := &variants[i]
		for j := range slot.Phases {
			given := databaseOf(&slot.Phases[j])
			every := checkpointsOf(given)
			if every >= rareEnough {
				continue
			}
			for _, one := range pageSettings {
				key, value := string(slot.Phases[j].Name)+" "+one.name, cmp.Or(string(given.Settings[one.name]), one.otherwise)
				if before, known := seen[key]; known && before != value {
					f.warn(slot.PhaseField(j)+".measure.workload.postgres.settings", fmt.Sprintf("%s acts on the pages that change after a "+
						"checkpoint, and the runner sets checkpoint_timeout to %ds because the phase is short: write checkpoint_timeout: 5min, which is "+
						"the default of PostgreSQL, and a duration of several such intervals", one.name, int(every.Seconds())))
					return
				}
				seen[key] = value
			}
		}
	}
}

// checkpointsOf returns the interval of checkpoints that the runner sets. It returns rareEnough for a database that writes nothing, and for
// one whose spec sets checkpoint_timeout or max_wal_size.
func checkpointsOf(given *v1alpha1.PostgresWorkload) time.Duration {
	if given == nil || given.Mode == selectOnly || given.Settings["checkpoint_timeout"] != "" || given.Settings["max_wal_size"] != "" {
		return rareEnough
	}
	duration := 5 * time.Minute // the default of the API
	if given.Duration != nil {
		duration = given.Duration.Duration.Duration
	}
	return workload.CheckpointTimeout(duration)
}

// blankRows finds a comparison of compression on the rows of pgbench, which are mostly blanks.
func blankRows(c *comparison, on places) (field, message string) {
	rows := func(one *task) bool {
		given := databaseOf(&one.Phase)
		return given != nil && given.Mode != "Script" && !one.IsWAL()
	}
	others := func(one *task) bool { return !rows(one) && (compressible(one, 0) || fillsSpace(one)) }
	at := on.differs("compression")
	if at == nil || c.arrives || !on.does(rows) || on.does(others) {
		return "", ""
	}
	return at.field(c.spec, "compression"), "the rows of pgbench are mostly blanks and compress far better than real data, so that the " +
		"compressed database may fit into the ARC: write mode: Script with data like yours, or compare fills with compressibility"
}
