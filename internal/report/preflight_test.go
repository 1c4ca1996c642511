package report

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
)

// TestPreflightIsShown: both reports show the results of valid runs that are not clean, with the number of runs.
func TestPreflightIsShown(t *testing.T) {
	e := experiment(2, "a9", "a12")
	check := func(state, message string) []results.PreflightResult {
		return []results.PreflightResult{{Check: "ashift", State: state, Messages: []string{message}},
			{Check: "sectors", State: results.PreflightClean}}
	}
	if text := sectionOf(e, "Preflight"); text != "" {
		t.Errorf("without checks: %q", text)
	}
	for i := range e.Runs {
		if e.Runs[i].Preflight = check(results.PreflightWarning, "blocks of 512 bytes"); e.Runs[i].Variant == "a12" {
			e.Runs[i].Preflight = check(results.PreflightUnknown, "the pool | does not say")
		}
	}
	e.Runs[0].Preflight = check(results.PreflightClean, "")
	last := e.Runs[3]
	last.Valid, last.Preflight = false, check(results.PreflightWarning, "of an invalid run")
	e.Runs = append(e.Runs, last)
	omitted := e.Runs[1] // as in large results
	omitted.Preflight = nil
	e.Runs = append(e.Runs, omitted)
	text := sectionOf(e, "Preflight")
	for _, want := range []string{"out of 8 in all valid runs", "| a9 | ashift | Warning | blocks of 512 bytes (1 of 2 runs) |",
		`| a12 | ashift | Unknown | the pool \| does not say |`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "invalid run") || strings.Contains(text, "sectors") || strings.Index(text, "a9") > strings.Index(text, "a12") {
		t.Error(text)
	}
	page := string(render(t, Page{Experiment: e}))
	if !strings.Contains(page, "Checks of the storage that are not clean") || !strings.Contains(page, "blocks of 512 bytes (1 of 2 runs)") {
		t.Error("the page does not show the checks")
	}
}
