package gate

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/common"
)

const (
	// maxIssues limits the mistakes reported for one gate.
	maxIssues = 5
	// maxIssue limits the text of one, in bytes.
	maxIssue = 400

	doubleHint = "int and double are not mixed in arithmetic: write whole numbers with a decimal point, such as 2.0"
	unitHint   = "10000000.0 for 10ms, or write a bound, which takes units"
	numberHint = "write numbers out in full: 0.8 for 80%, 100000000.0 for 100M, " + unitHint
)

// expected matches CEL's list of all tokens that the grammar allows at this place, dozens of them.
var expected = regexp.MustCompile(`(?s) expecting \{.*`)

// hints say what to write instead. The first one that matches CEL's message is used.
var hints = []struct {
	pattern *regexp.Regexp
	hint    string
}{
	{regexp.MustCompile(`overload for '(phase|variant)'`), "names are written in quotes: " + metricHint},
	{regexp.MustCompile(`overload for '(share|mode)'|reference to '(share|mode)'`), statisticHint},
	{regexp.MustCompile(`type 'double' does not support field selection`),
		"a metric of one of several jobs or workloads is phase('NAME').workload('NAME').METRIC"},
	{regexp.MustCompile(`applied to '.*map\(string, double\)`), "choose a metric of the phase: " + metricHint},
	{regexp.MustCompile(`applied to '.*variant`), "go on from the variant: variant('NAME').phase('NAME').METRIC"},
	{regexp.MustCompile(`applied to '\(.*\b(int|uint)\b.*\bdouble\b|applied to '\(.*\bdouble\b.*\b(int|uint)\b`), doubleHint},
	{regexp.MustCompile(`expected type '(u?int|double)' but found '(u?int|double)'`), doubleHint},
	{regexp.MustCompile(`'_[<>]=?_' applied to '\((double, string|string, double)\)`), "write numbers without quotes and units: " + unitHint},
	{regexp.MustCompile(`'_[!=]=_' applied to`), "numbers are compared with numbers and texts with texts, lists element by element"},
	{regexp.MustCompile(`type 'variant'`), "go on from the variant: variant('NAME').phase('NAME').METRIC"},
	{regexp.MustCompile(`'_\+_' applied to '\(string`), "texts cannot be joined: write a name in one piece"},
	{regexp.MustCompile(`invalid (double|int|uint) literal`), "write a number below 1e308, and whole numbers below 9e18"},
	{regexp.MustCompile(`undeclared reference to '(phase|variant)'`), metricHint},
	{regexp.MustCompile(`undeclared reference|undefined field`),
		"names of phases are written in quotes, as in phase('aged-scan').readBytesPerSecond; docs/reference/gates.md lists the functions"},
	{regexp.MustCompile(`token recognition error at: '[=&|]`), "write == for equal, && for and, || for or"},
	{regexp.MustCompile(`Syntax error.*'%'|expecting <EOF>|extraneous input`), numberHint + "; write && for and, || for or"},
	{regexp.MustCompile(`mismatched input '<EOF>'`), "a number or metric is missing at the end; " + numberHint},
	{regexp.MustCompile(`no matching overload`), "docs/reference/gates.md lists the functions and what they take"},
	{regexp.MustCompile(`recursion limit|node count|size exceeds`), "the expression is too deep or too long: split it into several gates"},
	{regexp.MustCompile(`Syntax error`), "docs/reference/gates.md has examples"},
}

// explain extends CEL's messages with what to write instead.
func explain(issues []*common.Error) []string {
	var mistakes []string
	for _, issue := range issues {
		text := expected.ReplaceAllString(strings.ReplaceAll(printable(issue.Message), " (in container '')", ""), "")
		line := fmt.Sprintf("expression %d:%d: %s", max(1, issue.Location.Line()), max(0, issue.Location.Column())+1,
			cut(strings.TrimSpace(text), maxIssue))
		for _, candidate := range hints {
			if candidate.pattern.MatchString(text) {
				line += ": " + candidate.hint
				break
			}
		}
		mistakes = append(mistakes, line)
	}
	return bounded(mistakes)
}

func bounded(mistakes []string) []string {
	if len(mistakes) <= maxIssues {
		return mistakes
	}
	more := len(mistakes) - maxIssues
	return append(mistakes[:maxIssues:maxIssues], fmt.Sprintf("and %d more mistakes: correct these first", more))
}
