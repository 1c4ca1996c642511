package experiment

import (
	"errors"
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
)

// checkDatabases follows which databases are there, phase by phase: one that is kept has to be there, and of the same form. What a clone, a
// copy or a replica contains shows when the phase runs.
func checkDatabases(_ *v1alpha1.StorageBenchmarkSpec, slot *Slot) error {
	there := map[v1alpha1.VolumeName]*v1alpha1.PostgresWorkload{}
	made := map[v1alpha1.VolumeName]bool{}
	for _, one := range slot.volumes() {
		made[v1alpha1.VolumeName(one.Name)] = one.MadeIn != ""
	}
	var problems []error
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		if traits, measures := workload.PhaseTraits(phase); !measures || traits.Name != "postgres" {
			continue
		}
		given, on := phase.Measure.Workload.Postgres, volumeOf(phase)
		if !given.Keep {
			there[on] = given
			continue
		}
		if problem := cannotKeep(there[on], given); problem != "" && (there[on] != nil || !made[on]) {
			problems = append(problems, slot.atPhase(i, &SpecError{v1alpha1.ReasonSpecInvalid, fmt.Sprintf(
				"%s.measure.workload.postgres.keep: phase %s of variant %q: %s", slot.phaseField(i), phase.Name, slot.Variant, problem)}))
		}
	}
	return errors.Join(problems...)
}

// cannotKeep says why a phase cannot keep the database of an earlier one, and what to write instead.
func cannotKeep(before, now *v1alpha1.PostgresWorkload) string {
	switch {
	case before == nil:
		return "there is no database on the volume by then: put a postgres phase without keep before it"
	case sizeOf(before) != sizeOf(now):
		return "the database that is there has another databaseSize: write the same"
	case ptr.Deref(before.DataChecksums, true) != ptr.Deref(now.DataChecksums, true):
		return "the database that is there has other dataChecksums: write the same"
	case before.WALVolume != now.WALVolume:
		return "the log of the database that is there is on another volume: write the same walVolume"
	}
	return ""
}

func sizeOf(given *v1alpha1.PostgresWorkload) int64 {
	if given.DatabaseSize == nil {
		return 0
	}
	return given.DatabaseSize.Value()
}
