package foresee

import (
	"errors"
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/workload"
)

// unseen stands for an unknown database: the volume was made from a dataset that is not a volume of the target.
var unseen = &v1alpha1.PostgresWorkload{}

// checkDatabases tracks the database on each volume, phase by phase: a kept database has to exist in the same form. A clone has the
// database that its source had at the time of the snapshot.
func checkDatabases(_ *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	databases, made := design.NewHolding[*v1alpha1.PostgresWorkload](slot), map[v1alpha1.VolumeName]v1alpha1.PhaseName{}
	for _, one := range slot.Volumes() {
		made[v1alpha1.VolumeName(one.Name)] = one.MadeIn
	}
	var problems []error
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		if traits, measures := workload.PhaseTraits(phase); measures && traits.Name == "postgres" {
			given, on := phase.Measure.Workload.Postgres, design.VolumeOf(phase)
			if !given.Keep {
				databases.On[on] = given
			} else if problem := cannotKeep(databases.On[on], given, made[on]); problem != "" {
				field := slot.PhaseField(i) + ".measure.workload.postgres.keep"
				problems = append(problems, design.RefuseField(field, v1alpha1.ReasonSpecInvalid, "phase %s of variant %q: %s", phase.Name,
					slot.Variant, problem))
			}
		}
		databases.After(phase)
		if _, to, copies := design.CopiesFill(slot, phase); !copies && made[to] == phase.Name {
			databases.On[to] = unseen
		}
	}
	return errors.Join(problems...)
}

// cannotKeep says why a phase cannot keep the database of an earlier one, and what to write instead. The database on a volume that a phase
// has made may have its log on another volume than the source.
func cannotKeep(before, now *v1alpha1.PostgresWorkload, maker v1alpha1.PhaseName) string {
	switch {
	case before == unseen:
		return ""
	case before == nil && maker != "":
		return fmt.Sprintf("phase %s makes the volume of data that had no database by then: put the phase that makes it, and the snapshot that "+
			"it clones, after a postgres phase", maker)
	case before == nil:
		return "there is no database on the volume by then: put a postgres phase without keep before it"
	case sizeOf(before) != sizeOf(now):
		return "the existing database has another databaseSize: write the same"
	case ptr.Deref(before.DataChecksums, true) != ptr.Deref(now.DataChecksums, true):
		return "the existing database has other dataChecksums: write the same"
	case before.WALVolume != now.WALVolume && (maker == "" || before.WALVolume == "" || now.WALVolume == ""):
		return "the write-ahead log of the existing database is on another volume: write the same walVolume"
	}
	return ""
}

func sizeOf(given *v1alpha1.PostgresWorkload) int64 {
	if given.DatabaseSize == nil {
		return 0
	}
	return given.DatabaseSize.Value()
}
