package fio

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestJobFile(t *testing.T) {
	mix := Job{Name: "oltp", Mode: RandomMix, Paths: []string{"/data/a:b"}, Size: 1 << 20, Stride: 1 << 20, Workers: 3, BlockSize: 8192,
		WritePercent: 33, Duration: 90 * time.Second, Think: 1500 * time.Microsecond, Seed: 42, Direct: true, CompressPercent: 50}
	redo := Job{Name: "redo", Mode: Write, Paths: []string{"/data/x", "/data/y"}, Size: 4096, Workers: 1, Sync: "dsync", Create: true,
		After:      true,
		BlockSizes: []BlockShare{{4096, 50}, {8192, 50}}, LatencyLog: "/tmp/l", LogWindow: 100 * time.Millisecond}
	pass := Job{Name: "pass", Mode: RandomWrite, Paths: []string{"/dev/sb"}, Size: 8192, Workers: 1, BlockSize: 8192, RandomMap: true,
		Sync: "fdatasync", EndSync: true}
	text, err := NewFile(mix, redo, pass).Text()
	if err != nil {
		t.Fatal(err)
	}
	if want := string(golden(t, "job.fio")); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestTextRefuses(t *testing.T) {
	for name, job := range map[string]Job{
		"variable":       {Name: "a", Paths: []string{"/data/${HOME}"}},
		"second line":    {Name: "a", Paths: []string{"/data/x\nexec_prerun=id"}},
		"name":           {Name: "a]\n[b", Paths: []string{"/data/x"}},
		"trailing space": {Name: "a", Paths: []string{"/data/x "}},
	} {
		if text, err := NewFile(job).Text(); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestStages(t *testing.T) {
	section := func(options ...Option) Section { return Section{Name: "x", Options: options} }
	after, group := Option{"stonewall", "1"}, Option{"new_group", "1"}
	for name, c := range map[string]struct {
		sections []Section
		want     []int
		global   []Option
	}{
		"one":              {[]Section{section()}, []int{0}, nil},
		"same group":       {[]Section{section(), section()}, []int{0}, nil},
		"groups together":  {[]Section{section(group), section(group)}, []int{0, 0}, nil},
		"one after other":  {[]Section{section(), section(after), section(after)}, []int{0, 1, 2}, nil},
		"two, then two":    {[]Section{section(group), section(group), section(group, after), section(group)}, []int{0, 0, 1, 1}, nil},
		"stonewall is off": {[]Section{section(group), section(group, Option{"stonewall", "0"})}, []int{0, 0}, nil},
		"for all jobs":     {[]Section{section(group), section(group)}, []int{0, 1}, []Option{after}},
		"all but one": {[]Section{section(group), section(group, Option{"stonewall", "0"}), section(group)}, []int{0, 0, 1},
			[]Option{after}},
	} {
		if got := (File{Global: c.global, Sections: c.sections}).Stages(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

const goodUserFile = `; a comment
[global]
ioengine = libaio
direct=1
time_based
runtime=60s
size=1g

[oltp]
rw=randrw:4
rwmixread=70
bsrange=4k-16k
numjobs=4
[log]
filename=data
rw=write
bssplit=4k/50:8k/50
sync=dsync
stonewall
`

func TestUserFile(t *testing.T) {
	file, err := ParseUserFile(goodUserFile)
	if err != nil || !file.UsesData || file.Seeded {
		t.Fatalf("%v, %+v", err, file)
	}
	for name, place := range map[string]Place{
		"user-files.fio":  {Folder: "/data/storagebench.fio", Data: []string{"/data/storagebench.data"}},
		"user-device.fio": {Device: "/dev/storagebench", Offset: 4096, Bytes: 1 << 30},
	} {
		text, err := file.On(place, 99).Text()
		if err != nil {
			t.Fatal(err)
		}
		if want := string(golden(t, name)); text != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, text, want)
		}
	}
	if stages := file.On(Place{Folder: "/data"}, 1).Stages(); !slices.Equal(stages, []int{0, 1}) {
		t.Errorf("stages %v", stages)
	}
}

// TestSizeOnADevice: jobs on the data of a fill use all of it, unless they or [global] set a size. On a file system [global] counts too.
func TestSizeOnADevice(t *testing.T) {
	place := Place{Device: "/dev/storagebench", Offset: 4096, Bytes: 1 << 40, DataBytes: 100 << 30}
	for text, want := range map[string]string{
		"[a]\nrw=read": number(1 << 40), "[global]\nsize=2g\n[a]\nrw=read": "2g",
		"[a]\nfilename=data": number(100 << 30), "[global]\nfilename=data\n[a]\nrw=read": number(100 << 30),
		"[a]\nfilename=data\nsize=2g": "2g", "[global]\nsize=2g\n[a]\nfilename=data": "2g",
		"[global]\nfilename=data\nsize=2g\n[a]\nrw=read": "2g", "[global]\nsize=2g\n[a]\nfilename=data\nsize=3g": "3g",
	} {
		file, err := ParseUserFile(text)
		if err != nil {
			t.Fatal(err)
		}
		on, size := file.On(place, 1), ""
		for _, option := range slices.Concat(on.Global, on.Sections[0].Options) { // as in fio, the last line counts
			if option.Name == "size" {
				size = option.Value
			}
		}
		if size != want {
			t.Errorf("%q: the size is %s, want %s", text, size, want)
		}
	}
}

// TestJobsEndWithASync: writes that a job leaves in memory would be missing from its figures if other jobs follow or continue.
func TestJobsEndWithASync(t *testing.T) {
	for text, syncs := range map[string]int{
		"[a]\nsize=1m": 0, "[a]\nsize=1m\n[b]\nsize=1m": 2, "[a]\nsize=1m\n[b]\nsize=1m\nend_fsync=0": 2,
		"[global]\ntime_based\nruntime=5\n[a]\n[b]":                   0,
		"[global]\ntime_based\nruntime=5\n[a]\n[b]\nruntime=9":        2,
		"[global]\ntime_based\nruntime=5\n[a]\n[b]\ntimeout=9":        2,
		"[global]\nruntime=5\n[a]\ntime_based\n[b]":                   2,
		"[global]\ntime_based\nruntime=5\nramp_time=1\n[a]\n[b]":      0,
		"[global]\ntime_based\nruntime=5\n[a]\nramp_time=1\n[b]":      2,
		"[global]\ntime_based\nruntime=5\n[a]\n[b]\nstonewall":        2,
		"[global]\ntime_based\nruntime=5\n[a]\n[b]\nnumber_ios=10":    2,
		"[global]\ntime_based\nruntime=5\nlatency_target=1\n[a]\n[b]": 2,
	} {
		file, err := ParseUserFile(text)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		on := file.On(Place{Folder: "/data"}, 1)
		for _, section := range on.Sections {
			if on.has(section, "end_fsync") {
				got++
			}
		}
		if got != syncs {
			t.Errorf("%q: %d jobs end with a sync, want %d", text, got, syncs)
		}
	}
}

func TestUnsized(t *testing.T) {
	for text, says := range map[string]string{
		"[a]\nrw=read\nsize=64m": "", "[global]\nfilesize=1G\n[a]\nrw=read": "", "[a]\nfilename=data": "", "[a]\nsize=10MB": "",
		"[a]\nrw=read": "job [a] does not say", "[a]\nsize=0": "job [a] does not say", "[a]\nsize=1m\n[b]\nrw=read": "job [b] does not say",
		"[a]\nsize=50%": "job [a]: size=50% refers to a file that does not exist yet", "[a]\nsize=50%\nfilename=data": "",
	} {
		file, err := ParseUserFile(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := file.Unsized(); (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%q: %q, want %q", text, got, says)
		}
	}
}

func TestUserFileRefuses(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{"exec_prerun=rm -rf /", "line 3: exec_prerun is not allowed: remove it: a job file runs no commands"},
		{"startdelay=60", "line 3: startdelay is not allowed: remove it: fio excludes the delay"},
		{"ioengine=exec", "line 3: ioengine=\"exec\" is not allowed: write psync"},
		{"ioengine=net", "write psync"},
		{"ioengine=mmap", "write psync"},
		{"ioengine=external:/tmp/evil.so", "write psync"},
		{"filename=/etc/passwd", "write filename=data"},
		{"filename=data:/etc/passwd", "write filename=data"},
		{"directory=/", "the runner chooses the location of files"},
		{"filename_format=/etc/$jobname", "the runner chooses"},
		{"write_lat_log=/etc/x", "name files outside the volume"},
		{"read_iolog=/etc/shadow", "name files outside"},
		{"include /etc/fio.job", "includes no other file"},
		{"hostname=10.0.0.1", "opens no connections"},
		{"ioscheduler=none", "changes nothing on its node"},
		{"continue_on_error=all", "makes the phase Invalid"},
		{"unified_rw_reporting=1", "decides what is reported"},
		{"steadystate=iops:5%", "steadyState in the measure phase"},
		{"buffer_pattern='/etc/shadow'", "can name a file"},
		{"rw=trim", "write read, write"},
		{"bs=${HOME}", "without '$'"},
		{"bs=$pagesize", "without '$'"},
		{"size=`id`", "without '$'"},
		{"numjobs=5000", "from 1 to 1024"},
		{"numjobs=-3", "from 1 to 1024"},
		{"invention=1", "not an allowed option in a job file: remove it, or see"},
		{"iodepht=4", "iodepht is not an allowed option in a job file: did you mean iodepth? Otherwise remove it, or see"},
		{"rw_mixread=70", "did you mean rwmixread?"},
		{"nowait=1", "not an allowed option in a job file: remove it"},
		{"RW=read", "in lower case"},
		{"--rw=read", "in lower case"},
		{"rw\x00=read", "control characters"},
		{"[global]", "line 3: [global] follows a job"},
		{"[a", "an invalid name"},
		{"[../x]", "an invalid name"},
		{"[job]", "two sections"},
		{"fallocate=/etc", "write none"},
		{"description=a;b", "plain value"},
	} {
		_, err := ParseUserFile("[job]\nbs=8k\n" + c.line + "\n")
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.line, err, c.says)
		}
	}
	for text, says := range map[string]string{
		"":                                 "there is no job",
		"[global]\nbs=8k\n":                "there is no job",
		"bs=8k\n[a]":                       "line 1: \"bs=8k\" is before",
		"[a]\nramp_time=1\n[b]\nstonewall": "remove ramp_time, or put each job into its own phase",
		"[global]\ntime_based\n[a]\nruntime=9\n[b]\nruntime=0": "line 1: time_based in [b] has no effect without a runtime",
		strings.Repeat("x", 20<<10):                            "shorten it",
		strings.Repeat("[a]\nzz=1\n", 99):                      "and 177 more lines",
	} {
		if _, err := ParseUserFile(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.30q: %v, want %q", text, err, says)
		}
	}
}

// FuzzUserFile: no job file gets an option, a path or a variable past the check.
func FuzzUserFile(f *testing.F) {
	for _, seed := range []string{goodUserFile, "[a]\nfilename=data", "[a]\rexec_prerun=id", "[global]\n[a]\nbs=8k # x",
		"[a]\nsize = 10%\n;x\n[b]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ParseUserFile(text)
		if err != nil {
			return
		}
		written, err := file.On(Place{Folder: "/data/own", Data: []string{"/data/d"}}, 1).Text()
		if err != nil {
			t.Fatalf("it was accepted and cannot be written: %v", err)
		}
		for line := range strings.Lines(written) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			_, known := allowed[name]
			ours := slices.Contains([]string{"thread", "group_reporting", "lat_percentiles", "clat_percentiles", "directory", "new_group",
				"allow_file_create", "randrepeat"}, name)
			if name[0] != '[' && !known && !ours {
				t.Errorf("option %q came through", name)
			}
			if name != "filename" && name != "directory" && name != "bssplit" && name != "random_distribution" && name != "description" &&
				strings.ContainsAny(value, "/$`'\"\\") {
				t.Errorf("value %q of %s came through", value, name)
			}
		}
	})
}
