package foresee

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// job is a job of a fio job file.
type job struct{ fio.UserJob }

// fileJobs are the jobs of a phase, as far as the spec shows them. A phase without a job file is known to have none.
type fileJobs struct {
	jobs  []job
	known bool
	// laidOut is the least that fio writes before the jobs begin.
	laidOut int64
}

// jobsByFile caches parsed job files: usually all variants of a phase have the same file.
type jobsByFile map[string]fileJobs

func (f jobsByFile) of(phase *v1alpha1.Phase) fileJobs {
	switch {
	case phase.Measure == nil || phase.Measure.Workload.FIO == nil:
		return fileJobs{known: true}
	case phase.Measure.Workload.FIO.JobFileFrom != nil:
		return fileJobs{}
	}
	text := phase.Measure.Workload.FIO.JobFile
	found, read := f[text]
	if !read {
		file, err := fio.ParseUserFile(text)
		found.known, found.laidOut = err == nil, file.LaidOut() // an invalid file is reported elsewhere
		for _, one := range file.Jobs() {
			found.jobs = append(found.jobs, job{one})
		}
		f[text] = found
	}
	return found
}

// has reports whether an option is set to something other than 0.
func (j job) has(name string) bool {
	value, is := j.Set[name]
	return is && (value == "" || strings.Trim(value, "0") != "")
}

// does reports whether any job satisfies a condition. It returns true for an unknown file, because its jobs may do so.
func (f fileJobs) does(what func(job) bool) bool {
	return !f.known || slices.ContainsFunc(f.jobs, what)
}

func isMetadata(one *task) bool {
	return one.Phase.Measure != nil && one.Phase.Measure.Workload.Metadata != nil
}

func isScan(one *task) bool {
	return one.Phase.Measure != nil && one.Phase.Measure.Workload.Scan != nil
}

// onlyMetadata reports whether there are metadata phases, and no other phase that measures something.
func (on places) onlyMetadata() bool {
	measures := func(one *task) bool { return one.Phase.Measure != nil && !isMetadata(one) }
	return on.does(isMetadata) && !on.does(measures)
}

// readsData reports whether a phase measures reads of data on the volume.
func readsData(one *task) bool {
	if one.Phase.Measure == nil || one.IsWAL() {
		return false
	}
	given := &one.Phase.Measure.Workload
	return given.OLTP != nil || given.Scan != nil || given.Postgres != nil || one.file.does(job.Reads)
}

// writesData reports whether a phase measures writes.
func writesData(one *task) bool {
	if one.Phase.Measure == nil {
		return one.Phase.Fragment != nil
	}
	switch given := &one.Phase.Measure.Workload; {
	case given.Redo != nil, given.Metadata != nil:
		return true
	case given.OLTP != nil:
		return given.OLTP.UpdatePercent > 0
	case given.Postgres != nil:
		return given.Postgres.Mode != selectOnly
	}
	return one.file.does(job.Writes)
}

// selectOnly is the mode of postgres whose transactions only read.
const selectOnly = "SelectOnly"

// syncs reports whether a phase measures synchronous writes.
func syncs(one *task) bool {
	if one.Phase.Measure == nil {
		return false
	}
	switch given := &one.Phase.Measure.Workload; {
	case given.Redo != nil:
		return true
	case given.Postgres != nil:
		return given.Postgres.Mode != selectOnly && given.Postgres.Settings["synchronous_commit"] != "off"
	case given.Metadata != nil:
		return given.Metadata.Sync == "File"
	}
	return one.file.does(job.syncs)
}

// duplicates reports whether a phase may write the same record twice. Empty pages and segments of PostgreSQL are alike, and a segment of a
// log equals its archived copy. Jobs may repeat blocks.
func duplicates(one *task, record uint64) bool {
	if databaseOf(&one.Phase) != nil || one.Archives != "" {
		return true
	}
	return one.file.does(func(j job) bool {
		block := j.block()
		whole := block == 0 || record == 0 || block >= record
		return j.has("dedupe_percentage") && whole || j.has("zero_buffers") || j.Set["scramble_buffers"] == "0"
	})
}

// compressible reports whether a phase may write data that compresses by itself, in records of the given size.
func compressible(one *task, record uint64) bool {
	return databaseOf(&one.Phase) != nil || one.file.does(func(j job) bool {
		block := j.block()
		random := j.has("refill_buffers") || block > 0 && record > 0 && block >= record
		return j.Writes() && (!random || j.has("buffer_compress_percentage") || j.has("zero_buffers") || j.has("dedupe_percentage"))
	})
}

