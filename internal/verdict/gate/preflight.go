package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
)

// preflightRule requires that checks of the storage have no warning in any valid run, or one in each.
type preflightRule struct {
	// checks are those that are judged. If it is empty, all that apply are judged.
	checks []string
	// warned is true if the checks must have a warning.
	warned bool
}

func compilePreflight(preflight *v1alpha1.PreflightGate) (rule, []string) {
	rule := preflightRule{warned: preflight.Expect == results.PreflightWarning}
	var mistakes []string
	if rule.warned && len(preflight.Checks) == 0 {
		mistakes = append(mistakes, "preflight.expect: set checks to those that have to warn, such as checks: [ashift]")
	}
	for _, check := range preflight.Checks {
		if !slices.Contains(results.PreflightChecks(), string(check)) {
			mistakes = append(mistakes, fmt.Sprintf("preflight.checks: there is no check %q: %s", check,
				remedy(string(check), results.PreflightChecks())))
		}
		rule.checks = append(rule.checks, string(check))
	}
	return rule, mistakes
}

func definePreflight(preflight *v1alpha1.PreflightGate) string {
	var checks []string
	for _, check := range preflight.Checks {
		checks = append(checks, plain(string(check)))
	}
	text := "no warnings from the preflight checks"
	if preflight.Expect == results.PreflightWarning {
		text = "a warning from each of the preflight checks"
	}
	if len(checks) > 0 {
		text += " " + strings.Join(checks, ", ")
	}
	return text
}

func (p preflightRule) uses() []reference { return nil }

func (p preflightRule) judge(evidence *Evidence, variants []string) []opinion {
	opinions := make([]opinion, 0, len(variants))
	for _, variant := range variants {
		one := p.judgeVariant(evidence, variant)
		one.variant = variant
		opinions = append(opinions, one)
	}
	return opinions
}

func (p preflightRule) judgeVariant(evidence *Evidence, variant string) opinion {
	var clean, warnings, unknown tally
	runs := 0
	for _, run := range evidence.Runs {
		if run.Variant != variant || !run.Valid {
			continue
		}
		runs++
		for _, check := range p.of(run) {
			text := check.Check + ": " + printable(strings.Join(check.Messages, "; "))
			switch check.State {
			case results.PreflightClean:
				clean.add(check.Check)
			case results.PreflightWarning:
				warnings.add(text)
			default: // including states of later releases
				unknown.add(text)
			}
		}
	}
	switch {
	case runs == 0:
		return opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonNoData,
			text: fmt.Sprintf("no data: variant %s has no valid runs: see its BenchmarkRuns for the reason", plain(variant))}
	case p.warned:
		return judgeWarned(clean, warnings, unknown, runs)
	case len(warnings.texts) > 0:
		return opinion{verdict: v1alpha1.VerdictFailed, reason: ReasonPreflightWarning, text: warnings.words(runs)}
	case len(unknown.texts) > 0:
		return opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonNotChecked, text: unknown.words(runs)}
	}
	return opinion{verdict: v1alpha1.VerdictPassed, reason: ReasonHolds,
		text: fmt.Sprintf("%s: no warnings (%s)", strings.Join(clean.texts, ", "), spelling.Count(runs, "run"))}
}

// judgeWarned requires a warning of each check in each run.
func judgeWarned(clean, warnings, unknown tally, runs int) opinion {
	switch {
	case len(clean.texts) > 0:
		return opinion{verdict: v1alpha1.VerdictFailed, reason: ReasonPreflightClean,
			text: "no warning, and one is expected: " + clean.words(runs)}
	case len(unknown.texts) > 0:
		return opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonNotChecked, text: unknown.words(runs)}
	}
	return opinion{verdict: v1alpha1.VerdictPassed, reason: ReasonHolds,
		text: fmt.Sprintf("warns as expected: %s (%s)", strings.Join(warnings.texts, "; "), spelling.Count(runs, "run"))}
}

// of returns the checks of a run that the gate judges. A missing check counts as one that could not be made.
func (p preflightRule) of(run results.RunResult) []results.PreflightResult {
	missing := func(check string) results.PreflightResult {
		const why = "the check did not run: it does not apply to this target, or no phase reported its disks"
		return results.PreflightResult{Check: check, State: results.PreflightUnknown, Messages: []string{why}}
	}
	if len(p.checks) == 0 && len(run.Preflight) == 0 {
		return []results.PreflightResult{missing("all")}
	}
	if len(p.checks) == 0 {
		return run.Preflight
	}
	var asked []results.PreflightResult
	for _, name := range p.checks {
		at := slices.IndexFunc(run.Preflight, func(one results.PreflightResult) bool { return one.Check == name })
		if at < 0 {
			asked = append(asked, missing(name))
			continue
		}
		asked = append(asked, run.Preflight[at])
	}
	return asked
}

// tally counts texts, in the order in which they appear.
type tally struct {
	texts []string
	runs  map[string]int
}

func (t *tally) add(text string) {
	if t.runs == nil {
		t.runs = map[string]int{}
	}
	if t.runs[text]++; t.runs[text] == 1 {
		t.texts = append(t.texts, text)
	}
}

// words lists the texts, each with its number of runs if not all runs have it.
func (t *tally) words(runs int) string {
	var words []string
	for _, text := range t.texts {
		if t.runs[text] < runs {
			text += fmt.Sprintf(" (%d of %s)", t.runs[text], spelling.Count(runs, "run"))
		}
		words = append(words, text)
	}
	return cmp.Or(strings.Join(words, "; "), "nothing was checked")
}
