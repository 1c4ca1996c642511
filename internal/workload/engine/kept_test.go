//go:build linux

package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// goOn starts another run, which takes over the volume of the present one.
func (b *bench) goOn(uid string) {
	before := b.request.Run
	b.request.Run.UID, b.request.KeepsDataOf = uid, &before
}

// TestKeptData: a fill only writes the data that the previous run has not left on the volume, and all other phases use what is there.
func TestKeptData(t *testing.T) {
	b := newBench(t)
	size := v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("16Mi")}}
	b.valid(size)
	b.valid(redoPhase(2, "dsync", 0.2))
	data := filepath.Join(b.request.Path, "storagebench.data.0000")
	before, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	b.goOn("uid-2")
	kept, _ := b.valid(size)
	if now, err := os.ReadFile(data); err != nil || string(now) != string(before) || kept.Metrics["filledBytes"] != 0 {
		t.Errorf("the data was written again: %v, %v", err, kept.Metrics)
	}
	said := false
	for _, check := range kept.Checks {
		said = said || strings.Contains(check.Message, "exist from the previous run")
	}
	if !said {
		t.Errorf("nothing says that the data was there: %+v", kept.Checks)
	}
	b.valid(oltpPhase(2, 50, 0.2))
	again, _ := b.valid(redoPhase(2, "dsync", 0.2))
	if again.Metrics["writeOperations"] == 0 || !strings.Contains(strings.Join(again.Notes, " "), "not recreated") {
		t.Errorf("the logs were recreated: %v", again.Notes)
	}
	if three, _ := b.valid(redoPhase(3, "dsync", 0.2)); strings.Contains(strings.Join(three.Notes, " "), "not recreated") {
		t.Errorf("three writers on two logs: %v", three.Notes)
	}
	b.goOn("uid-3")
	more := v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("20Mi")}}
	if got, _ := b.valid(more); got.Metrics["filledBytes"] != 4<<20 {
		t.Errorf("16 of 20 MiB were there, and %d bytes were written", got.Metrics["filledBytes"])
	}
}

// TestKeptShare: a share of the volume that exists already is not written again, and a larger one is completed.
func TestKeptShare(t *testing.T) {
	b := newBench(t).onVolume("64")
	b.valid(fillPhase("50%"))
	b.goOn("uid-2")
	for share, written := range map[v1alpha1.Share]bool{"30%": false, "50%": false} {
		if got, _ := b.valid(fillPhase(share)); (got.Metrics["filledBytes"] > 0) != written {
			t.Errorf("%s: %v", share, got.Metrics)
		}
	}
	if got, _ := b.valid(fillPhase("70%")); got.Metrics["filledBytes"] < 10<<20 || got.Metrics["filledBytes"] > 16<<20 {
		t.Errorf("70%%: %v", got.Metrics)
	}
}

// TestKeptVolumeIsProven: the data has to belong to exactly the run that the request names.
func TestKeptVolumeIsProven(t *testing.T) {
	b := newBench(t)
	b.valid(fillPhase("25%"))
	b.request.Run.UID = "uid-0"
	b.goOn("uid-2")
	b.refused(oltpPhase(2, 0, 0.2), ReasonWrongPlace, "it contains that of lab/run (uid-1)")
	empty := newBenchAlone(t)
	empty.goOn("uid-2")
	empty.refused(fillPhase("25%"), ReasonWrongPlace, "it carries no marker")
	if names := empty.entries(); len(names) != 0 {
		t.Errorf("%v was written to it", names)
	}
}