func (on places) compresses() bool {
	return on.any(func(p *place) bool {
		return slices.ContainsFunc(p.tasks, func(one task) bool { return compressible(&one, p.record()) })
	})
}

var plainBlock = regexp.MustCompile(`^[0-9]{1,9}[kKmM]?$`)

// block returns the size of the requests of a job. 0 if there are several sizes, or if the size is unknown.
func (j job) block() uint64 {
	for _, several := range []string{"bssplit", "bsrange", "blocksize_range", "bs_unaligned", "blocksize_unaligned"} {
		if j.has(several) {
			return 0
		}
	}
	text := cmp.Or(j.Set["bs"], j.Set["blocksize"], "4k")
	if !plainBlock.MatchString(text) {
		return 0
	}
	bytes, _ := settings.Bytes(text)
	return bytes
}

// written returns the compressible share of the data that a fill or fragment phase writes. told is false if the phase does not declare it.
func written(one *task) (percent float64, told bool) {
	var share v1alpha1.Share
	switch {
	case one.Phase.Fill != nil:
		share = cmp.Or(one.Phase.Fill.Compressibility, "0%")
	case one.Phase.Fragment != nil:
		share = one.Phase.Fragment.Compressibility
	}
	percent, err := share.Percent()
	return percent, err == nil
}

func fillsSpace(one *task) bool { percent, _ := written(one); return percent > 0 }

// nothingSmaller finds a comparison of compression although all data is random and does not compress.
func nothingSmaller(c *comparison, on places) (field, message string) {
	at := on.differs("compression")
	if at == nil || c.arrives || on.compresses() || on.does(fillsSpace) {
		return "", ""
	}
	return at.field(c.spec, "compression"), "it only costs time, because no phase writes data that compresses: write compressibility: " +
		"60% in the fill, or buffer_compress_percentage=60 in a fio job"
}

// chunk is the unit of data that the compressible share applies to.
const chunk = fio.CompressChunk

// recordsStay finds compression of records that are too small to shrink: a compressed record still takes whole sectors.
func recordsStay(c *comparison, on places) (field, message string) {
	byRecord, byCompression := on.any(func(p *place) bool { return p.record() != on[0].record() }), on.differs("compression") != nil
	var stays *place
	smaller, unknown := false, false
	for i := range on {
		p := &on[i]
		switch does, known := p.shrinks(); {
		case p.get("compression") == "off":
		case !known:
			unknown = true
		case does:
			smaller = true
		case stays == nil:
			stays = p
		}
	}
	compared := byRecord && smaller || byCompression && !smaller && !unknown && !on.compresses() && !c.arrives
	if stays == nil || !compared {
		return "", ""
	}
	percent, at := stays.share()
	record, sector := settings.Size(stays.record()), settings.Size(stays.sector())
	words := fmt.Sprintf("records of %s do not become smaller with compressibility %g%% and sectors of %s: ", record, percent, sector)
	if stays.record() <= stays.sector() {
		return at, words + "write larger records, or a smaller pool.ashift"
	}
	return at, words + "write 60%, which halves them"
}

// share returns the compressible share that all fills and fragments on the volume have in common, and the field that sets it. The share is
// 0 if they differ.
func (p *place) share() (percent float64, at string) {
	shares := map[float64]bool{}
	for i := range p.tasks {
		if one, told := written(&p.tasks[i]); told {
			shares[one] = true
			if at == "" {
				kind := ".fill"
				if p.tasks[i].Phase.Fragment != nil {
					kind = ".fragment"
				}
				at = p.phaseField(&p.tasks[i]) + kind + ".compressibility"
			}
		}
	}
	if len(shares) != 1 {
		return 0, at
	}
	return slices.Collect(maps.Keys(shares))[0], at
}

func (p *place) sector() uint64 { return 1 << cmp.Or(p.Pool.Ashift, 12) }

