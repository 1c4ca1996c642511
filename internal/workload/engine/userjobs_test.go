//go:build linux

package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/host/mountinfo"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// twoJobs wrote at 10 and read at 20 MiB/s for a second each.
const twoJobs = `cat >$OUT <<'EOF'
{
"fio version":"fio-3.33","jobs":[
{"jobname":"w","write":{"io_bytes":10485760,"total_ios":2000,"runtime":1000,"lat_ns":{"min":100,"max":100,"mean":100.0,"N":2000,"bins":{"100":2000}}}},
{"jobname":"r","read":{"io_bytes":20971520,"total_ios":2000,"runtime":1000,"lat_ns":{"min":300,"max":300,"mean":300.0,"N":2000,"bins":{"300":2000}}}}]}
EOF
`

// TestFiguresOfJobs: each of several jobs has its own figures. Only jobs that ran at the same time have a total.
func TestFiguresOfJobs(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		text, script string
		totals       bool
	}{
		"in turn":      {"[w]\nrw=write\nsize=1m\n[r]\nstonewall\nrw=read\nsize=1m\n", twoJobs + "sleep 2", false},
		"side by side": {"[w]\nrw=write\nsize=1m\n[r]\nrw=read\nsize=1m\n", twoJobs + "sleep 1", true},
	} {
		b.fakeFIO(c.script)
		document, _ := b.valid(userPhase(c.text))
		m := document.Metrics
		if m["r.readBytesPerSecond"] != 20<<20 || m["r.readLatencyP99Nanoseconds"] != 300 || m["r.flushNanoseconds"] != 0 {
			t.Errorf("%s: the reader: %v", name, m)
		}
		writes := m["w.writeBytesPerSecond"]
		if writes > 10<<20 || writes < 5<<20 || !c.totals && writes != 10<<20 || m["w.writeLatencyMeanNanoseconds"] != 100 {
			t.Errorf("%s: the writer: %v", name, m)
		}
		if m["writtenBytes"] != 10<<20 || m["readBytes"] != 20<<20 || m["durationNanoseconds"] == 0 {
			t.Errorf("%s: the counts: %v", name, m)
		}
		for _, total := range []string{"readBytesPerSecond", "writeBytesPerSecond", "readLatencyP99Nanoseconds", "writeOperationsPerSecond"} {
			if _, there := m[total]; there != c.totals {
				t.Errorf("%s: %s is there: %v", name, total, there)
			}
		}
	}
}

// TestJobsThatEndEarlier: the writes of a job are on the disk when it ends, so the sync after another job is not part of it. Figures of all
// jobs together would include a time in which only one of them ran.
func TestJobsThatEndEarlier(t *testing.T) {
	b := newBench(t)
	b.slowSync(300 * time.Millisecond)
	for name, c := range map[string]struct {
		runtime  string
		together bool
	}{"a tenth": {"100", false}, "just too short": {"899", false}, "long enough": {"900", true}} {
		b.fakeFIO(strings.Replace(twoJobs, `"runtime":1000`, `"runtime":`+c.runtime, 1) + "sleep 1")
		document, details := b.valid(userPhase("[w]\nrw=write\nsize=1m\n[r]\nrw=read\nsize=1m\n"))
		words := "job w ran for " + c.runtime + "ms, and the longest for 1s"
		if said := strings.Contains(strings.Join(document.Notes, "\n"), words); said == c.together {
			t.Errorf("%s: the notes: %q", name, document.Notes)
		}
		for _, total := range []string{"readBytesPerSecond", "writeBytesPerSecond", "readLatencyP99Nanoseconds"} {
			if _, there := document.Metrics[total]; there != c.together {
				t.Errorf("%s: %s is there: %v", name, total, there)
			}
		}
		took, flush := document.Metrics["w.durationNanoseconds"], document.Metrics["w.flushNanoseconds"]
		if (flush > 0) != c.together || fmt.Sprint((took-flush)/1e6) != c.runtime {
			t.Errorf("%s: the writer took %d ns, with a flush of %d", name, took, flush)
		}
		if text := details.JobFiles[len(details.JobFiles)-1]; strings.Count(text, "end_fsync=1") != 2 {
			t.Errorf("%s: a job does not end with a sync: %s", name, text)
		}
	}
}

// TestUnequalRamps: fio begins to count each job after its own ramp, so two jobs of 100 MB/s in turn would have 150 MB/s together.
func TestUnequalRamps(t *testing.T) {
	b := newBench(t)
	b.fakeFIO(twoJobs + "sleep 1")
	for name, c := range map[string]struct {
		global, w, r string
		together     bool
	}{
		"the same":         {"", "ramp_time=1\n", "ramp_time=1s\n", true},
		"none":             {"", "", "ramp_time=0\n", true},
		"of all jobs":      {"[global]\nramp_time=1\n", "", "", true},
		"of one job":       {"", "", "ramp_time=1\n", false},
		"longer":           {"", "ramp_time=1\n", "ramp_time=1m\n", false},
		"other than all's": {"[global]\nramp_time=1\n", "", "ramp_time=500ms\n", false},
	} {
		document, _ := b.valid(userPhase(c.global + "[w]\nrw=write\nsize=1m\n" + c.w + "[r]\nrw=read\nsize=1m\n" + c.r))
		if said := strings.Contains(strings.Join(document.Notes, "\n"), "job w has a ramp_time of "); said == c.together {
			t.Errorf("%s: the notes: %q", name, document.Notes)
		}
		for _, total := range []string{"readBytesPerSecond", "writeBytesPerSecond", "readLatencyP99Nanoseconds"} {
			if _, there := document.Metrics[total]; there != c.together {
				t.Errorf("%s: %s is there: %v", name, total, there)
			}
		}
		if document.Metrics["r.readBytesPerSecond"] != 20<<20 {
			t.Errorf("%s: the reader: %v", name, document.Metrics)
		}
	}
}

