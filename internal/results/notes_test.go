package results

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMergeNotes(t *testing.T) {
	few := func(count int) string {
		return fmt.Sprintf("readLatency: %d operations are too few for P999 (10000): measure longer", count)
	}
	docs := []PhaseDocument{
		{Phase: "read", Outcome: OutcomeValid, Notes: []string{few(800), few(90), "readLatency: 90 operations are too few for P99 (1000), P999 (10000): measure longer", "a cache may have served it"}},
		{Phase: "write", Outcome: OutcomeValid, Notes: []string{few(7), "4k." + few(7), "64k." + few(9), "lasted 1m30.5s", "lasted 250ms"}},
		{Phase: "read", Outcome: OutcomeInvalid, Notes: []string{few(1), "its numbers are not used"}},
		{Phase: "read", Outcome: OutcomeValid, Notes: []string{few(1234)}},
		{Phase: "read", Outcome: OutcomeValid, Omitted: []string{"disk metrics of the pool: its agent reported nothing"}},
	}
	want := []Note{{"read", few(800), 2, 3}, {"read", "readLatency: 90 operations are too few for P99 (1000), P999 (10000): measure longer", 1, 3},
		{"read", "a cache may have served it", 1, 3}, {"write", few(7), 1, 1}, {"write", "4k." + few(7), 1, 1}, {"write", "64k." + few(9), 1, 1},
		{"write", "lasted 1m30.5s", 1, 1}, {"read", "left out: disk metrics of the pool: its agent reported nothing", 1, 3}}
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
