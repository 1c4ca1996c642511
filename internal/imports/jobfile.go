package imports

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/internal/fio"
)

var jobSection = regexp.MustCompile(`(?m)^\s*\[[^\]\n]+\]`)

func isJobFile(text string) bool { return jobSection.MatchString(text) }

func readJobFile(f file) (*Benchmark, error) {
	b := &Benchmark{}
	return b, b.takeJobs(f.text)
}

// takeJobs makes the phases from the parts of a job file that a runner accepts.
func (b *Benchmark) takeJobs(text string) error {
	jobs := jobsOf(text, b)
	if len(jobs.sections) == 0 {
		return errors.New("it has no job besides [global]")
	}
	if len(jobs.refused) > 0 {
		return fmt.Errorf("these options can decide what is measured, but are not allowed: %s", strings.Join(jobs.refused, "; "))
	}
	jobs.ownFiles(b)
	if err := jobs.place(b); err != nil {
		return err
	}
	if b.Size == "" {
		b.Size = jobs.volume(b)
	}
	return b.setPhases(jobs)
}

// maxPhases leaves room for a fill phase among the 16 of the API.
const maxPhases = 15

// setPhases makes one phase from each group of jobs that run at the same time, so that the counters and the ramp_time of each phase belong
// to its own jobs.
func (b *Benchmark) setPhases(jobs *jobFile) error {
	for _, section := range jobs.sections {
		if !b.Block && !slices.Contains(slices.Concat(jobs.global, section.Options), usesData) {
			b.Files += float64(jobs.of(section).Space())
		}
	}
	stages := jobs.stages()
	if len(stages) > maxPhases {
		b.leave("ramp_time: with %d jobs one after another in one phase, what the disks do in it cannot be told apart", len(stages))
		jobs.drop("ramp_time")
		stages = []*jobFile{jobs}
	} else {
		for _, stage := range stages {
			stage.drop("stonewall", "wait_for_previous")
		}
	}
	names := map[string]bool{"fill": b.Fill != "" || b.advisesFill}
	for _, stage := range stages {
		job := stage.sections[0].Name
		if len(stage.sections) > 1 {
			job = "fio"
		}
		phase := Phase{phaseName(job, names), stage.text()}
		if _, err := fio.ParseUserFile(phase.Jobs); err != nil {
			return err
		}
		b.Phases = append(b.Phases, phase)
	}
	return nil
}

// usesData is the option of jobs that work on the data of the fill phase.
var usesData = fio.Option{Name: "filename", Value: "data"}

// NeedsMore reports whether a volume of the given size is too small for the fill and the files of the jobs, and the size that they need.
func (b *Benchmark) NeedsMore(volume resource.Quantity) (needs string, more bool) {
	bytes := b.Files
	if fill, err := resource.ParseQuantity(b.Fill); err == nil {
		bytes += fill.AsApproximateFloat64()
	}
	return fmt.Sprintf("%dGi", int64(math.Ceil(bytes*1.25/(1<<30)))), bytes > volume.AsApproximateFloat64()
}

// stages groups the jobs that run at the same time.
func (j *jobFile) stages() []*jobFile {
	var stages []*jobFile
	for i, section := range j.sections {
		if i == 0 || waits(slices.Concat(j.global, section.Options)) {
			stages = append(stages, &jobFile{global: slices.Clone(j.global)})
		}
		last := stages[len(stages)-1]
		last.sections = append(last.sections, section)
	}
	return stages
}

// waits reports whether a job begins when those before it have ended.
func waits(options []fio.Option) (waits bool) {
	for _, option := range options {
		if option.Name == "stonewall" || option.Name == "wait_for_previous" {
			waits = option.Value == "" || option.Value == "1"
		}
	}
	return waits
}

func (j *jobFile) drop(names ...string) {
	j.dropIf(func(option fio.Option) bool { return slices.Contains(names, option.Name) })
}

func (j *jobFile) dropIf(drops func(fio.Option) bool) {
	j.global = slices.DeleteFunc(j.global, drops)
	for _, section := range j.sections {
		section.Options = slices.DeleteFunc(section.Options, drops)
	}
}

// phaseName derives the name of a phase from that of a job.
func phaseName(job string, names map[string]bool) string {
	name := cmp.Or(strings.TrimLeft(label(job), "0123456789-"), "job")
	return numbered(strings.TrimRight(name[:min(len(name), 16)], "-"), names)
}

// numbered makes a name unique, and adds it to the names.
func numbered(given string, names map[string]bool) string {
	name := given
	for number := 2; names[name]; number++ {
		name = fmt.Sprintf("%s-%d", given, number)
	}
	names[name] = true
	return name
}

// jobFile is a job file in the making.
type jobFile struct {
	global   []fio.Option
	sections []*fio.Section
	// refused says for each option that can decide what is measured, but that no runner accepts, what to do.
	refused []string
}

