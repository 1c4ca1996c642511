package fio

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// LaidOut is the least space that the files of the jobs take before the jobs begin, because fio first writes files that are read or
// overwritten. Files that it does not write, compressible data and everything that this function does not understand count as nothing.
func (f UserFile) LaidOut() int64 {
	var total int64
	for i, job := range f.Jobs() {
		if f.laysOut(f.Sections[i], job) {
			total = min(total+job.space(true), mostBytes)
		}
	}
	return total
}

// Space is the most space that the files of a job take, with those of all of its workers. 0 if it is unknown.
func (j UserJob) Space() int64 { return j.space(false) }

func (j UserJob) space(least bool) int64 {
	workers := j.Workers()
	one := min(j.fileBytes(least), mostBytes/workers)
	if one == 0 {
		return 0
	}
	step := min(leastBytes(j.Set["offset_increment"]), mostBytes/workers/workers)
	return min(one*workers+step*(workers*(workers-1)/2), mostBytes)
}

// FileBytes is the most space that the files of the first worker of a job take. 0 if it is unknown.
func (j UserJob) FileBytes() int64 { return j.fileBytes(false) }

// fileBytes returns the size of all files of the first worker. size is that of all of them together, and filesize that of each.
func (j UserJob) fileBytes(least bool) int64 {
	total := leastBytes(j.Set["size"])
	if each := j.Set["filesize"]; each != "" {
		from, to, isRange := cutRange(each)
		if isRange && !least {
			from = to
		}
		files := max(1, leastBytes(j.Set["nrfiles"]))
		total = min(leastBytes(from), mostBytes/files) * files
	}
	if total == 0 {
		return 0
	}
	return min(total+leastBytes(j.Set["offset"]), mostBytes)
}

func cutRange(text string) (from, to string, is bool) {
	if from, to, is = strings.Cut(text, "-"); is {
		return from, to, is
	}
	return strings.Cut(text, ":")
}

// DataBytes is the least data that a fill has to have written for the jobs with filename=data, and the job that needs most.
func (f UserFile) DataBytes() (needed int64, job string) {
	for _, one := range f.Jobs() {
		if _, ofFill := one.Set["filename"]; !ofFill {
			continue
		}
		if bytes := leastBytes(one.Set["size"]) + leastBytes(one.Set["offset"]); bytes > needed {
			needed, job = bytes, one.Name
		}
	}
	return needed, job
}

// Moves is roughly how many bytes the jobs read and write, including the files that are laid out before. filled is how much a fill has
// written. Apart from these files, jobs of unknown size and jobs with a runtime count as nothing.
func (f UserFile) Moves(filled int64) int64 {
	total := f.LaidOut()
	for _, job := range f.Jobs() {
		if job.limit() > 0 {
			continue
		}
		bytes := leastBytes(job.Set["io_size"])
		if bytes == 0 {
			bytes = cmp.Or(leastBytes(job.Set["size"]), job.fileBytes(true))
		}
		if _, ofFill := job.Set["filename"]; ofFill && bytes == 0 {
			bytes = filled
		}
		total = min(total+min(bytes, mostBytes/job.Workers())*job.Workers(), mostBytes)
	}
	return total
}

// Workers is the number of workers of a job.
func (j UserJob) Workers() int64 {
	workers, err := strconv.ParseInt(j.Set["numjobs"], 10, 64)
	if err != nil {
		return 1
	}
	return min(max(1, workers), maxUserWorkers)
}

// laysOut reports whether fio writes the files of a job completely, and with incompressible data, before the job begins.
func (f UserFile) laysOut(section Section, job UserJob) bool {
	for _, other := range []string{"filename", "zero_buffers", "buffer_compress_percentage", "dedupe_percentage", "create_on_open"} {
		if _, is := job.Set[other]; is {
			return false
		}
	}
	return job.Reads() || f.has(section, "overwrite")
}

// canonical returns the main name of an option that matters here and has two names.
func canonical(name string) string {
	switch name {
	case "readwrite":
		return "rw"
	case "file_size":
		return "filesize"
	case "timeout":
		return "runtime"
	}
	return name
}

// mostBytes is more than any volume, and small enough that sums of two do not overflow.
const mostBytes = 1 << 56

var plainSize = regexp.MustCompile(`^([0-9]{1,18})([kmgtp]?)b?$`)

// leastBytes reads a size. For fio, k is 1024. 0 if it is not a plain size, such as a share.
func leastBytes(text string) int64 {
	match := plainSize.FindStringSubmatch(strings.ToLower(text))
	if match == nil {
		return 0
	}
	bytes, _ := strconv.ParseInt(match[1], 10, 64) // at most 18 digits
	for range max(0, strings.Index("-kmgtp", match[2])) {
		bytes = min(bytes, mostBytes/1024) * 1024
	}
	return min(bytes, mostBytes)
}
