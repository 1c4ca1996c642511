package imports

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/internal/fio"
)

// load is one fio run of a tool.
type load struct {
	name, mode, block string
	depth             int
	// more are further options of the load. own is true if it has files of its own; otherwise it works on the data of the fill phase.
	more []fio.Option
	own  bool
	// beside runs the load at the same time as the one before.
	beside bool
}

// loadsFile returns a job file that runs the loads one after another, except those marked beside.
func loadsFile(global []fio.Option, loads []load) *jobFile {
	jobs := &jobFile{global: append(options("ioengine=libaio", "randrepeat=0", "time_based=1"), global...)}
	for i, load := range loads {
		section := &fio.Section{Name: load.name}
		if i > 0 && !load.beside {
			section.Options = append(section.Options, fio.Option{Name: "stonewall"})
		}
		if !load.own {
			section.Options = append(section.Options, usesData)
		}
		section.Options = append(section.Options, fio.Option{Name: "rw", Value: load.mode}, fio.Option{Name: "bs", Value: load.block},
			fio.Option{Name: "iodepth", Value: fmt.Sprint(load.depth)})
		section.Options = append(section.Options, load.more...)
		jobs.sections = append(jobs.sections, section)
	}
	return jobs
}

// setLoads makes the phases from the loads of a tool. size is the size of the tool's file, as it is written for fio.
func (b *Benchmark) setLoads(size string, global []fio.Option, loads []load) error {
	bytes, ok := amount(size)
	if !ok || bytes < 1<<20 || bytes > 1<<50 {
		return fmt.Errorf("the size of its file is %.40q: write one from 1M to 1P, such as 2G", size)
	}
	if slices.ContainsFunc(loads, func(load load) bool { return !load.own }) {
		if b.Fill = fmt.Sprintf("%dMi", int64(bytes)>>20); int64(bytes)%(1<<30) == 0 {
			b.Fill = fmt.Sprintf("%dGi", int64(bytes)>>30)
		}
	}
	if b.Block { // otherwise the jobs would read blocks that the fill has not written
		global = append(global, fio.Option{Name: "size", Value: fmt.Sprint(int64(bytes) >> 20 << 20)})
	}
	return b.setPhases(loadsFile(global, loads))
}

func options(pairs ...string) (list []fio.Option) {
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		list = append(list, fio.Option{Name: name, Value: value})
	}
	return list
}

// atLeast enlarges the volume so that all files fit, with a quarter to spare.
func (b *Benchmark) atLeast(bytes float64, files string) {
	const gibibyte = 1 << 30
	has, err := resource.ParseQuantity(cmp.Or(b.Size, DefaultSize))
	if wants := bytes * 1.25; err == nil && has.AsApproximateFloat64() < wants && wants < 1<<50 {
		size := fmt.Sprintf("%dGi", int64(math.Ceil(wants/gibibyte)))
		b.leave("the size of the volume: it is %s instead of %s, for %s", size, cmp.Or(b.Size, DefaultSize), files)
		b.Size = size
	}
}

func isDbench(text string) bool { return containerOf(text, "dbench", "DBENCH_MOUNTPOINT") != nil }

