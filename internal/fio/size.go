package fio

import (
	"regexp"
	"strconv"
	"strings"
)

// LaidOut is how much the files of the jobs take at least before the jobs begin: fio writes what is read or overwritten. What it does not
// write, what can be compressed and what this does not understand counts as nothing.
func (f UserFile) LaidOut() int64 {
	var total int64
	for i, job := range f.Jobs() {
		workers, err := strconv.ParseInt(job.Set["numjobs"], 10, 64)
		if err != nil {
			workers = 1
		}
		if f.laysOut(f.Sections[i], job) {
			total += min(leastBytes(job.Set["size"]), mostBytes/workers) * workers
		}
	}
	return total
}

// laysOut says whether fio writes the files of a job, in full and with data that takes its size, before it begins.
func (f UserFile) laysOut(section Section, job UserJob) bool {
	for _, other := range []string{"filename", "filesize", "zero_buffers", "buffer_compress_percentage", "dedupe_percentage",
		"create_on_open"} {
		if _, is := job.Set[other]; is {
			return false
		}
	}
	return job.Reads() || f.has(section, "overwrite")
}

// canonical is the first name of an option that has two.
func canonical(name string) string {
	switch name {
	case "readwrite":
		return "rw"
	case "file_size":
		return "filesize"
	}
	return name
}

// mostBytes is more than any volume. All jobs of a file together stay below what can be counted.
const mostBytes = 1 << 56

var plainSize = regexp.MustCompile(`^([0-9]{1,17})([kmgtp]?)(i?)b?$`)

// leastBytes reads a size. To fio a k is 1024, and a ki is 1000. 0 if it is no plain one.
func leastBytes(text string) int64 {
	match := plainSize.FindStringSubmatch(strings.ToLower(text))
	if match == nil {
		return 0
	}
	bytes, _ := strconv.ParseInt(match[1], 10, 64) // at most 17 digits
	unit := int64(1024)
	if match[3] != "" {
		unit = 1000
	}
	for range max(0, strings.Index("-kmgtp", match[2])) {
		bytes = min(bytes, mostBytes/unit) * unit
	}
	return min(bytes, mostBytes)
}
