//go:build linux

package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
)

// TestUntilOperationEnds: a workload that learns that its operation is over ends at the time that it reads, not before, and its numbers
// cover its work until then.
func TestUntilOperationEnds(t *testing.T) {
	b := newBench(t)
	b.valid(fillPhase("50%"))
	const longest = 60
	loads := map[string]v1alpha1.Phase{
		"oltp":     oltpPhase(2, 25, longest),
		"redo":     redoPhase(2, "fdatasync", longest),
		"metadata": metadataPhase(func(m *v1alpha1.MetadataWorkload) { m.FilesPerWorker, m.Duration = 20, seconds(longest) }),
	}
	for name, phase := range loads {
		phase.Measure.Until = v1alpha1.UntilOperationEnds
		b.executor.End = filepath.Join(t.TempDir(), workload.EndKey)
		at := time.Now().Add(5 * time.Second)
		if err := os.WriteFile(b.executor.End, []byte(workload.EndText(b.request.Run.UID, at)), 0o600); err != nil {
			t.Fatal(err)
		}
		document, details := b.valid(phase)
		to := document.Measured[len(document.Measured)-1].To
		if late := to.Sub(at); late < 0 || late > 15*time.Second {
			t.Errorf("%s: it was told to end at %s, and was measured until %s", name, at, to)
		}
		lasted := time.Duration(document.Metrics["durationNanoseconds"])
		if span := to.Sub(document.Measured[0].From); lasted > span+time.Second || lasted < span-time.Second || lasted < time.Second {
			t.Errorf("%s: the rates are over %s, and the measured time is %s", name, lasted, span)
		}
		if !slices.ContainsFunc(document.Notes, func(note string) bool { return strings.Contains(note, "until the operation had ended") }) {
			t.Errorf("%s: %q", name, document.Notes)
		}
		if details.Series == nil || len(details.Series.Points) < 2 {
			t.Fatalf("%s: there is no series: %+v", name, details.Series)
		}
		last, whole := details.Series.Points[len(details.Series.Points)-1], details.Series.Measured[len(details.Series.Measured)-1]
		seen := to.Add(time.Duration(last.ToMilliseconds-whole.ToMilliseconds) * time.Millisecond)
		if early := at.Sub(seen); early > 5*time.Millisecond {
			t.Errorf("%s: it was told to end at %s, and its series ends %s before", name, at, early)
		}
	}
}

// TestUntilTheLongestTime: a workload that does not learn of the end, or only of that of another run, lasts for its duration, and says so.
func TestUntilTheLongestTime(t *testing.T) {
	b := newBench(t)
	b.valid(fillPhase("50%"))
	for name, c := range map[string]struct {
		until v1alpha1.MeasureUntil
		uid   string
	}{"of another run": {v1alpha1.UntilOperationEnds, "uid-2"}, "nothing": {v1alpha1.UntilOperationEnds, ""}, "a duration": {"", b.request.Run.UID}} {
		b.executor.End = filepath.Join(t.TempDir(), workload.EndKey)
		if c.uid != "" {
			if err := os.WriteFile(b.executor.End, []byte(workload.EndText(c.uid, time.Now().Add(-time.Minute))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		phase := oltpPhase(2, 25, 2.5)
		phase.Measure.Until = c.until
		document, _ := b.valid(phase)
		if lasted := time.Duration(document.Metrics["durationNanoseconds"]); lasted < 2400*time.Millisecond {
			t.Errorf("%s: measured for %s", name, lasted)
		}
		noted := slices.ContainsFunc(document.Notes, func(note string) bool { return strings.Contains(note, "the longest time: the operation") })
		if noted != (c.until != "") {
			t.Errorf("%s: %q", name, document.Notes)
		}
	}
}
