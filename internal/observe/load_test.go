package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

func TestJudgeLoad(t *testing.T) {
	const mebibyte = 1 << 20
	for name, c := range map[string]struct {
		load               Load
		throttled, foreign string
	}{
		"nothing known":    {Load{}, "", ""},
		"alone":            {Load{Elapsed: time.Minute, Read: 100 * mebibyte}, "", ""},
		"held up a little": {Load{Elapsed: time.Minute, Throttled: 3 * time.Second}, "", ""},
		"held up": {Load{Elapsed: time.Minute, Throttled: 4 * time.Second},
			"for 4s of 1m0s: raise or remove podTemplate.resources.limits.cpu", ""},
		"many CPUs":        {Load{Elapsed: time.Minute, Throttled: 4 * time.Second, CPUs: 2}, "", ""},
		"held up on all":   {Load{Elapsed: time.Minute, Throttled: 8 * time.Second, CPUs: 2}, "for 4s of 1m0s", ""},
		"others, a little": {Load{Elapsed: time.Minute, Read: 100 * mebibyte, ForeignRead: 10 * mebibyte}, "", ""},
		"others read": {Load{Elapsed: time.Minute, Devices: "sdb", Read: 100 * mebibyte, ForeignRead: 11 * mebibyte}, "",
			"the workload read 100.0 MiB on sdb, others read 11.0 MiB there"},
		"others write": {Load{Elapsed: time.Minute, Devices: "sdb", Written: 20 * mebibyte, ForeignWritten: 4 * mebibyte}, "",
			"the workload wrote 20.0 MiB on sdb, others wrote 4.0 MiB there"},
		"too little":  {Load{Elapsed: time.Minute, Read: mebibyte, ForeignRead: 4*mebibyte - 1}, "", ""},
		"only others": {Load{Elapsed: time.Minute, Devices: "sdb", ForeignRead: 4 * mebibyte}, "", "others read 4.0 MiB"},
	} {
		throttled, foreign := JudgeLoad(c.load)
		if !strings.Contains(throttled, c.throttled) || (throttled == "") != (c.throttled == "") || !strings.Contains(foreign, c.foreign) ||
			(foreign == "") != (c.foreign == "") {
			t.Errorf("%s: %q, %q", name, throttled, foreign)
		}
	}
}

func TestJudgeQuiet(t *testing.T) {
	for name, c := range map[string]struct {
		load  Load
		quiet bool
	}{
		"nothing known": {Load{Elapsed: time.Second, Busy: time.Second}, true},
		"no time":       {Load{Devices: "sdb"}, true},
		"a little":      {Load{Devices: "sdb", Elapsed: time.Second, Busy: 200 * time.Millisecond}, true},
		"at work":       {Load{Devices: "sdb", Elapsed: time.Second, Busy: 201 * time.Millisecond}, false},
	} {
		if words := JudgeQuiet(c.load); (words == "") != c.quiet {
			t.Errorf("%s: %q", name, words)
		}
	}
}

// TestCollectLoad: the users of the devices are known only if the volume does not share its devices.
func TestCollectLoad(t *testing.T) {
	disk := &device{name: "sdb"}
	sources := map[string]sourceDetail{
		"cgroup":     {Changes: map[string]int64{"throttledNanoseconds": 5}},
		"device.sdb": {Changes: map[string]int64{"readBytes": 100, "writtenBytes": 70, "busyNanoseconds": 9}},
		"process":    {Changes: map[string]int64{"readBytes": 90, "writtenBytes": 50}},
	}
	for name, c := range map[string]struct {
		mount *mountinfo.Mount
		zfs   bool
		want  Load
	}{
		"device":         {nil, false, Load{Devices: "sdb", Busy: 9, Read: 90, ForeignRead: 10, Written: 50, ForeignWritten: 20}},
		"file system":    {&mountinfo.Mount{Root: "/", Point: "/volume"}, false, Load{Devices: "sdb", Busy: 9, Read: 90, ForeignRead: 10}},
		"mounted folder": {&mountinfo.Mount{Root: "/var/volumes/a", Point: "/volume"}, false, Load{}},
		"mere folder":    {&mountinfo.Mount{Root: "/", Point: "/"}, false, Load{}},
		"dataset":        {&mountinfo.Mount{Root: "/", Point: "/volume"}, true, Load{}},
	} {
		o := &Observer{cpus: 4, place: place{path: "/volume"}, mount: c.mount, devices: &deviceTree{all: []*device{disk}, top: []*device{disk}}}
		if c.zfs {
			o.zfs = &zfsVolume{}
		}
		c.want.Elapsed, c.want.Throttled, c.want.CPUs = time.Second, 5, 4
		if got := o.collectLoad(sources, time.Second); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
