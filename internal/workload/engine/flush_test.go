//go:build linux

package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/observe"
)

// slowSync makes each sync of the volume longer by this time, and counts the syncs.
func (b *bench) slowSync(by time.Duration) *int {
	syncs := 0
	b.executor.sync = func(v *volume) error {
		syncs++
		return errors.Join(pause(b.t.Context(), by), v.sync())
	}
	return &syncs
}

// TestFlushCounts: 8 MB that are written to a cache in 0.2 s and take another 0.8 s to reach the disk are about 8 MB/s, not 41. Reads have
// nothing to flush.
func TestFlushCounts(t *testing.T) {
	b := newBench(t)
	b.slowSync(800 * time.Millisecond)
	jobs := userPhase("[a]\nrw=write\nsize=1m\n")
	b.fakeFIO(reportOf(strings.Replace(goodReads, "read", "write", 1)) + "sleep 0.2")
	document, _ := b.valid(jobs)
	flush, took := document.Metrics["flushNanoseconds"], document.Metrics["durationNanoseconds"]
	if flush < 8e8 || took != flush+2e8 {
		t.Errorf("the flush took %d ns of %d", flush, took)
	}
	if got, want := document.Metrics["writeBytesPerSecond"], perSecond(8192000, time.Duration(took)); got != want || got > 8192000 {
		t.Errorf("%d bytes/s, want %d", got, want)
	}
	if long := document.Measured[0].To.Sub(document.Measured[0].From).Nanoseconds(); long != took {
		t.Errorf("the numbers are from %d ns, want %d", long, took)
	}
	b.fakeFIO(reportOf(goodReads) + "sleep 0.2")
	document, _ = b.valid(userPhase("[a]\nrw=read\nsize=1m\n"))
	if _, there := document.Metrics["flushNanoseconds"]; there || document.Metrics["durationNanoseconds"] != 2e8 {
		t.Errorf("only reads: %v", document.Metrics)
	}
}

// TestMetadataFlushCounts: created files count only once they are on the disk.
func TestMetadataFlushCounts(t *testing.T) {
	b := newBench(t)
	b.slowSync(600 * time.Millisecond)
	document, _ := b.valid(measurePhase(v1alpha1.Workload{Metadata: &v1alpha1.MetadataWorkload{Workers: 2, FilesPerWorker: 10,
		Duration: seconds(1)}}))
	operations, took := document.Metrics["metadataOperations"], document.Metrics["durationNanoseconds"]
	if got := document.Metrics["metadataOperationsPerSecond"]; took < 15e8 || got != perSecond(operations, time.Duration(took)) {
		t.Errorf("%d operations in %d ns are %d per second", operations, took, got)
	}
}

// onDisks are counters of disks, of a node that does not say how much it holds in memory.
type onDisks struct{ counters }

func (c onDisks) Between(observe.Snapshot, observe.Snapshot) observe.Delta {
	delta := c.counters.Between(observe.Snapshot{}, observe.Snapshot{})
	delta.Metrics["deviceWrittenBytes"] = 1 << 30
	return delta
}

// TestRampIsKept: the data that a ramp has left in caches is still there when the measurement begins, and the ramp ends at the agreed time.
func TestRampIsKept(t *testing.T) {
	b := newBench(t)
	b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
	b.valid(fillPhase("50%"))
	b.executor.observe = func(target observe.Target) (counters, error) {
		observer, err := observe.New(target)
		return onDisks{observer}, err
	}
	phase := oltpPhase(2, 50, 0.3)
	for name, c := range map[string]struct {
		ramp *v1alpha1.Duration
		want int
	}{"without a ramp": {nil, 2}, "with a ramp": {seconds(0.7), 2}} {
		syncs := b.slowSync(0)
		phase.Measure.Workload.OLTP.RampUp = c.ramp
		agreed := time.Now().Add(1500 * time.Millisecond)
		b.request.StartAt = ptr.To(agreed)
		document, details := b.valid(phase)
		if *syncs != c.want {
			t.Errorf("%s: %d syncs, want one before and one after", name, *syncs)
		}
		late := document.StartedAt.Sub(agreed)
		if late < -100*time.Millisecond || late > 5*time.Second {
			t.Errorf("%s: the measurement began %s after the agreed time", name, late)
		}
		if kept := strings.Contains(details.JobFiles[len(details.JobFiles)-1], "invalidate=0"); kept != (c.ramp != nil) {
			t.Errorf("%s: the last job keeps the page cache: %v", name, kept)
		}
		// The disks write what the ramp has left in memory, too.
		_, known := document.Metrics["writtenBytesPerApplicationByteMilli"]
		noted := strings.Contains(strings.Join(document.Notes, "\n"), "when the ramp had ended")
		if known != (c.ramp == nil) || noted != (c.ramp != nil) {
			t.Errorf("%s: there are the bytes per byte: %v, and notes %q", name, known, document.Notes)
		}
	}
}
