package report

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
)

// TestNotesOfP999: a note about P999 alone is shown if a gate needs it.
func TestNotesOfP999(t *testing.T) {
	const note = "readLatency: 812 operations are too few for P999 (10000): measure longer"
	for message, want := range map[string]bool{"no data: scan.readLatencyP999Nanoseconds was not measured": true, "scan.readLatencyP99Nanoseconds holds": false} {
		e := experiment(6, "old", "new")
		e.Notes = []results.Note{{Phase: "aged-scan", Text: note, Results: 1, Of: 6}, {Phase: "aged-scan", Text: "left out: series", Results: 1, Of: 6}}
		e.Gates = []results.GateResult{{Name: "g", Verdict: "Passed", Message: message}}
		if shown := Render(e).Markdown; strings.Contains(shown, note) != want || !strings.Contains(shown, "left out: series") {
			t.Errorf("%s: shown is not %v", message, want)
		}
	}
}
