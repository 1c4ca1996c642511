package fio

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// UserJob is a job of a user's file with all of its options by name. The last line of an option counts, as for fio.
type UserJob struct {
	Name string
	Set  map[string]string
}

// Jobs returns the jobs of the file, each with the options of [global].
func (f UserFile) Jobs() []UserJob {
	var jobs []UserJob
	for _, section := range f.Sections {
		job := UserJob{section.Name, map[string]string{}}
		for _, option := range slices.Concat(f.Global, section.Options) {
			job.Set[canonical(option.Name)] = option.Value
		}
		jobs = append(jobs, job)
	}
	return jobs
}

// Mode returns the rw of the job without the part after a colon. Without rw, a job reads.
func (j UserJob) Mode() Mode {
	mode, _, _ := strings.Cut(j.Set["rw"], ":")
	return Mode(cmp.Or(mode, string(Read)))
}

// Ramp is the ramp_time of the job. Equal times such as 30 and 30s are spelt alike.
func (j UserJob) Ramp() string {
	text := cmp.Or(j.Set["ramp_time"], "0")
	for _, unit := range []string{"", "s"} { // without a unit, fio counts in seconds
		if ramp, err := time.ParseDuration(text + unit); err == nil {
			return ramp.String()
		}
	}
	return text
}

// Reads reports whether the job reads.
func (j UserJob) Reads() bool { return j.Mode() != Write && j.Mode() != RandomWrite }

// Writes reports whether the job writes.
func (j UserJob) Writes() bool { return j.Mode() != Read && j.Mode() != RandomRead }

// Syncs reports whether the job calls fsync or fdatasync. With sync=dsync its writes are durable without such calls.
func (j UserJob) Syncs() bool {
	return slices.ContainsFunc([]string{"fsync", "fdatasync", "end_fsync", "fsync_on_close"}, func(option string) bool {
		value, set := j.Set[option]
		return set && (value == "" || strings.Trim(value, "0") != "")
	})
}

// jobsWith are the names of the jobs that satisfy a condition.
func (f UserFile) jobsWith(holds func(UserJob) bool) []string {
	var names []string
	for _, job := range f.Jobs() {
		if holds(job) {
			names = append(names, job.Name)
		}
	}
	return names
}
