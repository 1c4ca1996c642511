//go:build linux

package engine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
)

// archivedPhase is a log with an archiver on the volume log.
func archivedPhase(writers int32, sync, blocks string, lasting float64) v1alpha1.Phase {
	phase := redoPhase(writers, sync, lasting, v1alpha1.BlockSizeShare{Size: *block(blocks), Percent: 100})
	phase.Measure.Workload.Redo.Archive = &v1alpha1.RedoArchive{Volume: "log"}
	return phase
}

func newArchive(t *testing.T) (b *bench, archive string) {
	t.Helper()
	b, archive = newTogether(t)
	b.request.VolumeSizeBytes = 64 << 20
	return b, archive
}

// archived is the phase on two volumes.
func (b *bench) archived(archive string, phase v1alpha1.Phase) v1alpha1.Phase {
	made := b.together(archive)
	made.Measure = phase.Measure
	b.partsOf(made, archive)
	return made
}

// TestArchiver: segments are copied while the appends go on, each byte once, and the log is not held up.
func TestArchiver(t *testing.T) {
	b, archive := newArchive(t)
	for _, sync := range []string{"dsync", "fdatasync"} {
		document, details := b.valid(b.archived(archive, archivedPhase(2, sync, "64Ki", 4)))
		m := document.Metrics
		segment := m["archive.archivedBytes"] / max(m["archive.archivedSegments"], 1)
		if m["archive.archivedSegments"] < 2 || segment < 1<<20 || m["archive.readBytes"] < m["archive.archivedBytes"] ||
			m["archive.writtenBytes"] != m["archive.readBytes"] || m["archive.readBytes"] > m["archive.archivedBytes"]+segment ||
			m["archive.syncOperations"] != m["archive.archivedSegments"] {
			t.Errorf("%s: %v", sync, m)
		}
		if logged := m["redo.writtenBytes"]; logged < m["archive.archivedBytes"] || logged != m["redo.writeOperations"]*65536 {
			t.Errorf("%s: %d bytes were logged, and %d archived: %v", sync, logged, m["archive.archivedBytes"], m)
		}
		if gap := m["redo.longestCommitGapNanoseconds"]; gap < m["redo.writeLatencyMeanNanoseconds"]/2 || gap > 4e9 {
			t.Errorf("%s: the longest gap is %s", sync, time.Duration(gap))
		}
		seen := details.Workloads["redo"].SamplesSeen
		if sync == "fdatasync" && m["redo.syncOperations"] != m["redo.writeOperations"] || seen != m["redo.writeOperations"] {
			t.Errorf("%s: %d samples of %v", sync, seen, m)
		}
		if left, _ := filepath.Glob(filepath.Join(archive, "storagebench.archive*")); len(left) > 0 {
			t.Errorf("%s: %v is left", sync, left)
		}
	}
}

// TestKnownCommitGap: a single append that takes 1.5 s is the longest gap of one writer. With a second writer there is no such gap.
func TestKnownCommitGap(t *testing.T) {
	const slow = 1500 * time.Millisecond
	for writers, isGap := range map[int32]bool{1: true, 2: false} {
		t.Run(fmt.Sprint(writers), func(t *testing.T) {
			b, archive := newArchive(t)
			var appends atomic.Int64
			b.executor.delay = func(kind string) {
				if kind != "append" {
					return
				}
				long := 5 * time.Millisecond
				if appends.Add(1) == 100 {
					long = slow
				}
				_ = pause(t.Context(), long)
			}
			document, _ := b.valid(b.archived(archive, archivedPhase(writers, "dsync", "64Ki", 7)))
			gap := time.Duration(document.Metrics["redo.longestCommitGapNanoseconds"])
			if gap >= slow != isGap || gap < 5*time.Millisecond || gap > 2*slow {
				t.Errorf("%d writers: the longest gap is %s", writers, gap)
			}
			if most := document.Metrics["redo.writeLatencyMaxNanoseconds"]; most < slow.Nanoseconds() {
				t.Errorf("the longest append took %s", time.Duration(most))
			}
		})
	}
}

