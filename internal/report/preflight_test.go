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

// TestPreflightOfAllVariants: what all variants have in common is one row, and the sectors are no concern if the ashift fits them.
func TestPreflightOfAllVariants(t *testing.T) {
	warning := func(check string) results.PreflightResult {
		return results.PreflightResult{Check: check, State: results.PreflightWarning, Messages: []string{"of " + check}}
	}
	for name, c := range map[string]struct {
		a, b []results.PreflightResult
		last []results.PreflightResult
		want string
	}{
		"alike": {[]results.PreflightResult{warning("memory")}, []results.PreflightResult{warning("memory")},
			[]results.PreflightResult{warning("memory")}, "| all | memory | Warning | of memory |\n"},
		"alike in some runs": {[]results.PreflightResult{warning("memory")}, []results.PreflightResult{warning("memory")},
			[]results.PreflightResult{{Check: "memory", State: results.PreflightClean}}, "| all | memory | Warning | of memory (3 of 4 runs) |\n"},
		"of one": {[]results.PreflightResult{warning("memory")}, []results.PreflightResult{warning("alignment")},
			[]results.PreflightResult{warning("alignment")},
			"| a | memory | Warning | of memory |\n| b | alignment | Warning | of alignment |\n"},
		"sectors": {[]results.PreflightResult{warning("sectors"), {Check: "ashift", State: results.PreflightClean}},
			[]results.PreflightResult{warning("sectors"), warning("ashift")}, []results.PreflightResult{warning("sectors")},
			"| b | sectors | Warning | of sectors |\n| b | ashift | Warning | of ashift (1 of 2 runs) |\n"},
	} {
		e := experiment(2, "a", "b")
		for i := range e.Runs {
			if e.Runs[i].Preflight = c.a; e.Runs[i].Variant == "b" {
				e.Runs[i].Preflight = c.b
			}
		}
		e.Runs[3].Preflight = c.last
		_, got, _ := strings.Cut(sectionOf(e, "Preflight"), "|---|---|---|---|\n")
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	e := experiment(1, "a")
	e.Runs[0].Preflight = []results.PreflightResult{warning("memory")}
	if got := sectionOf(e, "Preflight"); !strings.Contains(got, "| a | memory |") {
		t.Error("one variant: " + got)
	}
}

// TestWarningsAreShown: both reports show the warnings about the environment, without those that the check of the ashift makes pointless.
func TestWarningsAreShown(t *testing.T) {
	e := experiment(1, "a", "b", "c")
	e.Environment["warning.governor"] = []string{"The CPU governor is powersave."}
	e.Environment["log.warning.fileSystem"] = []string{"The volume is tmpfs."}
	e.Environment["warning.device.0.sectors"] = []string{"The pool should have an ashift of 12."}
	ashift := func(state string) []results.PreflightResult {
		return []results.PreflightResult{{Check: "ashift", State: state}}
	}
	plain := []results.PreflightResult{{Check: "writeCache", State: results.PreflightClean}}
	for name, sectors := range map[string]bool{"none": true, "of plain volumes": true, "of pools": false, "of both": true, "unknown": true} {
		e.Runs[0].Preflight, e.Runs[1].Preflight = map[string][]results.PreflightResult{"of plain volumes": plain,
			"of pools": ashift(results.PreflightClean), "of both": plain, "unknown": ashift(results.PreflightUnknown)}[name], nil
		if name == "of both" {
			e.Runs[1].Preflight = ashift(results.PreflightClean)
		}
		markdown, page := Render(e).Markdown, string(render(t, Page{Experiment: e}))
		_, page, _ = strings.Cut(page, `<section id="warnings"`)
		page, _, _ = strings.Cut(page, "</section>")
		for form, text := range map[string]string{"markdown": markdown, "html": page} {
			if !strings.Contains(text, "governor is powersave.") || !strings.Contains(text, "The volume is tmpfs.") ||
				strings.Contains(text, "should have an ashift") != sectors {
				t.Errorf("%s with checks %s:\n%s", form, name, markdown)
			}
		}
		if at := strings.Index(markdown, "## Warnings"); at < 0 || at > strings.Index(markdown, "## Numbers") {
			t.Errorf("the warnings are not before the numbers:\n%s", markdown)
		}
	}
}
