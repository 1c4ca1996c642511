package foresee

import (
	"cmp"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/workload"
)

// level is how full a volume is after some phases of a run.
type level struct {
	// least and most bound the size of the volume in bytes, if asked bytes were requested. most is 0 if the size is unknown.
	least, most, asked int64
	// block is true if the volume is a device. plain is true if data is stored uncompressed, even if it is compressible.
	block, plain bool
	// reached is the share of an earlier fill, and by is its phase. The keys are Volume and Pool, which the share can refer to.
	reached map[string]float64
	by      map[string]v1alpha1.PhaseName
	// taken is the least space that the data takes, data the most data there can be. Compressible data can be larger than the space.
	taken, data  int64
	compressible bool
}

// checkFills tracks how full the volumes become. Otherwise, a level that is already reached, data that does not fit and parts that are too
// small would be found only when the phase runs.
func checkFills(_ *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	volumes := levelsOf(slot.Target)
	var problems []error
	for i := range slot.Phases {
		for _, part := range workload.Measured(&slot.Phases[i]) {
			if problem := volumes.after(slot, &part); problem != "" {
				problems = append(problems, design.RefuseField(slot.PhaseField(i), v1alpha1.ReasonSpecInvalid, "phase %s of variant %q: %s",
					part.Phase.Name, slot.Variant, problem))
			}
		}
		for _, action := range operate.Of(&slot.Phases[i]) {
			if action.DestroySnapshot != nil || action.DestroyDataset != nil || action.Copy != nil || action.Replicate != nil {
				// From here on, nothing is known.
				for _, one := range volumes {
					*one = level{block: one.block}
				}
			}
		}
	}
	return errors.Join(problems...)
}

// levels maps each volume of a target to how full it is.
type levels map[string]*level

// after applies a phase, or one of its workloads, to its volume. It returns why the volume is too small or too full.
func (l levels) after(slot *design.Slot, part *workload.Part) (problem string) {
	phase := &part.Phase
	on := l[string(design.VolumeOf(phase))]
	switch {
	case on == nil: // a phase has made the volume, or it does not exist, which is reported elsewhere
	case phase.Fill != nil:
		return on.fill(phase, hasSize(slot.Target, phase))
	case phase.Free != nil: // a later fill finds room again
		*on = level{block: on.block}
	case phase.Fragment != nil:
		return on.tooSmall(1, blockOf(phase.Fragment.BlockSize, 8<<10), "the blocks of fragment")
	case part.IsWAL():
		return on.log(phase.Measure.Workload.Postgres)
	case phase.Measure != nil:
		return on.measure(&phase.Measure.Workload)
	}
	return ""
}

// hasSize reports whether the size of the volume of a phase is specified.
func hasSize(target v1alpha1.Target, phase *v1alpha1.Phase) bool {
	for _, one := range volume.TargetVolumes(target) {
		if one.Dataset != nil && one.Name == string(design.VolumeOf(phase)) {
			return one.Dataset.Size != nil
		}
	}
	return true
}

// levelsOf returns the levels of the empty volumes. The runner refuses a file system of less than half the requested size. It fills one
// that is up to a quarter and 64 MiB larger; of a larger one, it uses only the requested size. A device of a StorageClass may be larger by
// any amount.
func levelsOf(target v1alpha1.Target) levels {
	empty := levels{}
	if class := target.StorageClass; class != nil {
		size := class.Size.Value()
		empty[naming.VolumeData] = &level{least: size / 2, most: size + size/4 + 64<<20, asked: size, plain: true}
		if class.VolumeMode == corev1.PersistentVolumeBlock {
			empty[naming.VolumeData] = &level{block: true}
		}
		return empty
	}
	for _, one := range volume.TargetVolumes(target) {
		compression := cmp.Or(one.Dataset.Properties["compression"], one.Pool.RootProperties["compression"])
		at := &level{block: volume.Mode(one) == corev1.PersistentVolumeBlock, plain: one.Dataset.FSType != "" || compression == "off"}
		if one.Dataset.Size != nil {
			at.asked = one.Dataset.Size.Value()
			at.least, at.most = at.asked/2, at.asked
		}
		empty[one.Name] = at
	}
	return empty
}

// fill applies a fill to the volume, or says why it would fail, and what to write instead.
func (l *level) fill(phase *v1alpha1.Phase, hasSize bool) string {
	fill, of := phase.Fill, cmp.Or(phase.Fill.Of, "Volume")
	if of == "Pool" && hasSize {
		return "fill.of: Pool needs a volume that has its pool for itself: remove size from the dataset, or write of: Volume"
	}
	compressible, _ := fill.Compressibility.Percent() // an unset share gives 0 and an error
	l.compressible = l.compressible || compressible > 0
	if fill.Size != nil {
		return l.fillSize(fill.Size.Value())
	}
	share, err := fill.To.Percent()
	if err != nil { // the rules of the API report it
		return ""
	}
	if before, filled := l.reached[of]; filled && share <= before {
		return fmt.Sprintf("it fills to %s, and phase %s has filled to %g%% before, so nothing is left to write: write more than %g%%, or "+
			"remove the phase", fill.To, l.by[of], before, before)
	}
	if l.reached == nil {
		l.reached, l.by = map[string]float64{}, map[string]v1alpha1.PhaseName{}
	}
	l.reached[of], l.by[of] = share, phase.Name
	if of != "Volume" || l.most == 0 {
		l.least, l.most = 0, 0 // from here on, nothing is known
		return ""
	}
	wanted := part(share, l.most)
	if l.taken >= wanted {
		return fmt.Sprintf("it fills to %s, which are %s at most, and %s were written before: write a larger share, or remove the phase",
			fill.To, quantity(wanted), quantity(l.taken))
	}
	l.taken, l.data = max(l.taken, part(share, l.least)/100*99), wanted+l.most/100
	return ""
}

