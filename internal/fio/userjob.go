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
	jobs := make([]UserJob, len(f.Sections))
	for i, section := range f.Sections {
		jobs[i] = f.job(section)
	}
	return jobs
}

func (f UserFile) job(section Section) UserJob {
	return JobOf(section.Name, slices.Concat(f.Global, section.Options))
}

// JobOf returns a job with these options.
func JobOf(name string, options []Option) UserJob {
	job := UserJob{name, map[string]string{}}
	for _, option := range options {
		job.Set[canonical(option.Name)] = option.Value
	}
	return job
}

// Mode returns the rw of the job without the part after a colon. Without rw, a job reads.
func (j UserJob) Mode() Mode {
	mode, _, _ := strings.Cut(j.Set["rw"], ":")
	return Mode(cmp.Or(mode, string(Read)))
}

// Ramp is the ramp_time of the job.
func (j UserJob) Ramp() time.Duration { return readSeconds(j.Set["ramp_time"]) }

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
