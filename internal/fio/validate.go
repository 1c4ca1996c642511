package fio

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a user's job file.
const (
	maxUserBytes    = 16 << 10
	maxUserSections = 64
	maxUserWorkers  = 1024
	maxRefusals     = 20
)

var (
	sectionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	optionName  = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
)

// Place is where a user's jobs may read and write.
type Place struct {
	// Device is set on a block volume. All jobs use it, and unless they say otherwise, Bytes of it from Offset on. Jobs with filename=data
	// use DataBytes, which a fill has written, or the size that they or [global] set.
	Device                   string
	Offset, Bytes, DataBytes int64
	// Folder for the files of jobs that name none, on a file system volume.
	Folder string
	// Data are the files that a fill has written, for filename=data.
	Data []string
}

// UserFile is a user's job file after it was checked.
type UserFile struct {
	File
	// UsesData says that a job uses the data of a fill.
	UsesData bool
	// Ramps says that a job has a ramp, which its figures exclude.
	Ramps bool
	// Seeded says that the file sets its random numbers itself.
	Seeded bool
}

// ParseUserFile checks a user's job file against what is allowed. The error names the lines that are not allowed, and says what to do about
// each.
func ParseUserFile(text string) (UserFile, error) {
	if len(text) > maxUserBytes {
		return UserFile{}, fmt.Errorf("the fio job file has %d bytes: shorten it to %d", len(text), maxUserBytes)
	}
	var file UserFile
	var problems refusals
	section := (*Section)(nil)
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case hasControl(line):
			problems.add(number, "it contains control characters: write plain text")
		case line[0] == '[':
			section = file.open(line, number, &problems)
		case section == nil:
			problems.add(number, "%.60q is before the first section: write [global] or [NAME] above it", line)
		default:
			readOption(&file, section, line, number, &problems)
		}
	}
	file.checkWhole(&problems)
	if err := problems.err(); err != nil {
		return UserFile{}, err
	}
	return file, nil
}

// refusals collects what is wrong, line by line.
type refusals struct {
	errs []error
	more int
}

func (r *refusals) add(line int, format string, args ...any) {
	if len(r.errs) >= maxRefusals {
		r.more++
		return
	}
	r.errs = append(r.errs, fmt.Errorf("line %d: %w", line, fmt.Errorf(format, args...)))
}

func (r *refusals) err() error {
	if len(r.errs) == 0 {
		return nil
	}
	if r.more > 0 {
		r.errs = append(r.errs, fmt.Errorf("and %d more lines", r.more))
	}
	return fmt.Errorf("the fio job file cannot be used: %w", errors.Join(r.errs...))
}

// open begins a section and returns where its options go.
func (f *UserFile) open(line string, number int, problems *refusals) *Section {
	name := strings.TrimSuffix(strings.TrimPrefix(line, "["), "]")
	spare := &Section{}
	switch {
	case "["+name+"]" != line || !sectionName.MatchString(name):
		problems.add(number, "the section %.80q has an invalid name: write it as [NAME] in letters, digits, '.', '-' and '_'", line)
		return spare
	case name == "global" && len(f.Sections) > 0:
		problems.add(number, "[global] follows a job: put it first, so that it applies to every job")
		return spare
	case name == "global":
		return spare.asGlobalOf(f)
	case len(f.Sections) == maxUserSections:
		problems.add(number, "there are more than %d sections: use fewer", maxUserSections)
		return spare
	}
	f.Sections = append(f.Sections, Section{Name: name})
	return &f.Sections[len(f.Sections)-1]
}

// globalName marks the section whose options go to File.Global.
const globalName = "global"

func (s *Section) asGlobalOf(f *UserFile) *Section {
	s.Name, s.Options = globalName, f.Global
	return s
}

