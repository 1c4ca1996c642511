package pictures

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/report"
)

// TestThousandRuns: a report of 1,000 runs with the documents of its phases takes less than 2 s of processor time, allocates less than
// 200 MiB in all, and is smaller than 2 MiB. It also has to contain enough pictures and rows.
func TestThousandRuns(t *testing.T) {
	e := experiment(250, "a", "b", "c", "d")
	var phases []Phase
	for _, wanted := range WantedOf(e) {
		phases = append(phases, Phase{Run: wanted.Run, Variant: wanted.Variant, Document: document(t, wanted.Phase, 50<<20), Pool: observed()})
	}
	if len(e.Runs) != 1000 || len(phases) != 4*maxRuns*2 {
		t.Fatalf("%d runs, %d documents", len(e.Runs), len(phases))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := processorTime(t)
	album := New(e)
	for _, phase := range phases {
		album.Add(phase)
	}
	page, _, err := report.HTML(report.Page{Experiment: e, Pictures: album.Pictures()})
	took := processorTime(t) - began
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	most := 2 * time.Second
	if raceDetector {
		most *= 10
	}
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%s of processor time, %d MiB allocated, %d KiB", took, allocated>>20, len(page)>>10)
	if took > most || took <= 0 || allocated > 200<<20 || allocated < 1<<20 {
		t.Errorf("it took %s, and %d bytes", took, allocated)
	}
	figures, rows := strings.Count(string(page), "<figure>"), strings.Count(string(page), "<tr>")
	if len(page) > report.MaxHTMLBytes || len(page) < 300<<10 || figures < 20 || rows < 700 {
		t.Errorf("%d bytes, %d pictures, %d rows", len(page), figures, rows)
	}
}

// processorTime returns the processor time of this process, which does not depend on what else the machine does.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