func (l *level) fillSize(bytes int64) string {
	l.data = stats.Plus(l.data, bytes)
	if l.compressible {
		return ""
	}
	if l.taken = stats.Plus(l.taken, bytes); l.most > 0 && l.taken > l.most {
		return fmt.Sprintf("with what was written before, the volume would hold %s at least, and it has %s at most%s: write less, or make it "+
			"larger", quantity(l.taken), quantity(l.most), l.larger())
	}
	return ""
}

func part(share float64, of int64) int64 { return int64(share / 100 * float64(of)) }

// measure says why the data is too small for a workload, or the remaining space too little.
func (l *level) measure(given *v1alpha1.Workload) string {
	switch {
	case given.Scan != nil:
		return l.tooSmall(int64(cmp.Or(given.Scan.Regions, 8)), blockOf(given.Scan.BlockSize, 128<<10), "regions of the scan")
	case given.OLTP != nil:
		return l.tooSmall(int64(cmp.Or(given.OLTP.Workers, 8)), blockOf(given.OLTP.BlockSize, 8<<10), "workers of oltp")
	case given.Redo != nil:
		return l.lacks(int64(cmp.Or(given.Redo.Writers, 6))*workload.SmallestLog, l.half(), "the logs of redo need",
			"fill less, use fewer writers")
	case given.Metadata != nil:
		files := int64(cmp.Or(given.Metadata.Workers, 4)) * int64(cmp.Or(given.Metadata.FilesPerWorker, 1000))
		return l.lacks(files*blockOf(given.Metadata.FileSize, 4<<10), l.half(), "the files of metadata need", "fill less, write less")
	case given.FIO != nil && !l.block: // jobs on a device use all of it, and lay out no files
		file, _ := fio.ParseUserFile(given.FIO.JobFile) // an invalid file is reported elsewhere
		if needed, job := file.DataBytes(); l.data > 0 && l.most > 0 && !l.compressible && needed > l.data {
			return fmt.Sprintf("job [%s] needs %s of data, and at most %s was written before: remove its size, so that it uses all of the data, or "+
				"fill more", job, quantity(needed), quantity(l.data))
		}
		return l.lacks(file.LaidOut(), l.room(), "the files of its jobs need", "write a smaller size in the job file, fill less")
	case given.Postgres != nil:
		return l.database(given.Postgres)
	}
	return ""
}

// database returns a problem if the volume is too small for the database, or for a log on the same volume whose max_wal_size is set:
// PostgreSQL's default of 1GB is seldom reached.
func (l *level) database(given *v1alpha1.PostgresWorkload) (problem string) {
	if !given.Keep && l.plain {
		problem = l.lacks(sizeOf(given), l.room(), "the database needs", "write a smaller databaseSize, fill less")
	}
	if _, written := given.Settings["max_wal_size"]; problem == "" && written && given.WALVolume == "" {
		problem = l.log(given)
	}
	return problem
}

// log returns a problem if the volume is too small for a write-ahead log: PostgreSQL stops when the volume is full.
func (l *level) log(given *v1alpha1.PostgresWorkload) string {
	return l.lacks(workload.WALBytes(given), l.room(), "the write-ahead log (max_wal_size and a quarter) needs up to",
		"write a smaller max_wal_size in settings")
}

// tooSmall returns a problem if there is too little data for the parts that a phase divides it into.
func (l *level) tooSmall(parts, block int64, what string) string {
	if l.data == 0 || l.most == 0 || l.compressible || l.data >= parts*block {
		return ""
	}
	return fmt.Sprintf("%s of data is too little for %d %s with blocks of %s: fill at least %s, or use fewer or smaller ones",
		quantity(l.data), parts, what, quantity(block), quantity(parts*block))
}

// room returns the most space that the data leaves on the volume.
func (l *level) room() int64 { return l.most - l.taken }

// half returns the part of that space that a workload uses: all of a device, or half of a file system.
func (l *level) half() int64 {
	if l.block {
		return l.room()
	}
	return l.room() / 2
}

// lacks returns a problem if a workload needs more space than there is room.
func (l *level) lacks(needed, room int64, what, remedy string) string {
	if l.most == 0 || needed <= room {
		return ""
	}
	return fmt.Sprintf("%s %s, and at most %s of the volume is left for that%s: %s, or make the volume larger", what, quantity(needed),
		quantity(max(room, 0)), l.larger(), remedy)
}

// larger returns a note if a volume can be larger than requested.
func (l *level) larger() string {
	if l.most == l.asked {
		return ""
	}
	return fmt.Sprintf(" (a volume of %s may be a quarter larger)", quantity(l.asked))
}

// quantity formats bytes as in a spec.
func quantity(bytes int64) string {
	if bytes%(1<<10) != 0 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

func blockOf(given *v1alpha1.BlockSize, otherwise int64) int64 {
	if given == nil || given.Value() == 0 {
		return otherwise
	}
	return given.Value()
}
