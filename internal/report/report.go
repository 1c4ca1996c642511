// Package report writes the results of an experiment for people (Markdown) and for CI systems (JUnit).
package report

import (
	"fmt"

	"github.com/storagebench/storagebench/internal/results"
)

const (
	// MaxMarkdownBytes bounds Report.Markdown.
	MaxMarkdownBytes = 200 << 10
	// MaxJUnitBytes bounds Report.JUnit.
	MaxJUnitBytes = 200 << 10
)

// Report is an experiment as it is shown.
type Report struct {
	// Markdown is read by a person in a minute: the verdict first.
	Markdown string
	// JUnit is green only if everything is known to be good.
	JUnit []byte
	// Omitted says in words what did not fit.
	Omitted []string
}

// Render writes both reports. The same experiment always gives the same bytes.
func Render(e results.Experiment) Report {
	markdown, omitted := renderMarkdown(e)
	junit, droppedCases := renderJUnit(e)
	if droppedCases > 0 {
		omitted = append(omitted, fmt.Sprintf("junit.xml: %d test cases", droppedCases))
	}
	return Report{Markdown: markdown, JUnit: junit, Omitted: omitted}
}

// verdictWord is the verdict, or why there is none.
func verdictWord(e results.Experiment) string {
	switch {
	case e.Verdict != "":
		return e.Verdict
	case e.State != "":
		return "no verdict (" + e.State + ")"
	}
	return "no verdict"
}
