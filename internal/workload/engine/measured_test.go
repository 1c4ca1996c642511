//go:build linux

package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/host/mountinfo"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
)

// TestMeasured: the start of fio and a ramp are before the measured time, and pauses between jobs that wait for each other are in it.
func TestMeasured(t *testing.T) {
	day := time.Unix(1_800_000_000, 0).UTC()
	first := watch{day: day, elapsed: time.Hour}
	for name, c := range map[string]struct {
		staged                   bool
		startup, whole, workload time.Duration
		from                     time.Duration
	}{
		"one stage":         {false, 0, 10 * time.Second, 9 * time.Second, time.Second},
		"a slow start":      {false, 6 * time.Second, 40 * time.Second, 30 * time.Second, 10 * time.Second},
		"a ramp":            {false, 0, 60 * time.Second, 30 * time.Second, 30 * time.Second},
		"short pauses":      {true, 0, 10400 * time.Millisecond, 10 * time.Second, 400 * time.Millisecond},
		"a small share":     {true, 0, 104 * time.Second, 100 * time.Second, 4 * time.Second},
		"pauses":            {true, 0, 20 * time.Second, 10 * time.Second, 0},
		"pauses, and start": {true, 3 * time.Second, 20 * time.Second, 10 * time.Second, 3 * time.Second},
		"only a slow start": {true, 10 * time.Second, 20 * time.Second, 10 * time.Second, 10 * time.Second},
	} {
		b := bracket{began: first, ended: watch{elapsed: time.Hour + c.whole}, staged: c.staged, startup: c.startup}
		got := b.measured(first, c.workload)
		if from := got.From.Sub(day); from != c.from || got.To.Sub(day) != c.whole {
			t.Errorf("%s: from %s to %s, want from %s to %s", name, from, got.To.Sub(day), c.from, c.whole)
		}
	}
}

func TestStaged(t *testing.T) {
	alone, after := fio.Job{Name: "a"}, fio.Job{Name: "b", After: true, Workers: 3}
	for name, c := range map[string]struct {
		file fio.File
		want bool
		many int
	}{
		"none":         {fio.File{}, false, 0},
		"side by side": {fio.NewFile(alone, alone), false, 2},
		"in turn":      {fio.NewFile(alone, after), true, 4},
	} {
		if got, many := staged(c.file), workers(c.file); got != c.want || many != c.many {
			t.Errorf("%s: %v, %d workers", name, got, many)
		}
	}
}

// TestPausesAreMeasuredTime: a long pause of fio before the second job is part of the measured time. A single job has no pause.
func TestPausesAreMeasuredTime(t *testing.T) {
	b := newBench(t)
	b.fakeFIO(reportOf(goodReads) + "sleep 0.5")
	document, _ := b.valid(userPhase("[a]\nrw=read\nsize=1m\n[b]\nstonewall\nrw=read\nsize=1m\n"))
	if long := document.Measured[0].To.Sub(document.Measured[0].From); long < 450*time.Millisecond {
		t.Errorf("the numbers are from %s", long)
	}
	document, _ = b.valid(userPhase("[a]\nrw=read\nsize=1m\n"))
	if long := document.Measured[0].To.Sub(document.Measured[0].From); long != 200*time.Millisecond {
		t.Errorf("the numbers are from %s", long)
	}
}

// TestPausesOfAFill: ZFS writes while fio pauses between two files, so the pauses count, but not the start of fio. Other file systems have
// written all of a file when its job ends.
func TestPausesOfAFill(t *testing.T) {
	b := newBench(t)
	b.executor.sync = func(*volume) error { return nil }
	b.fakeFIO(reportOf(strings.Replace(goodReads, "read", "write", 1)) + "sleep 1") // 0.2 s of work
	first := fio.Job{Name: "fill-0", Mode: fio.Write}
	for name, c := range map[string]struct {
		fsType string
		after  bool
		counts bool
	}{"on ZFS": {"zfs", true, true}, "side by side": {"zfs", false, false}, "on ext4": {"ext4", true, false}} {
		s := b.executor.newSession(b.request, results.KindFill, nil)
		s.volume = &volume{place: place{path: b.request.Path, mount: mountinfo.Mount{FSType: c.fsType}}}
		s.startup = 300 * time.Millisecond
		began := time.Now()
		sum, err := s.runToDisk(t.Context(), fio.NewFile(first, fio.Job{Name: "fill-1", Mode: fio.Write, After: c.after}))
		took := time.Since(began) - s.startup
		if err != nil || (sum.Duration > 650*time.Millisecond) != c.counts || sum.Duration > took {
			t.Errorf("%s: %s of %s without the start of fio, %v", name, sum.Duration, took, err)
		}
	}
}

// TestDisksOverTheMeasuredTime: the rates of the disks do not cover the time that fio takes to start and to end.
func TestDisksOverTheMeasuredTime(t *testing.T) {
	b := newBenchAlone(t)
	b.executor.judgeLoad = func(observe.Load) (string, string) { return "", "" } // others may use the disk
	b.executor.judgeQuiet = func(observe.Load) string { return "" }
	b.fakeFIO(reportOf(goodReads) + "dd if=/dev/zero of=" + b.request.Path + "/x bs=1M count=8 conv=fsync 2>/dev/null; sleep 1")
	document, details := b.valid(userPhase("[a]\nrw=read\nsize=1m\n"))
	written, known := document.Metrics["deviceWrittenBytes"]
	if !known {
		t.Skipf("the devices below %s are not counted: %s", b.request.Path, details.Unavailable)
	}
	if got, want := document.Metrics["diskWrittenBytesPerSecond"], perSecond(written, 200*time.Millisecond); max(got-want, want-got) > 1 {
		t.Errorf("%d bytes in 200 ms are %d per second, want %d", written, got, want)
	}
}

// TestRampsOfStages: each stage would have a ramp of its own.
func TestRampsOfStages(t *testing.T) {
	b := newBench(t)
	for _, wait := range []string{"stonewall", "wait_for_previous"} {
		b.refused(userPhase("[global]\nrw=read\nsize=1m\nramp_time=1\n[a]\n[b]\n"+wait+"\n"), ReasonJobRefused, "remove ramp_time")
	}
}