// jobsOf reads a job file. fio applies a [global] that follows a job only to the jobs after it, so its options are copied into these jobs.
func jobsOf(text string, b *Benchmark) *jobFile {
	jobs := &jobFile{}
	names := map[string]bool{"global": true}
	var section *fio.Section
	global, late := false, []fio.Option(nil)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "["), "]")
			if global = strings.EqualFold(name, "global"); !global {
				section = &fio.Section{Name: unique(name, names), Options: slices.Clone(late)}
				jobs.sections = append(jobs.sections, section)
			}
		case global && len(jobs.sections) == 0:
			jobs.keep(line, nil, &jobs.global, names, b)
		case global:
			jobs.keep(line, nil, &late, names, b)
		case section == nil:
			jobs.refuse("%s comes before the first section: write [global] or [NAME] above it", firstWord(line))
		default:
			jobs.keep(line, section, &section.Options, names, b)
		}
	}
	return jobs
}

// ownFiles removes the names of files, because each job gets files of its own, and says how many jobs shared one.
func (j *jobFile) ownFiles(b *Benchmark) {
	sharing := map[string][]*fio.Section{}
	var names []string
	for _, section := range j.sections {
		name, found := "", false
		for _, option := range slices.Concat(j.global, section.Options) {
			if option.Name == "filename" { // the last one counts
				name, found = option.Value, namesFile(option)
			}
		}
		if !found {
			continue
		}
		if sharing[name] == nil {
			names = append(names, name)
		}
		sharing[name] = append(sharing[name], section)
	}
	for _, name := range names {
		instead := "the jobs run on the block volume"
		if !b.Block {
			instead = j.instead(sharing[name])
			b.advisesFill = b.advisesFill || strings.Contains(instead, "{name: fill")
		}
		b.leave("filename=%s: %s", name, instead)
	}
	j.dropIf(namesFile)
}

// instead says which files the jobs of sections get in place of the one that they named.
func (j *jobFile) instead(sections []*fio.Section) string {
	var jobs, largest, total int64
	known := true
	for _, section := range sections {
		job := j.of(section)
		jobs, largest, total = jobs+job.Workers(), max(largest, job.FileBytes()), total+job.Space()
		known = known && job.Space() > 0
	}
	switch {
	case jobs <= 1:
		return "each job gets files of its own on the volume; write filename=data for the data of a fill phase"
	case !known || total > 1<<50:
		return fmt.Sprintf("the %d jobs shared this file; here each has its own; write filename=data for the data of a fill phase", jobs)
	}
	return fmt.Sprintf("the %d jobs shared this file; here each has its own, %s in all. To share one again, add the phase "+
		"{name: fill, fill: {size: %s}} before and write filename=data", jobs, binary(total), binary(largest))
}

// binary formats a size, such as 10Gi.
func binary(bytes int64) string {
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

// place ensures that the jobs have data to read: on a device, that of a fill phase, otherwise files with a size.
func (j *jobFile) place(b *Benchmark) error {
	if b.Block {
		b.Fill = "100%"
		return nil
	}
	for _, section := range j.sections {
		job := j.of(section)
		share := job.Set["size"]
		switch {
		case strings.HasSuffix(share, "%"):
			return fmt.Errorf("[%s]: size=%s refers to a file that does not exist yet: write the size itself, such as size=1g", section.Name, share)
		case job.FileBytes() == 0:
			return fmt.Errorf("[%s] does not say how large its file is: write size=1g into it or into [global]", section.Name)
		}
	}
	return nil
}

var notInSections = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// unique returns a name that the runner accepts, and that no other section has.
func unique(name string, names map[string]bool) string {
	name = strings.TrimLeft(notInSections.ReplaceAllString(name, "-"), "-_.")
	name = name[:min(len(name), 50)]
	name = cmp.Or(name, "job")
	return numbered(name, names)
}

func (j *jobFile) text() string {
	var text strings.Builder
	write := func(name string, options []fio.Option) {
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "[%s]\n", name)
		for _, option := range options {
			text.WriteString(option.Name)
			if option.Value != "" {
				text.WriteString("=" + option.Value)
			}
			text.WriteByte('\n')
		}
	}
	if len(j.global) > 0 {
		write("global", j.global)
	}
	for _, section := range j.sections {
		write(section.Name, section.Options)
	}
	return text.String()
}

// volume returns a volume size with room for the files of all jobs, and a quarter to spare.
func (j *jobFile) volume(b *Benchmark) string {
	var total int64
	for _, section := range j.sections {
		space := j.of(section).Space()
		if space == 0 {
			b.leave("the size of the volume: [%s] does not say how large its file is, so write a size that fits", section.Name)
			return DefaultSize
		}
		total += space
	}
	const gibibyte = 1 << 30
	if total > 1<<50 {
		b.leave("the size of the volume: the jobs ask for more than 1Pi, so write a size that fits")
		return DefaultSize
	}
	return fmt.Sprintf("%dGi", (total+total/4)/gibibyte+1)
}

func (j *jobFile) of(section *fio.Section) fio.UserJob {
	return fio.JobOf(section.Name, slices.Concat(j.global, section.Options))
}

var amountPattern = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kmgtKMGT]?)(?:[iI]?[bB]?)$`)

// amount reads a size as fio does, whose k is 1024.
func amount(text string) (bytes float64, ok bool) {
	match := amountPattern.FindStringSubmatch(strings.TrimSpace(text))
	if match == nil {
		return 0, false
	}
	bytes, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		return 0, false
	}
	for range max(0, strings.Index("-kmgt", strings.ToLower(match[2]))) {
		bytes *= 1024
	}
	return bytes, true
}