// readDbench imports a manifest of dbench. It knows what the entry point of its image does.
func readDbench(f file) (*Benchmark, error) {
	manifest := containerOf(f.text, "dbench", "DBENCH_MOUNTPOINT")
	b, err := manifest.benchmark()
	if err != nil {
		return nil, err
	}
	if b.Block {
		return nil, errors.New("its claim has volumeMode Block, but it measures in a folder: write Filesystem")
	}
	env, err := manifest.environment(b, "DBENCH_MOUNTPOINT", "DBENCH_QUICK", "FIO_SIZE", "FIO_OFFSET_INCREMENT", "FIO_DIRECT")
	if err != nil {
		return nil, err
	}
	size, direct := cmp.Or(env["FIO_SIZE"], "2G"), cmp.Or(env["FIO_DIRECT"], "1")
	loads := []load{
		{name: "read_iops", mode: "randread", block: "4k", depth: 64},
		{name: "write_iops", mode: "randwrite", block: "4k", depth: 64},
		{name: "read_bw", mode: "randread", block: "128k", depth: 64},
		{name: "write_bw", mode: "randwrite", block: "128k", depth: 64},
	}
	if quick := env["DBENCH_QUICK"]; quick == "" || quick == "no" {
		bytes, _ := amount(size)
		// Four workers, each with a file of a quarter of the size.
		quarter := options("numjobs=4", fmt.Sprintf("size=%dm", max(1, int64(bytes)>>22)))
		loads = append(loads,
			load{name: "read_latency", mode: "randread", block: "4k", depth: 4},
			load{name: "write_latency", mode: "randwrite", block: "4k", depth: 4},
			load{name: "read_seq", mode: "read", block: "1m", depth: 16, more: quarter, own: true},
			load{name: "write_seq", mode: "write", block: "1m", depth: 16, more: quarter, own: true},
			load{name: "rw_mix", mode: "randrw", block: "4k", depth: 64, more: options("rwmixread=75")})
		b.atLeast(3*bytes, "the data, and the files of read_seq and write_seq")
		b.leave("FIO_OFFSET_INCREMENT: the workers of read_seq and write_seq have a file each, a quarter of FIO_SIZE, not areas of one file")
	}
	return b, b.setLoads(size, options("direct="+direct, "ramp_time=2s", "runtime=15s"), loads)
}

func isKbench(text string) bool {
	return containerOf(text, "kbench", "CPU_IDLE_PROF") != nil || containerOf(text, "yasker/benchmark", "FIRST_VOL_FILE") != nil
}

// kbenchKinds are the three job files of kbench, each with its word in MODE.
var kbenchKinds = []struct {
	name, word, block string
	depth             int
}{{"iops", "iops", "4k", 64}, {"bw", "bandwidth", "128k", 64}, {"lat", "latency", "4k", 1}}

var kbenchAccess = []struct{ name, word, mode string }{
	{"rand-read", "random-read", "randread"}, {"rand-write", "random-write", "randwrite"},
	{"seq-read", "sequential-read", "read"}, {"seq-write", "sequential-write", "write"},
}

// readKbench imports a manifest of kbench. It knows what the entry point of its image does.
func readKbench(f file) (*Benchmark, error) {
	manifest := containerOf(f.text, "kbench", "CPU_IDLE_PROF")
	if manifest == nil {
		manifest = containerOf(f.text, "yasker/benchmark", "FIRST_VOL_FILE")
	}
	b, err := manifest.benchmark()
	if err != nil {
		return nil, err
	}
	env, err := manifest.environment(b, "FILE_NAME", "SIZE", "MODE", "QUICK_MODE", "RATE", "RATE_IOPS", "OUTPUT", "SKIP_PARSE")
	if err != nil {
		return nil, err
	}
	mode := cmp.Or(env["MODE"], "full")
	times := options("ramp_time=5s", "runtime=20s")
	if env["QUICK_MODE"] != "" || mode == "quick" {
		mode, times = "full", options("ramp_time=1s", "runtime=5s")
	}
	var loads []load
	for _, kind := range kbenchKinds {
		for _, access := range kbenchAccess {
			if word := access.word + "-" + kind.word; mode == "full" || mode == word {
				loads = append(loads, load{name: access.name + "-" + kind.name, mode: access.mode, block: kind.block, depth: kind.depth})
			}
		}
	}
	if len(loads) == 0 {
		return nil, fmt.Errorf("it has no MODE %.40q: write full, quick or one such as random-read-iops", mode)
	}
	for _, name := range []string{"rate", "rate_iops"} {
		value := env[strings.ToUpper(name)]
		if option := (fio.Option{Name: name, Value: value}); value != "" && fio.Refused(option) != "" {
			return nil, fmt.Errorf("its %s: %s", strings.ToUpper(name), fio.Refused(option))
		} else if value != "" {
			times = append(times, option)
		}
	}
	return b, b.setLoads(cmp.Or(env["SIZE"], "10g"), append(options("direct=1"), times...), loads)
}
