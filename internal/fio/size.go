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
			total += min(leastBytes(job.Set["size"]), mostBytes/workersOf(job)) * workersOf(job)
		}
	}
	return total
}

// Moves is roughly how many bytes the jobs read and write, including the files that are laid out before. filled is how much a fill has
// written. Apart from these files, jobs of unknown size and jobs with a runtime count as nothing.
func (f UserFile) Moves(filled int64) int64 {
	total := f.LaidOut()
	for _, job := range f.Jobs() {
		if job.Set["runtime"] != "" || job.Set["timeout"] != "" {
			continue
		}
		bytes := leastBytes(cmp.Or(job.Set["io_size"], job.Set["size"]))
		if _, ofFill := job.Set["filename"]; ofFill && bytes == 0 {
			bytes = filled
		}
		total += min(bytes, mostBytes/workersOf(job)) * workersOf(job)
	}
	return total
}

// workersOf returns the number of workers of a job.
func workersOf(job UserJob) int64 {
	workers, err := strconv.ParseInt(job.Set["numjobs"], 10, 64)
	if err != nil {
		return 1
	}
	return max(1, workers)
}

// laysOut reports whether fio writes the files of a job completely, and with incompressible data, before the job begins.
func (f UserFile) laysOut(section Section, job UserJob) bool {
	for _, other := range []string{"filename", "filesize", "zero_buffers", "buffer_compress_percentage", "dedupe_percentage",
		"create_on_open"} {
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
	}
	return name
}

// mostBytes is more than any volume, and small enough that the sum over all jobs of a file does not overflow.
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