// shrinks reports whether compression makes the records of a fill take less space, and whether that is known. No algorithm shrinks the
// random part of a record, and each adds only a little overhead.
func (p *place) shrinks() (does, known bool) {
	percent, _ := p.share()
	record, algorithm := p.record(), p.get("compression")
	draid := len(p.Pool.Vdevs) > 0 && strings.HasPrefix(string(p.Pool.Vdevs[0].Type), "draid")
	usual := algorithm == "on" || algorithm == "lz4" || strings.HasPrefix(algorithm, "zstd") || strings.HasPrefix(algorithm, "gzip")
	if percent == 0 || record < chunk || draid || !usual || p.Dataset.FSType != "" {
		return false, false
	}
	least, most := p.compressed(percent)
	switch {
	case p.inSectors(least) >= record:
		return false, true
	case p.inSectors(most) < record && most <= record-record/8:
		return true, true
	}
	return false, false
}

// compressed bounds the size of a record with a compressible share.
func (p *place) compressed(percent float64) (least, most uint64) {
	random := uint64(float64(p.record()) * (100 - percent) / 100)
	return random + 1, random + p.record()/32 + 64
}

// inSectors rounds up to whole sectors.
func (p *place) inSectors(bytes uint64) uint64 {
	sector := p.sector()
	return (bytes + sector - 1) / sector * sector
}

// stored is the most space that a record of a fill takes.
func (p *place) stored() uint64 {
	if does, _ := p.shrinks(); !does {
		return p.record()
	}
	percent, _ := p.share()
	_, most := p.compressed(percent)
	return p.inSectors(most)
}

// phaseField returns the field of the phase of a task.
func (p *place) phaseField(does *task) string {
	return p.slot.PhaseField(slices.IndexFunc(p.slot.Phases, func(one v1alpha1.Phase) bool { return one.Name == does.Phase.Name }))
}

// JobFileField is the field of a job file in its phase.
const JobFileField = ".measure.workload.fio.jobFile"

// zerosWritten finds jobs that write zeros, which ZFS does not store if compression is on.
func zerosWritten(_ *comparison, on places) (field, message string) {
	return on.firstJob(func(p *place, j job) string {
		value := p.get("compression")
		if !j.has("zero_buffers") || !j.Writes() || value == "" || value == "off" || value == changes {
			return ""
		}
		return fmt.Sprintf("job [%s] writes zeros, which ZFS does not store with compression: %s: write buffer_compress_percentage=60 in place "+
			"of zero_buffers", j.Name, value)
	})
}

// blockRepeated finds jobs without refill_buffers, which repeat one block with few differences. A record of several such blocks compresses
// to little more than one block, if they lie within the 64 KiB in which lz4 finds repetitions.
func blockRepeated(_ *comparison, on places) (field, message string) {
	return on.firstJob(func(p *place, j job) string {
		block, record, value := j.block(), p.record(), p.get("compression")
		own := j.has("refill_buffers") || j.has("zero_buffers") || j.has("buffer_compress_percentage") || j.has("dedupe_percentage")
		alike := block > 0 && block <= 32<<10 && 2*block <= record && slices.Contains([]string{"", "1"}, j.Set["iodepth"])
		if own || !alike || j.Mode() != fio.Write || slices.Contains([]string{"", "off", "zle", changes}, value) {
			return ""
		}
		return fmt.Sprintf("job [%s] writes the same block of %s again and again, so that a record of %s compresses to little more than one: "+
			"write refill_buffers=1", j.Name, settings.Size(block), settings.Size(record))
	})
}

// fillOverwritten finds jobs that overwrite the data of a fill with other data.
func fillOverwritten(_ *comparison, on places) (field, message string) {
	if on.all("compression", "off") {
		return "", ""
	}
	return on.firstJob(func(p *place, j job) string {
		if !j.ofFill() || !j.Writes() || j.has("buffer_compress_percentage") || j.has("zero_buffers") {
			return ""
		}
		percent, _ := p.share()
		if percent == 0 {
			return ""
		}
		return fmt.Sprintf("job [%s] overwrites the data of the fill with other data, which does not compress like that: write "+
			"buffer_compress_percentage=%.0f and buffer_compress_chunk=4k", j.Name, percent)
	})
}

// firstJob returns the first problem of a job in any variant, and its field.
func (on places) firstJob(wrong func(*place, job) string) (field, message string) {
	for i := range on {
		p := &on[i]
		for j := range p.tasks {
			for _, one := range p.tasks[j].file.jobs {
				if message = wrong(p, one); message != "" {
					return p.phaseField(&p.tasks[j]) + JobFileField, message
				}
			}
		}
	}
	return "", ""
}
