//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/test/program"
)

// fakeFIO puts a script in the place of fio; $OUT is where the report goes.
func (b *bench) fakeFIO(script string) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "fio")
	body := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo fio-3.33; exit; fi\n" +
		"for a in \"$@\"; do case $a in --output=*) OUT=${a#--output=};; esac; done\n" + script
	if err := program.Script(path, body); err != nil {
		b.t.Fatal(err)
	}
	b.executor.FIO = path
}

// reportOf writes a report with one job.
func reportOf(members ...string) string {
	job := strings.Join(append([]string{`"jobname":"a"`}, members...), ",")
	return "cat >$OUT <<'EOF'\n{\n\"fio version\":\"fio-3.33\",\"jobs\":[{" + job + "}]}\nEOF\n"
}

const goodReads = `"read":{"io_bytes":8192000,"total_ios":1000,"runtime":200,"lat_ns":{"min":100,"max":300,"mean":200.0,"N":1000,"bins":{"200":1000}}}`

// TestBadEndings: whatever goes wrong under a workload, the document says so in words and has no number.
func TestBadEndings(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("4Mi")}})
	for name, c := range map[string]struct{ script, reason, says string }{
		"full":              {reportOf(goodReads, `"error":28`) + "exit 1", ReasonVolumeFull, "the volume is full"},
		"quota":             {reportOf(goodReads, `"error":122`) + "exit 1", ReasonQuotaExceeded, "the quota of the volume is used up"},
		"I/O error":         {reportOf(goodReads, `"error":5`) + "exit 1", ReasonIOError, "reported an I/O error"},
		"error, but exit 0": {reportOf(goodReads, `"error":5`), ReasonIOError, "reported an I/O error"},
		"errors counted":    {reportOf(goodReads, `"total_err":3`), ReasonIOError, "3 operations failed"},
		"read-only":         {reportOf(goodReads, `"error":30`), ReasonReadOnly, "the volume is read-only"},
		"killed":            {reportOf(goodReads) + "kill -KILL $$", ReasonKilled, "ended by signal 9"},
		"asked to end":      {reportOf(goodReads) + "echo 'fio: terminating on signal 15'", ReasonKilled, "ended by signal 15"},
		"exit 1":            {reportOf(goodReads) + "exit 1", ReasonFailed, "exit status 1"},
		"no report":         {"exit 0", ReasonFailed, "fio wrote no report"},
		"half a report":     {"echo '{' > $OUT", ReasonFailed, "fio wrote no report"},
		"nothing done":      {reportOf(`"read":{"io_bytes":0,"total_ios":0,"runtime":200}`), ReasonNoNumbers, "without a single read"},
		"no time": {reportOf(strings.Replace(goodReads, `"runtime":200`, `"runtime":0`, 1)), ReasonClocksDisagree,
			"reports no measured time"},
		"too much time": {reportOf(strings.Replace(goodReads, `"runtime":200`, `"runtime":9000`, 1)), ReasonClocksDisagree,
			"cannot have worked longer"},
		"too little time": {reportOf(strings.Replace(goodReads, `"runtime":200`, `"runtime":100`, 1)) + "sleep 0.3", ReasonClocksDisagree,
			"was asked to work for 200ms"},
		"writes": {reportOf(strings.Replace(goodReads, "read", "write", 1)) + "sleep 0.3", ReasonMixMissed,
			"100.00% of 1000 operations were writes"},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			if c.reason == ReasonNoNumbers {
				c.script += "sleep 0.3"
			}
			b.fakeFIO(c.script)
			b.refused(oltpPhase(2, 0, 0.2), c.reason, c.says)
		})
	}
	b.fakeFIO(reportOf(goodReads) + "sleep 0.3")
	if document, _ := b.valid(oltpPhase(2, 0, 0.2)); document.Metrics["readOperationsPerSecond"] != 5000 {
		t.Errorf("%v", document.Metrics)
	}
	b.executor.FIO = "/nowhere/fio"
	b.refused(oltpPhase(2, 0, 0.2), ReasonFailed, "install fio")
}

