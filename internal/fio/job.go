// Package fio writes job files for fio, the load generator, runs fio and reads its reports. It knows nothing about benchmarks.
package fio

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CompressChunk is the unit of data that CompressPercent applies to. By default, fio uses the whole block, and then a record of a file
// system may be compressible as a whole or not at all.
const CompressChunk = 4096

// Mode is what a job does: fio's rw.
type Mode string

// The modes that the runner's own workloads use.
const (
	Read        Mode = "read"
	Write       Mode = "write"
	RandomRead  Mode = "randread"
	RandomWrite Mode = "randwrite"
	RandomMix   Mode = "randrw"
)

// BlockShare is a block size with its share of the operations.
type BlockShare struct {
	Bytes   int64
	Percent int
}

// Job is one section of a job file: several workers that do the same.
type Job struct {
	Name string
	Mode Mode
	// Paths of the files or the device; fio treats several as one target. It reads or writes them one after another, unless the mode is
	// random.
	Paths []string
	// Offset and Size of the area of the first worker. The area of each further worker begins Stride bytes after the previous one.
	Offset, Size, Stride int64
	Workers              int
	// BlockSize of all operations, unless there are BlockSizes.
	BlockSize  int64
	BlockSizes []BlockShare
	// WritePercent of the operations of a RandomMix.
	WritePercent int
	// Duration, if set, repeats the job until this time is over.
	Duration time.Duration
	// Think is the pause between two operations of a worker.
	Think time.Duration
	// Sync is empty, dsync (each write is durable when it returns) or fdatasync (a call after each write).
	Sync string
	Seed int64
	// Direct asks for transfers that bypass the page cache.
	Direct bool
	// KeepCache keeps the page cache. Otherwise fio drops the files from it before the job.
	KeepCache bool
	// RandomMap makes random offsets cover every block exactly once.
	RandomMap bool
	// CompressPercent of the written data can be compressed away.
	CompressPercent int
	// Create allows fio to make the files; without it, a missing file is an error.
	Create bool
	// EndSync makes everything durable before the job ends.
	EndSync bool
	// After makes the job wait until all jobs before it have ended.
	After bool
	// LatencyLog, if set, is the path prefix of a log with the largest latency of every LogWindow, or with all latencies if LogWindow is 0.
	LatencyLog string
	LogWindow  time.Duration
}

// Option is one line of a job file. An empty value is written without '='.
type Option struct{ Name, Value string }

// Section is one job with its options.
type Section struct {
	Name    string
	Options []Option
}

// File is a job file.
type File struct {
	Global   []Option
	Sections []Section
}

// common are the options of every job file: one process, latencies as an application sees them, one group of figures for jobs that run side
// by side. Preallocation would leave extents without data, and does not exist on ZFS.
func common() []Option {
	return []Option{
		{"thread", "1"}, {"group_reporting", "1"}, {"lat_percentiles", "1"}, {"clat_percentiles", "0"}, {"fallocate", "none"},
	}
}

// NewFile makes the job file of jobs that use fio's psync engine: one request at a time for each worker.
func NewFile(jobs ...Job) File {
	file := File{Global: append(common(), Option{"ioengine", "psync"})}
	for _, job := range jobs {
		file.Sections = append(file.Sections, Section{Name: job.Name, Options: job.options()})
	}
	return file
}

func (j Job) options() []Option {
	o := options{}
	o.add("filename", joinPaths(j.Paths))
	o.when(len(j.Paths) > 1 && !j.random(), "file_service_type", "sequential") // otherwise fio would take one block of each file in turn
	o.add("rw", string(j.Mode))
	o.add("offset", number(j.Offset))
	o.add("size", number(j.Size))
	o.when(j.Workers > 1, "numjobs", strconv.Itoa(j.Workers))
	o.when(j.Stride > 0, "offset_increment", number(j.Stride))
	if len(j.BlockSizes) > 0 {
		o.add("bssplit", blockSplit(j.BlockSizes))
	} else {
		o.add("bs", number(j.BlockSize))
	}
	o.when(j.Mode == RandomMix, "rwmixwrite", strconv.Itoa(j.WritePercent))
	o.flag(j.Direct, "direct")
	o.when(j.KeepCache, "invalidate", "0")
	o.flag(j.random() && !j.RandomMap, "norandommap")
	if j.random() || j.Seed != 0 { // written data is random too, and should not repeat the data that was there
		o.list = append(o.list, seed(j.Seed)...)
	}
	o.flag(j.Duration > 0, "time_based")
	o.when(j.Duration > 0, "runtime", strconv.FormatInt(j.Duration.Milliseconds(), 10)+"ms")
	o.when(j.Think > 0, "thinktime", number(j.Think.Microseconds()))
	o.when(j.Sync == "dsync", "sync", "dsync")
	o.flag(j.Sync == "fdatasync", "fdatasync")
	o.flag(j.writes(), "refill_buffers")
	if j.writes() && j.CompressPercent > 0 {
		o.add("buffer_compress_percentage", strconv.Itoa(j.CompressPercent))
		o.when(j.BlockSize > 0, "buffer_compress_chunk", number(min(j.BlockSize, CompressChunk)))
	}
	o.flag(j.Mode == RandomWrite || j.Mode == RandomMix, "overwrite")
	o.when(!j.Create, "allow_file_create", "0")
	o.flag(j.EndSync, "end_fsync")
	o.flag(j.After, "stonewall")
	if j.LatencyLog != "" {
		o.add("write_lat_log", j.LatencyLog)
		o.when(j.LogWindow > 0, "log_avg_msec", number(j.LogWindow.Milliseconds()))
		o.when(j.LogWindow > 0, "log_max_value", "1")
		o.add("disable_slat", "1") // of the three logs, only that of the total latency is wanted
		o.add("disable_clat", "1")
	}
	return o.list
}

