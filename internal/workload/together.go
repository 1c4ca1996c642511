package workload

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Part is one of several workloads that run together, as a phase of its own with one workload.
type Part struct {
	Name  string
	Phase v1alpha1.Phase
	// Field is its path in the measure phase.
	Field string
	// Archives names the redo workload whose segments this one copies. Archived says that another workload copies the segments of this one.
	Archives string
	Archived bool
}

// PartsOf returns the workloads of a phase that runs several together, and none for other phases. They share their specs with the phase.
// The archiver of a log is a separate part, after all others.
func PartsOf(phase *v1alpha1.Phase) []Part {
	if phase.Measure == nil {
		return nil
	}
	var parts, archivers []Part
	add := func(name, field string, volume v1alpha1.VolumeName, given v1alpha1.Workload) {
		part := Part{Name: name, Phase: *phase, Field: field}
		part.Phase.Volume = cmp.Or(volume, phase.Volume)
		part.Phase.Measure = &v1alpha1.MeasurePhase{Cache: phase.Measure.Cache, Workload: given}
		if given.Redo != nil && given.Redo.Archive != nil {
			archiver, log := part, *given.Redo
			archiver.Name, archiver.Field, archiver.Archives = archiverOf(phase, name), field+".archive", name
			archiver.Phase.Volume = cmp.Or(given.Redo.Archive.Volume, part.Phase.Volume)
			log.Archive = nil
			part.Archived, part.Phase.Measure = true, &v1alpha1.MeasurePhase{Cache: phase.Measure.Cache, Workload: v1alpha1.Workload{Redo: &log}}
			archiver.Phase.Measure = part.Phase.Measure
			archivers = append(archivers, archiver)
		}
		parts = append(parts, part)
	}
	for i := range phase.Measure.Workloads {
		one := &phase.Measure.Workloads[i]
		given := alone(one)
		add(string(one.Name), fmt.Sprintf("workloads[%d].%s", i, TraitsOf(&given).Name), one.Volume, given)
	}
	if redo := phase.Measure.Workload.Redo; redo != nil && redo.Archive != nil {
		add("redo", "workload.redo", "", phase.Measure.Workload)
	}
	return append(parts, archivers...)
}

// archiverOf is the name of the archiver of a log.
func archiverOf(phase *v1alpha1.Phase, log string) string {
	if len(phase.Measure.Workloads) == 0 {
		return "archive"
	}
	return log + "-archive"
}

// Traits returns the traits of its workload.
func (p *Part) Traits() Traits {
	traits, _ := PhaseTraits(&p.Phase)
	switch {
	case p.Archives != "":
		return Traits{Name: "archive", Spec: traits.Spec, Duration: traits.Duration, HidesCache: noReads, Writes: "archives", Files: true,
			Yields: reads + "|" + writes + "|" + syncs + "|" + archived}
	case p.Archived:
		// Since version 2, the longest gap ends with the time of the measurement, and not with the appends that are then under way.
		traits.Version = 2
		traits.Yields += "|" + commits
	}
	return traits
}

// Version says what the numbers of the workload mean; see Version of a phase.
func (p *Part) Version() string { return p.Traits().version() }

// alone converts a named workload to the workload of a phase. A repeated scan has only a block size, so the other fields of the scan keep
// their defaults.
func alone(one *v1alpha1.NamedWorkload) v1alpha1.Workload {
	workload := v1alpha1.Workload{OLTP: one.OLTP, Redo: one.Redo}
	if one.Scan != nil {
		workload.Scan = &v1alpha1.ScanWorkload{BlockSize: one.Scan.BlockSize}
	}
	return workload
}

// WAL is the name of the part for PostgreSQL's write-ahead log on a volume of its own.
const WAL = "wal"

// WALOf returns the write-ahead log as a phase on its own volume, or false if it is on the volume of the data. It is not a workload: the
// figures of PostgreSQL belong to the phase itself.
func WALOf(phase *v1alpha1.Phase) (wal Part, apart bool) {
	if phase.Measure == nil || phase.Measure.Workload.Postgres == nil || phase.Measure.Workload.Postgres.WALVolume == "" {
		return Part{}, false
	}
	given := *phase.Measure.Workload.Postgres
	wal = Part{Name: WAL, Field: "workload.postgres.walVolume", Phase: *phase}
	wal.Phase.Volume, given.WALVolume = given.WALVolume, ""
	wal.Phase.Measure = &v1alpha1.MeasurePhase{Cache: phase.Measure.Cache, Workload: v1alpha1.Workload{Postgres: &given}}
	return wal, true
}

// IsWAL reports whether the part is a write-ahead log on another volume, and not a workload.
func (p *Part) IsWAL() bool {
	return p.Name == WAL && p.Phase.Measure != nil && p.Phase.Measure.Workload.Postgres != nil
}

// Named returns the parts of a phase that have figures under their own name, each with its volume: workloads that run together, or a
// write-ahead log on another volume. It returns none for other phases.
func Named(phase *v1alpha1.Phase) []Part {
	if wal, apart := WALOf(phase); apart {
		return []Part{wal}
	}
	return PartsOf(phase)
}

// Measured returns the parts that work on one volume each: the workloads of a phase that runs several together, or else the phase itself,
// with its write-ahead log if that is on another volume.
func Measured(phase *v1alpha1.Phase) []Part {
	if parts := PartsOf(phase); len(parts) > 0 {
		return parts
	}
	part := Part{Phase: *phase}
	if traits, measures := PhaseTraits(phase); measures {
		part.Field = "workload." + traits.Name
	}
	return append([]Part{part}, Named(phase)...)
}

// together returns the traits of several workloads, which last as long as the longest of them.
func together(parts []Part) Traits {
	traits := Traits{Name: "workloads"}
	for i := range parts {
		one := parts[i].Traits()
		traits.Duration, traits.RampUp = max(traits.Duration, one.Duration), max(traits.RampUp, one.RampUp)
		traits.ReadsFill = traits.ReadsFill || one.ReadsFill
		traits.DataFiles = max(traits.DataFiles, one.DataFiles)
	}
	return traits
}

// WhyApart says why workloads cannot be measured together, and what to write instead. Empty if they can. A workload must not end early,
// because that leaves the storage to the others. No two may write to the same blocks or logs, because no application does that.
func WhyApart(parts []Part) string {
	var words []string
	same, writer, names := true, map[string]string{}, map[string]bool{}
	for i := range parts {
		traits := parts[i].Traits()
		if names[parts[i].Name] {
			return fmt.Sprintf("two workloads have the name %s: rename the one that is not an archive", parts[i].Name)
		}
		names[parts[i].Name] = true
		if traits.Duration > 0 { // others last as long as these
			words = append(words, fmt.Sprintf("%s %s", parts[i].Name, traits.Duration))
			same = same && traits.Duration == together(parts).Duration
		}
		if traits.Writes == "" {
			continue
		}
		on := fmt.Sprintf("%s of volume %s", traits.Writes, cmp.Or(parts[i].Phase.Volume, "data"))
		if other := writer[on]; other != "" {
			return fmt.Sprintf("workloads %s and %s both write to the %s: put one of them on another volume, or merge them into one with more "+
				"workers",
				other, parts[i].Name, on)
		}
		writer[on] = parts[i].Name
	}
	switch {
	case len(words) == 0:
		return "no workload says how long it lasts: add an oltp or redo workload"
	case !same:
		return "the workloads last for different times (" + strings.Join(words, ", ") + "): write the same duration for all of them"
	}
	return ""
}
