// Package report renders the results of an experiment for people (Markdown) and for CI systems (JUnit).
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