// seed makes the offsets follow the seed. By default, randrepeat is on and fio chooses the same offsets whatever randseed is.
func seed(value int64) []Option { return []Option{{"randrepeat", "0"}, {"randseed", number(value)}} }

func (j Job) random() bool {
	return j.Mode == RandomRead || j.Mode == RandomWrite || j.Mode == RandomMix
}
func (j Job) writes() bool { return j.Mode != Read && j.Mode != RandomRead }

type options struct{ list []Option }

func (o *options) add(name, value string) { o.list = append(o.list, Option{name, value}) }

func (o *options) when(condition bool, name, value string) {
	if condition {
		o.add(name, value)
	}
}

func (o *options) flag(condition bool, name string) { o.when(condition, name, "1") }

func number(n int64) string { return strconv.FormatInt(n, 10) }

// joinPaths joins files as fio expects them: with ':' in between, and '\:' for a colon in a name.
func joinPaths(paths []string) string {
	escaped := make([]string, len(paths))
	for i, path := range paths {
		escaped[i] = strings.ReplaceAll(path, ":", `\:`)
	}
	return strings.Join(escaped, ":")
}

func blockSplit(shares []BlockShare) string {
	words := make([]string, len(shares))
	for i, share := range shares {
		words[i] = fmt.Sprintf("%d/%d", share.Bytes, share.Percent)
	}
	return strings.Join(words, ":")
}

// Text writes the job file. It refuses values that fio would misread.
func (f File) Text() (string, error) {
	var text strings.Builder
	sections := append([]Section{{Name: "global", Options: f.Global}}, f.Sections...)
	for _, section := range sections {
		if section.Name == "" || strings.ContainsAny(section.Name, "]\\$") || hasControl(section.Name) {
			return "", fmt.Errorf("fio job %q: use only letters, digits, '-' and '_'", section.Name)
		}
		fmt.Fprintf(&text, "[%s]\n", section.Name)
		for _, option := range section.Options {
			if strings.Contains(option.Value, "$") || hasControl(option.Value) || strings.TrimSpace(option.Value) != option.Value {
				return "",
					fmt.Errorf("fio job %q: %s=%q contains '$', leading or trailing spaces, or control characters, which fio would misread: use another "+
						"name",
						section.Name, option.Name, option.Value)
			}
			text.WriteString(option.Name)
			if option.Value != "" {
				text.WriteString("=" + option.Value)
			}
			text.WriteByte('\n')
		}
	}
	return text.String(), nil
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// has reports whether a flag is set for a section, in the section itself or for all jobs. As in fio, the last line counts.
func (f File) has(s Section, name string) bool {
	set := false
	for _, option := range slices.Concat(f.Global, s.Options) {
		if option.Name == name {
			set = option.Value == "" || option.Value == "1"
		}
	}
	return set
}

// follows reports whether the jobs of a section begin when those before them have ended.
func (f File) follows(i int) bool {
	return i > 0 && (f.has(f.Sections[i], "stonewall") || f.has(f.Sections[i], "wait_for_previous"))
}

// Stages returns the stage of each group of figures that fio reports. Groups of one stage run side by side, and stages one after another.
func (f File) Stages() []int {
	var stages []int
	stage := 0
	for i, section := range f.Sections {
		after := f.follows(i)
		if after {
			stage++
		}
		if i == 0 || after || f.has(section, "new_group") {
			stages = append(stages, stage)
		}
	}
	return stages
}