// TestCommitGaps: no append begins after the time is over, so the gaps end there: appends that are under way then are the only ones that can
// become durable. A real stall counts up to that moment, even if its append ends later.
func TestCommitGaps(t *testing.T) {
	const second = time.Second
	for name, test := range map[string]struct {
		at, now, gap time.Duration
		others       []time.Duration
	}{
		"between":                      {at: 2 * second, others: []time.Duration{5 * second, 9 * second}, now: 10 * second, gap: 4 * second},
		"before the first":             {at: 7 * second, others: []time.Duration{9 * second}, now: 10 * second, gap: 7 * second},
		"none":                         {now: 12 * second, gap: 10 * second},
		"until the end":                {at: second, others: []time.Duration{4 * second}, now: 11 * second, gap: 6 * second},
		"a stall beyond the end":       {at: second, others: []time.Duration{14 * second}, now: 15 * second, gap: 9 * second},
		"under way at the end":         {at: 5 * second, others: []time.Duration{9 * second, 16 * second}, now: 17 * second, gap: 5 * second},
		"two under way at the end":     {at: 5 * second, others: []time.Duration{9 * second, 16 * second, 23 * second}, now: 23 * second, gap: 5 * second},
		"a report of the progress":     {at: 5 * second, others: []time.Duration{9 * second}, now: 20 * second, gap: 5 * second},
		"seen in another order":        {at: 6 * second, others: []time.Duration{3 * second, 9 * second}, now: 10 * second, gap: 6 * second},
		"stopped before the time ends": {at: second, others: []time.Duration{2 * second}, now: 4 * second, gap: 2 * second},
	} {
		began := time.Now()
		var seen commits
		seen.start(began, began.Add(10*second), fio.NewSamples(10, 0))
		for _, at := range append([]time.Duration{test.at}, test.others...) {
			if at > 0 {
				seen.add(began.Add(at), time.Millisecond)
			}
		}
		if gap := seen.gap(began.Add(test.now)); gap != test.gap {
			t.Errorf("%s: the longest gap is %s instead of %s", name, gap, test.gap)
		}
	}
}

// TestStallUntilTheEnd: a log that stalls has a gap until the measurement is over, but not until its last append has ended.
func TestStallUntilTheEnd(t *testing.T) {
	b, archive := newArchive(t)
	const lasting, beyond, slack = 7 * time.Second, 600 * time.Millisecond, 300 * time.Millisecond
	var appends int
	var began time.Time
	var stalled time.Duration
	b.executor.delay = func(kind string) {
		if kind != "append" { // there is one writer
			return
		}
		if time.Since(began) > lasting+beyond { // the first append, also of another attempt
			appends, began = 0, time.Now()
		}
		long := 5 * time.Millisecond
		if appends++; appends == 100 {
			stalled = time.Since(began)
			long = lasting + beyond - stalled
		}
		_ = pause(t.Context(), long)
	}
	document, _ := b.valid(b.archived(archive, archivedPhase(1, "dsync", "64Ki", lasting.Seconds())))
	if gap := time.Duration(document.Metrics["redo.longestCommitGapNanoseconds"]); (gap - lasting + stalled).Abs() > slack {
		t.Errorf("the longest gap is %s instead of %s", gap, lasting-stalled)
	}
	if version := document.Environment["workload.version"]; version != "redo 2" {
		t.Errorf("the version is %q", version)
	}
}