// TestUnreadLatencies: the samples of redo are results, so a latency log that cannot be read makes the phase Invalid. For oltp the log is
// only part of the series, so a note says that the latencies are incomplete.
func TestUnreadLatencies(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("4Mi")}})
	path := filepath.Join(t.TempDir(), "fio")
	if err := program.Script(path, "#!/bin/sh\nfio \"$@\"\ncode=$?\nfor log in "+b.executor.Scratch+"/latencies-*/*_lat.*.log; do\n"+
		"[ ! -f $log ] || echo 'no sample' >>$log\ndone\nexit $code\n"); err != nil {
		t.Fatal(err)
	}
	b.executor.FIO = path
	b.refused(redoPhase(1, "dsync", 0.3), ReasonFailed, "fio's latency log")
	document, _ := b.valid(oltpPhase(2, 0, 0.3))
	if !slices.ContainsFunc(document.Notes, func(note string) bool { return strings.Contains(note, "latencies over time are incomplete") }) {
		t.Errorf("no note of it: %q", document.Notes)
	}
}

func TestIncompletePass(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("4Mi")}})
	b.fakeFIO(reportOf(`"write":{"io_bytes":4186112,"total_ios":511,"runtime":30}`) + "sleep 0.1")
	b.refused(fragmentPhase(1), ReasonNotCovered, "511 of 512 blocks")
	b.fakeFIO(reportOf(`"read":{"io_bytes":4186112,"total_ios":511,"runtime":30}`) + "sleep 0.1")
	b.refused(scanPhase(1), ReasonNotCovered, "instead of 4194304")
}

// TestClockStep: the time of day is set while a phase runs.
func TestClockStep(t *testing.T) {
	b := newBench(t)
	for _, step := range []time.Duration{-time.Hour, 90 * time.Second} {
		real, looks := newClock(), 0
		b.executor.clock = func() clock {
			return clock{elapsed: real.elapsed, day: func() time.Time {
				if looks++; looks > 4 {
					return real.day().Add(step)
				}
				return real.day()
			}}
		}
		document := b.execute(userPhase("[a]\nrw=read\nbs=4k\nsize=64k\n"))
		if document.Outcome != results.OutcomeInvalid || document.Reason != ReasonClockStepped ||
			!strings.Contains(document.Message, step.String()) {
			t.Errorf("%s: %s %s %s", step, document.Outcome, document.Reason, document.Message)
		}
		if took := document.FinishedAt.Sub(document.StartedAt); took < 0 || took > time.Minute {
			t.Errorf("%s: the phase took %s", step, took)
		}
	}
}

func TestStepTolerance(t *testing.T) {
	var day time.Time
	var elapsed time.Duration
	fake := clock{day: func() time.Time { return day }, elapsed: func() time.Duration { return elapsed }}
	for _, c := range []struct{ passed, elapsed, want time.Duration }{
		{time.Minute, time.Minute, 0}, {time.Minute + 900*time.Millisecond, time.Minute, 0},
		{time.Minute + 2*time.Second, time.Minute, 2 * time.Second},
		{-time.Minute, time.Minute, -2 * time.Minute}, {6*time.Hour + 10*time.Second, 6 * time.Hour, 0},
	} {
		day, elapsed = time.Unix(1000, 0), 0
		began := fake.start()
		day, elapsed = day.Add(c.passed), c.elapsed
		if got := began.step(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err    error
		reason string
	}{
		{fmt.Errorf("x: %w", syscall.ENOSPC), ReasonVolumeFull}, {syscall.EDQUOT, ReasonQuotaExceeded}, {syscall.EIO, ReasonIOError},
		{errors.New("whatever"), ReasonFailed}, {invalidf(ReasonNoData, "x"), ReasonNoData},
		{errors.Join(invalidf(ReasonNotCovered, "x"), syscall.EIO), ReasonNotCovered},
	} {
		if reason, message := classify(t.Context(), c.err); reason != c.reason || message == "" {
			t.Errorf("%v: %s %s", c.err, reason, message)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if reason, _ := classify(ended, syscall.EIO); reason != ReasonInterrupted {
		t.Errorf("%s", reason)
	}
}

func TestBrokenRequests(t *testing.T) {
	b := newBench(t)
	b.request.Phase = v1alpha1.Phase{Name: "op", Operate: &v1alpha1.OperatePhase{}}
	if document, err := b.executor.Execute(t.Context(), b.request, nil); err == nil {
		t.Errorf("%+v", document)
	}
	b.request.Phase, b.request.Run.UID = fillPhase("50%"), ""
	if document, err := b.executor.Execute(t.Context(), b.request, nil); err == nil {
		t.Errorf("%+v", document)
	}
}