func readOption(file *UserFile, section *Section, line string, number int, problems *refusals) {
	option := ReadOption(line)
	name := option.Name
	switch refused := Refused(option); {
	case refused != "":
		problems.add(number, "%s", refused)
	case name == "filename":
		file.UsesData = true
		section.Options = append(section.Options, option)
	case slices.Contains([]string{"thread", "group_reporting", "new_group"}, name): // On sets these for all jobs anyway
	default:
		file.Ramps = file.Ramps || name == "ramp_time"
		file.Seeded = file.Seeded || name == "randseed" || name == "randrepeat" || name == "allrandrepeat"
		section.Options = append(section.Options, option)
	}
	if section.Name == globalName {
		file.Global = section.Options
	}
}

// ReadOption reads a line of a job file.
func ReadOption(line string) Option {
	name, value, _ := strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if word, _, _ := strings.Cut(name, " "); word == "include" {
		name = word
	}
	return Option{name, value}
}

// Unsized says which job would make a file without a size, and what to write instead. Empty if none does. On a device, jobs use all of it.
func (f UserFile) Unsized() string {
	for _, section := range f.Sections {
		job := f.job(section)
		if _, ofFill := job.Set["filename"]; ofFill {
			continue
		}
		if share := job.Set["size"]; strings.HasSuffix(share, "%") {
			return "job [" + section.Name + "]: size=" + share + " refers to a file that does not exist yet: write the size itself, such as " +
				"size=64m"
		}
		if job.fileBytes(true) > 0 {
			continue
		}
		return "job [" + section.Name + "] does not say how large its file is: write size=64m in it (or in [global]), also for a file that an " +
			"earlier phase has made, or filename=data for the data of a fill"
	}
	return ""
}

// Paced are the jobs that send their requests at a fixed rate.
func (f UserFile) Paced() []string {
	return f.jobsWith(UserJob.Paced)
}

// Paced reports whether a job sends its requests at a fixed rate.
func (j UserJob) Paced() bool { return strings.Trim(j.Set["rate"]+j.Set["rate_iops"], "0,") != "" }

// Readers are the jobs that read. Without rw, a job reads.
func (f UserFile) Readers() []string {
	return f.jobsWith(UserJob.Reads)
}

// Writers are the jobs that write.
func (f UserFile) Writers() []string {
	return f.jobsWith(UserJob.Writes)
}

// Syncers are the jobs that call fsync or fdatasync.
func (f UserFile) Syncers() []string {
	return f.jobsWith(UserJob.Syncs)
}

// UntimedSyncs are the jobs whose syncs fio does not time. With libaio it makes the sync itself, and counts its time from the beginning of
// the request before: fio 3.33 and 3.39 report 34 ms for a flush of 11 ms after a write of 22 ms.
func (f UserFile) UntimedSyncs() []string {
	return f.jobsWith(UserJob.UntimedSyncs)
}

// UntimedSyncs reports whether fio does not time the syncs of a job.
func (j UserJob) UntimedSyncs() bool {
	return j.Set["ioengine"] == "libaio" && strings.Trim(j.Set["fsync"]+j.Set["fdatasync"], "0") != ""
}

// WhyPaced says why jobs have no latencies, and what to do.
func WhyPaced(jobs []string) string {
	return fmt.Sprintf("rate or rate_iops of %s paces the requests, and fio does not count how long they wait to be sent: remove it to "+
		"measure latencies", strings.Join(jobs, ", "))
}

// WhyUntimedSyncs says why the syncs of jobs have no latencies, and what to do.
func WhyUntimedSyncs(jobs []string) string {
	return fmt.Sprintf("with ioengine=libaio, fio times the preceding write with the syncs of %s: use psync to measure them",
		strings.Join(jobs, ", "))
}

