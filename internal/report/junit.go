package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	maxJUnitText    = 4096
	maxSlotsInWords = 10
	noVerdictType   = "NoVerdict"
)

type testSuites struct {
	XMLName xml.Name    `xml:"testsuites"`
	Suites  []testSuite `xml:"testsuite"`
}

type testSuite struct {
	Name       string     `xml:"name,attr"`
	Tests      int        `xml:"tests,attr"`
	Failures   int        `xml:"failures,attr"`
	Errors     int        `xml:"errors,attr"`
	Skipped    int        `xml:"skipped,attr"`
	Time       string     `xml:"time,attr"`
	Timestamp  string     `xml:"timestamp,attr,omitempty"`
	Properties []property `xml:"properties>property"`
	Cases      []testCase `xml:"testcase"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testCase struct {
	ClassName string   `xml:"classname,attr"`
	Name      string   `xml:"name,attr"`
	Time      string   `xml:"time,attr"`
	Failure   *problem `xml:"failure"`
	Error     *problem `xml:"error"`
	Output    string   `xml:"system-out,omitempty"`
}

type problem struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (c testCase) green() bool { return c.Failure == nil && c.Error == nil }

// renderJUnit returns the XML and the number of omitted test cases. Passed ones are omitted first, so that truncation never turns a
// report green.
func renderJUnit(e results.Experiment) (text []byte, dropped int) {
	suite := newSuite(e)
	for {
		text = suite.encode(dropped)
		if len(text) <= MaxJUnitBytes || len(suite.Cases) <= 1 {
			return text, dropped
		}
		excess := len(text) - MaxJUnitBytes
		for excess > 0 && len(suite.Cases) > 1 {
			last := lastGreen(suite.Cases)
			excess -= caseBytes(suite.Cases[last])
			suite.Cases = slices.Delete(suite.Cases, last, last+1)
			dropped++
		}
	}
}

// lastGreen returns the index of the test case to omit first: the last passed one, or else the last.
func lastGreen(cases []testCase) int {
	for i, c := range slices.Backward(cases) {
		if c.green() {
			return i
		}
	}
	return len(cases) - 1
}

func caseBytes(c testCase) int {
	text, err := xml.Marshal(c)
	if err != nil {
		return 1
	}
	return max(len(text), 1)
}

func newSuite(e results.Experiment) testSuite {
	suite := testSuite{
		Name: xmlText(e.Benchmark.Namespace+"/"+e.Benchmark.Name, maxNameBytes), Time: seconds(e),
		Properties: properties(e), Cases: cases(e),
	}
	if e.StartedAt != nil {
		suite.Timestamp = e.StartedAt.UTC().Format("2006-01-02T15:04:05")
	}
	return suite
}

// encode counts at the end, when the included test cases are known.
func (s testSuite) encode(dropped int) []byte {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		if c.Failure != nil {
			s.Failures++
		}
		if c.Error != nil {
			s.Errors++
		}
	}
	if dropped > 0 {
		s.Properties = append(slices.Clone(s.Properties), property{"omittedTestCases", strconv.Itoa(dropped)})
	}
	text, err := xml.MarshalIndent(testSuites{Suites: []testSuite{s}}, "", "  ")
	if err != nil { // cannot happen: it contains only strings and integers
		return []byte(xml.Header +
			`<testsuites><testsuite name="report" tests="1" errors="1"><testcase name="report"><error/></testcase></testsuite></testsuites>`)
	}
	return append([]byte(xml.Header), append(text, '\n')...)
}

func seconds(e results.Experiment) string {
	if e.StartedAt == nil || e.FinishedAt == nil {
		return "0"
	}
	return strconv.FormatInt(max(int64(e.FinishedAt.Sub(*e.StartedAt)/time.Second), 0), 10)
}

func properties(e results.Experiment) []property {
	all := []property{
		{"experiment", e.Experiment}, {"state", e.State}, {"verdict", e.Verdict}, {"generation", strconv.FormatInt(e.Generation, 10)},
		{"seed", strconv.FormatInt(e.Seed, 10)}, {"order", e.Order}, {"repetitions", strconv.Itoa(int(e.Repetitions))},
		{"node", e.NodeName}, {"storageClass", e.StorageClass}, {"runnerImage", e.RunnerImage},
	}
	for i := range all {
		all[i].Value = xmlText(all[i].Value, maxNameBytes)
	}
	return slices.DeleteFunc(all, func(p property) bool { return p.Value == "" })
}

func cases(e results.Experiment) []testCase {
	class := xmlText(e.Benchmark.Namespace+"."+e.Benchmark.Name, maxNameBytes)
	var list []testCase
	for _, gate := range e.Gates {
		c := verdictCase(class, gate.Name, gate.Verdict, gate.Reason, gate.Message)
		c.Output = gate.Definition
		if c.green() && gate.Message != "" {
			c.Output += ": " + gate.Message // the others have it in their problem
		}
		c.Output = xmlText(c.Output, maxJUnitText)
		list = append(list, c)
	}
	list = append(list, runsCase(class, e))
	// A verdict that is worse than all gates must not be lost: it may come from the experiment as a whole.
	allGreen := !slices.ContainsFunc(list, func(c testCase) bool { return !c.green() })
	if len(e.Gates) == 0 || allGreen && e.Verdict != string(v1alpha1.VerdictPassed) {
		message := cmp.Or(e.Message, verdictWord(e))
		list = append(list, verdictCase(class, "verdict", e.Verdict, e.Reason, message))
	}
	return list
}

// verdictCase makes everything but Passed red. Inconclusive is an error, not skipped: many CI systems show skipped as green, and
// missing data must never be green.
func verdictCase(class, name, verdict, reason, message string) testCase {
	c := testCase{ClassName: class, Name: xmlText(name, maxNameBytes), Time: "0"}
	p := &problem{Type: xmlText(verdict, maxNameBytes), Message: xmlText(message, maxJUnitText), Text: xmlText(reason, maxNameBytes)}
	switch verdict {
	case string(v1alpha1.VerdictPassed):
	case string(v1alpha1.VerdictFailed):
		c.Failure = p
	case "":
		p.Type = noVerdictType
		c.Error = p
	default:
		c.Error = p
	}
	return c
}

// runsCase is an error unless every repetition of every variant has a valid run.
func runsCase(class string, e results.Experiment) testCase {
	c := testCase{ClassName: class, Name: "runs", Time: "0"}
	missing, total := missingSlots(e)
	switch {
	case total == 0:
		c.Error = &problem{Type: "NoRuns", Message: "there are no runs"}
	case len(missing) > 0:
		shown := missing[:min(len(missing), maxSlotsInWords)]
		message := fmt.Sprintf("%d of %d repetitions have no valid run: %s", len(missing), total, strings.Join(shown, "; "))
		if more := len(missing) - len(shown); more > 0 {
			message += fmt.Sprintf("; and %d more", more)
		}
		c.Error = &problem{Type: "NoValidRun", Message: xmlText(message, maxJUnitText)}
	}
	return c
}

type slot struct {
	variant    string
	repetition int32
}

// missingSlots lists the repetitions without a valid run, up to a limit.
func missingSlots(e results.Experiment) (missing []string, total int) {
	last := map[slot]results.RunResult{}
	valid := map[slot]bool{}
	var variants []string
	for _, variant := range e.Variants {
		variants = append(variants, variant.Name)
	}
	for _, run := range results.Repetitions(e.Runs) {
		at := slot{run.Variant, run.Repetition}
		variants = append(variants, run.Variant)
		valid[at] = valid[at] || run.Valid
		if earlier, known := last[at]; !known || run.Attempt >= earlier.Attempt {
			last[at] = run
		}
	}
	seen := map[string]bool{}
	for _, variant := range variants {
		if seen[variant] {
			continue
		}
		seen[variant] = true
		for repetition := range max(e.Repetitions, 0) {
			at := slot{variant, repetition + 1}
			total++
			if !valid[at] {
				missing = append(missing, slotWords(at, last))
			}
		}
	}
	return missing, total
}

func slotWords(at slot, last map[slot]results.RunResult) string {
	words := fmt.Sprintf("%s repetition %d", plain(at.variant, maxNameBytes), at.repetition)
	run, known := last[at]
	if !known {
		return words + " was not executed"
	}
	return words + " (" + plain(run.Reason+": "+run.Message, maxNameBytes) + ")"
}

// xmlText converts text to what XML can represent: one line, valid, without control characters.
func xmlText(text string, most int) string {
	return strings.Map(func(r rune) rune {
		if r == 0xFFFE || r == 0xFFFF {
			return '\uFFFD'
		}
		return r
	}, plain(text, most))
}
