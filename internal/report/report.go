// Package report renders the results of an experiment for people (Markdown and HTML) and for CI systems (JUnit).
package report

import (
	"fmt"

	"github.com/storagebench/storagebench/internal/results"
)

const (
	// MaxMarkdownBytes limits Report.Markdown.
	MaxMarkdownBytes = 200 << 10
	// MaxJUnitBytes limits Report.JUnit.
	MaxJUnitBytes = 200 << 10
)

// Report is a rendered experiment.
type Report struct {
	// Markdown is for people: the verdict comes first.
	Markdown string
	// JUnit is green only if everything is known to be good.
	JUnit []byte
	// Omitted lists what did not fit.
	Omitted []string
}

// Render renders both reports. The same experiment always gives the same bytes.
func Render(e results.Experiment) Report {
	markdown, omitted := renderMarkdown(e)
	junit, droppedCases := renderJUnit(e)
	if droppedCases > 0 {
		omitted = append(omitted, fmt.Sprintf("junit.xml: %d test cases", droppedCases))
	}
	return Report{Markdown: markdown, JUnit: junit, Omitted: omitted}
}

// verdictWord returns the verdict, or why there is none.
func verdictWord(e results.Experiment) string {
	switch {
	case e.Verdict != "":
		return e.Verdict
	case e.State != "":
		return "no verdict (" + e.State + ")"
	}
	return "no verdict"
}

// notices are what a reader must know of the whole experiment.
func notices(e results.Experiment) []string {
	var all []string
	switch e.State {
	case results.StateSuperseded:
		all = append(all, "The benchmark was changed before this experiment ended. What was measured until then is below; no verdict follows "+
			"from it.")
	case results.StateIncomplete:
		all = append(all, "Runs are missing, so nothing is decided. What was measured is below.")
	}
	if e.Extended {
		all = append(all, "These results are preliminary: a gate is undecided, and more repetitions follow.")
	}
	return all
}

// runsWords says how many runs there are, and how many groups of them.
func runsWords(e results.Experiment) []string {
	all := []string{runsText(e.Runs)}
	if len(e.Groups) > 0 {
		all = append(all, fmt.Sprintf("The runs on all nodes at the same time are one repetition: there are %d such groups.", len(e.Groups)))
	}
	return all
}

// runsText is, for example, "6 runs, 3 of them valid."
func runsText(runs []results.RunResult) string {
	valid := countValid(runs)
	switch {
	case len(runs) != 1:
		return fmt.Sprintf("%d runs, %d of them valid.", len(runs), valid)
	case valid == 1:
		return "1 run, which is valid."
	default:
		return "1 run, which is not valid."
	}
}

func countValid(runs []results.RunResult) int {
	count := 0
	for _, run := range runs {
		if run.Valid {
			count++
		}
	}
	return count
}