// commitCount are counters of a dataset with this many syncs that waited for the intent log.
type commitCount struct {
	counters
	count int64
}

func (c commitCount) Between(observe.Snapshot, observe.Snapshot) observe.Delta {
	return observe.Delta{Commits: c.count}
}

// TestRatesWithoutSync: with sync=disabled, the fsync at the end of a job returns at once, and only the jobs that last until the end of the
// round wait for their data. The writes of the others would have the speed of the memory.
func TestRatesWithoutSync(t *testing.T) {
	direction := func(milliseconds int64) fio.Direction {
		return fio.Direction{Bytes: 1 << 30, Operations: 1024, RuntimeMilliseconds: milliseconds}
	}
	const sideBySide, inTurn = "[w]\nrw=write\nsize=1g\n[r]\nrw=randrw\nsize=1g\n", "[w]\nrw=write\nsize=1g\n[r]\nstonewall\nrw=randrw\nsize=1g\n"
	for name, c := range map[string]struct {
		text, fsType string
		commits      int64
		// first is how long the first job ran, in milliseconds; the second one ran for a second.
		first   int64
		leftOut bool
	}{
		"in turn":                      {inTurn, "zfs", 0, 1000, true},
		"in turn, syncs wait":          {inTurn, "zfs", 2, 1000, false},
		"in turn, another file system": {inTurn, "ext4", 0, 1000, false},
		"side by side":                 {sideBySide, "zfs", 0, 1000, false},
		"one ends earlier":             {sideBySide, "zfs", 0, 500, true},
		"one ends earlier, syncs wait": {sideBySide, "zfs", 2, 500, false},
	} {
		file, err := fio.ParseUserFile(c.text)
		if err != nil {
			t.Fatal(err)
		}
		s := Executor{}.newSession(workload.Request{}, results.KindMeasure, nil)
		s.volume = &volume{place: place{mount: mountinfo.Mount{FSType: c.fsType}}}
		s.counters, s.bracket = commitCount{count: c.commits}, &bracket{}
		u := &userJobs{file: file, flush: 3 * time.Second, jobs: []fio.JobReport{
			{Name: "w", Write: direction(c.first), Sync: fio.Latency{Count: 7}}, {Name: "r", Read: direction(1000), Write: direction(1000)}}}
		if err := u.finish(s, fio.Sum{}); err != nil {
			t.Fatal(err)
		}
		for _, rate := range []string{"w.writeBytesPerSecond", "w.writeOperationsPerSecond", "w.syncOperationsPerSecond"} {
			if _, there := s.metrics[rate]; there == c.leftOut {
				t.Errorf("%s: %s is there: %v", name, rate, there)
			}
		}
		if said := strings.Contains(strings.Join(s.notes, "\n"), "writes and syncs of w are left out"); said != c.leftOut {
			t.Errorf("%s: the notes: %q", name, s.notes)
		}
		if m := s.metrics; m["w.writtenBytes"] != 1<<30 || m["w.writeOperations"] != 1024 || m["w.durationNanoseconds"] < c.first*1e6 ||
			m["r.writeBytesPerSecond"] != 1<<28 || m["r.readBytesPerSecond"] != 1<<28 || m["r.flushNanoseconds"] != 3e9 {
			t.Errorf("%s: %v", name, m)
		}
	}
}

// TestSyncsOfLibaioHaveNoLatency: fio includes the preceding write in the time of such a sync, so the latencies of writes and syncs added
// up to more than the elapsed time, and the run was Invalid.
func TestSyncsOfLibaioHaveNoLatency(t *testing.T) {
	for options, known := range map[string]bool{"ioengine=libaio\nfdatasync=1": false, "ioengine=libaio\nfsync=4": false,
		"ioengine=psync\nfdatasync=1": true, "fsync=4": true} {
		t.Run(options, func(t *testing.T) {
			document, _ := newBench(t).valid(userPhase("[a]\nrw=randwrite\nbs=4k\nsize=1m\ntime_based=1\nruntime=1s\n" + options + "\n"))
			_, there := document.Metrics["syncLatencyMeanNanoseconds"]
			if said := strings.Contains(strings.Join(document.Notes, "\n"), "latencies of syncs are left out"); there != known || said == known {
				t.Errorf("latencies are there: %v, said to be left out: %v", there, said)
			}
			if document.Metrics["syncOperations"] < 1 || document.Metrics["writeLatencyMeanNanoseconds"] < 1 {
				t.Errorf("%v", document.Metrics)
			}
		})
	}
}

// TestPacedJobsHaveNoLatency: fio shows 0.1 µs for requests that may have waited for seconds behind a stall.
func TestPacedJobsHaveNoLatency(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		option string
		known  bool
	}{"requests": {"rate_iops=200", false}, "bytes": {"rate=1m", false}, "no limit": {"rate_iops=0", true}, "least": {"rate_iops_min=1", true}} {
		b.fakeFIO(reportOf(goodReads) + "sleep 0.2")
		document, _ := b.valid(userPhase("[a]\nrw=read\nsize=1m\n" + c.option + "\n"))
		_, there := document.Metrics["readLatencyMeanNanoseconds"]
		if said := strings.Contains(strings.Join(document.Notes, "\n"), "latencies are left out"); there != c.known || said == c.known {
			t.Errorf("%s: latencies are there: %v, said to be left out: %v", name, there, said)
		}
		if document.Metrics["readOperationsPerSecond"] != 5000 {
			t.Errorf("%s: %v", name, document.Metrics)
		}
	}
}
