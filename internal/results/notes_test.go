package results

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMergeNotes(t *testing.T) {
	few := func(count int) string {
		return fmt.Sprintf("readLatencyP999Nanoseconds is left out: it needs 10000 operations, and there were %d", count)
	}
	docs := []PhaseDocument{
		{Phase: "read", Outcome: OutcomeValid, Notes: []string{few(800), few(90), "readLatencyP99Nanoseconds is left out: it needs 10000 operations, and there were 90", "a cache may have served it"}},
		{Phase: "write", Outcome: OutcomeValid, Notes: []string{few(7)}},
		{Phase: "read", Outcome: OutcomeInvalid, Notes: []string{few(1), "its numbers are not used"}},
		{Phase: "read", Outcome: OutcomeValid, Notes: []string{few(1234)}},
		{Phase: "read", Outcome: OutcomeValid},
	}
	want := []Note{{"read", few(800), 2, 3}, {"read", "readLatencyP99Nanoseconds is left out: it needs 10000 operations, and there were 90", 1, 3},
		{"read", "a cache may have served it", 1, 3}, {"write", few(7), 1, 1}}
	if diff := cmp.Diff(want, MergeNotes(docs)); diff != "" {
		t.Error(diff)
	}
	var many []PhaseDocument
	for i := range 2 * maxMergedNotes {
		many = append(many, PhaseDocument{Phase: fmt.Sprintf("phase-%c%c", 'a'+i/16, 'a'+i%16), Outcome: OutcomeValid, Notes: []string{few(i)}})
	}
	if got := len(MergeNotes(many)); got != maxMergedNotes {
		t.Errorf("%d notes are kept, want %d", got, maxMergedNotes)
	}
}