// TestSlowArchiver: writers that come back to a segment that is not archived yet wait for it. The wait is a gap, and not part of the
// latency of an append.
func TestSlowArchiver(t *testing.T) {
	b, archive := newArchive(t)
	const slow = 400 * time.Millisecond // for each MiB
	b.executor.delay = func(kind string) {
		if kind == "archive" {
			_ = pause(t.Context(), slow)
		}
	}
	document, _ := b.valid(b.archived(archive, archivedPhase(1, "dsync", "256Ki", 6)))
	m := document.Metrics
	segment := m["archive.archivedBytes"] / max(m["archive.archivedSegments"], 1)
	each := slow * time.Duration(segment>>20) // of one segment
	if gap := time.Duration(m["redo.longestCommitGapNanoseconds"]); gap < each*8/10 || gap > 3*each+time.Second {
		t.Errorf("segments of %d bytes take %s, and the longest gap is %s", segment, each, gap)
	}
	if waited := time.Duration(m["redo.archiverWaitNanoseconds"]); waited < 2*time.Second || waited > 6*time.Second {
		t.Errorf("the writer waited for %s of 6 s", waited)
	}
	if rate, least := float64(m["archive.writeBytesPerSecond"]), float64(1<<20)/slow.Seconds(); rate > 1.05*least || rate < 0.5*least {
		t.Errorf("the archiver wrote %.0f bytes a second, and can write %.0f", rate, least)
	}
	if near := time.Duration(m["archive.writeLatencyMeanNanoseconds"]); near < slow || near > slow*3/2 {
		t.Errorf("a block took %s", near)
	}
	// The log has written at most the archived bytes and what its segments hold.
	if logged := m["redo.writtenBytes"]; logged > m["archive.archivedBytes"]+(segmentsPerLog+1)*segment {
		t.Errorf("%d bytes were logged over segments that were not archived: %v", logged, m)
	}
}

// TestArchivedBytesAreThoseOfTheLog: the copy of a segment has the content of the segment.
func TestArchivedBytesAreThoseOfTheLog(t *testing.T) {
	folder := t.TempDir()
	log := filepath.Join(folder, "log")
	content := make([]byte, 5*mib)
	for i := range content {
		content[i] = byte(i * 31 >> 3)
	}
	if err := os.WriteFile(log, content, 0o600); err != nil {
		t.Fatal(err)
	}
	shared := newSwitching()
	shared.full <- &segment{extent{log, mib, 2*mib + 4096}, make(chan struct{}, 1)}
	shared.full <- &segment{extent{log, 3 * mib, mib}, make(chan struct{}, 1)}
	shared.full <- &segment{extent{log, 0, mib}, make(chan struct{}, 1)}
	a := &archiver{switching: shared, folder: folder, keep: 2, buffer: make([]byte, archiveBlock), crowded: func() error { return nil }}
	if err := a.work(t.Context(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if a.archived != 3 || a.archivedBytes != 4*mib+4096 || a.read.Load() != a.archivedBytes || len(shared.full) != 0 {
		t.Errorf("%d segments of %d bytes", a.archived, a.archivedBytes)
	}
	for name, want := range map[string][]byte{"segment.00000001": content[3*mib : 4*mib], "segment.00000002": content[:mib]} {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes of %d: %v", name, len(got), len(want), err)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(folder, "segment.*")); len(found) != 2 {
		t.Errorf("the oldest segment is not gone: %v", found)
	}
}

// TestArchiverBesideALoad: with a ramp and another workload, and on one volume.
func TestArchiverBesideALoad(t *testing.T) {
	b, log := newTogether(t)
	data := dataLoad("data", 0, 20)
	data.OLTP.RampUp = seconds(1)
	redo := logLoad("redo", 20)
	redo.Redo.Archive = &v1alpha1.RedoArchive{}
	redo.Redo.BlockSizes = []v1alpha1.BlockSizeShare{{Size: *block("64Ki"), Percent: 100}}
	phase := b.together(log, data, redo)
	document, _ := b.valid(phase)
	for _, name := range []string{"data.readOperations", "redo.writeOperations", "redo-archive.archivedBytes"} {
		if document.Metrics[name] == 0 {
			t.Errorf("there is no %s: %v", name, document.Metrics)
		}
	}
}

func TestArchiverRefused(t *testing.T) {
	b, archive := newArchive(t)
	b.executor.delay = func(string) { _ = pause(t.Context(), 50*time.Millisecond) }
	if short := b.execute(b.archived(archive, archivedPhase(1, "dsync", "64Ki", 0.3))); short.Reason != ReasonNoNumbers ||
		!strings.Contains(short.Message, "was archived: measure longer") {
		t.Errorf("%s: %s", short.Reason, short.Message)
	}
	b.request.VolumeSizeBytes = 40 << 20
	large := b.archived(archive, archivedPhase(1, "dsync", "4Mi", 1))
	if document := b.execute(large); !strings.Contains(document.Message, "a segment of the logs has") {
		t.Errorf("%s: %s", document.Reason, document.Message)
	}
}