// checkWhole checks the file as a whole, after its single lines.
func (f *UserFile) checkWhole(problems *refusals) {
	if len(f.Sections) == 0 && len(problems.errs) == 0 {
		problems.add(1, "there is no job: write a section in brackets, such as [job1]")
		return
	}
	workers, names := 0, map[string]bool{}
	for _, section := range f.Sections {
		if names[section.Name] {
			problems.add(1, "there are two sections [%s]: give each its own name", section.Name)
		}
		names[section.Name] = true
		count := 1
		for _, option := range append(slices.Clone(f.Global), section.Options...) {
			if option.Name == "numjobs" {
				n, err := strconv.Atoi(option.Value)
				if err != nil || n < 1 || n > maxUserWorkers {
					problems.add(1, "numjobs=%.20s in [%s]: write a whole number from 1 to %d", option.Value, section.Name, maxUserWorkers)
					n = 1
				}
				count = n
			}
		}
		workers += count
		if f.has(section, "time_based") && readSeconds(f.job(section).Set["runtime"]) == 0 {
			problems.add(1, "time_based in [%s] has no effect without a runtime: write runtime=60, or remove it", section.Name)
		}
	}
	if stages := f.Stages(); f.Ramps && len(stages) > 0 && stages[len(stages)-1] > 0 { // each stage has a ramp, and its time is unknown
		problems.add(1, "ramp_time together with stonewall or wait_for_previous: the work of the disks in the ramps of later jobs cannot be "+
			"separated from the measurement: remove ramp_time, or put each job into its own phase")
	}
	if workers > maxUserWorkers {
		problems.add(1, "numjobs adds up to %d: use at most %d workers", workers, maxUserWorkers)
	}
}

// On applies the jobs to the volume. Their operations stay as written. It only sets their files or device, their seed if the file sets
// none, a sync at their end if one is needed, and the options of every job file.
func (f UserFile) On(place Place, random int64) File {
	file := File{Global: common()}
	if !f.Seeded {
		file.Global = append(file.Global, seed(random)...)
	}
	globalOptions, globalData := withoutFilename(f.Global)
	if place.Device != "" {
		file.Global = append(file.Global, Option{"offset", number(place.Offset)}, Option{"size", number(place.Bytes)})
	}
	file.Global = append(file.Global, globalOptions...)
	for _, section := range f.Sections {
		own, data := withoutFilename(section.Options)
		options := append([]Option{{"new_group", "1"}}, place.options(data || globalData)...)
		sized := slices.ContainsFunc(slices.Concat(globalOptions, own), func(o Option) bool { return o.Name == "size" })
		if place.DataBytes > 0 && (data || globalData) && !sized {
			options = append(options, Option{"size", number(place.DataBytes)})
		}
		file.Sections = append(file.Sections, Section{Name: section.Name, Options: append(options, own...)})
	}
	if !f.endsAtOnce() { // otherwise the writes that a job leaves in memory would be missing from its figures
		for i := range file.Sections {
			file.Sections[i].Options = append(file.Sections[i].Options, Option{"end_fsync", "1"})
		}
	}
	return file
}

// endsAtOnce reports whether the sync after all jobs serves each of them: there is only one job, or all begin together and run for the same
// time.
func (f UserFile) endsAtOnce() bool {
	if len(f.Sections) == 1 {
		return true
	}
	first := ""
	for i, job := range f.Jobs() {
		times := job.Set["ramp_time"] + " " + job.Set["runtime"]
		if i == 0 {
			first = times
		}
		if times != first || !f.has(f.Sections[i], "time_based") || f.follows(i) || job.endsEarly() {
			return false
		}
	}
	return true
}

// withoutFilename removes filename=data, and says whether it was set.
func withoutFilename(given []Option) (kept []Option, data bool) {
	for _, option := range given {
		if option.Name == "filename" {
			data = true
		} else {
			kept = append(kept, option)
		}
	}
	return kept, data
}

// options returns the options that say where a job works.
func (p Place) options(data bool) []Option {
	switch {
	case p.Device != "":
		return []Option{{"filename", joinPaths([]string{p.Device})}}
	case data:
		// A job larger than the data fails: fio would recreate the files.
		return []Option{{"filename", joinPaths(p.Data)}, {"allow_file_create", "0"}}
	}
	return []Option{{"directory", joinPaths([]string{p.Folder})}}
}
