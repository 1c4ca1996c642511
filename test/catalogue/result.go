package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/report/pictures"
	"github.com/storagebench/storagebench/internal/results"
)

// resultFile has the result of a row, in its folder lab. earlierFile has the result of the run before it.
const (
	resultFile  = "result.json"
	earlierFile = "earlier.json"
)

// invalid is the verdict without usable numbers.
const invalid = "Invalid"

// result is the result of a row in the lab: the part of results.json that its pages need.
type result struct {
	Verdict string `json:"verdict"`
	Message string `json:"message"`
	// Date is the day on which the experiment ended, in UTC.
	Date string `json:"date"`
	// Took is the time from the first run to the verdict.
	Took string `json:"took"`
	// Commit of the project.
	Commit string `json:"commit"`
	// Lab are the variables of make that differ from the defaults of the lab.
	Lab []string `json:"lab,omitempty"`
	// Inputs is the hash of the row that was measured.
	Inputs string `json:"inputs"`
	// Experiment is the hash that the operator gave the experiment.
	Experiment string `json:"experiment"`
	Runs       int    `json:"runs"`
	ValidRuns  int    `json:"validRuns"`
	// Versions has the versions of the software, by their names in the environment of the runs.
	Versions map[string][]string `json:"versions"`
	Gates    []gateResult        `json:"gates,omitempty"`
	Figures  []figure            `json:"figures,omitempty"`
}

type gateResult struct {
	Name       string `json:"name"`
	Verdict    string `json:"verdict"`
	Reason     string `json:"reason,omitempty"`
	Definition string `json:"definition"`
	Message    string `json:"message"`
}

// figure is a metric that a gate names, over the valid runs of a variant.
type figure struct {
	Name    string `json:"name"`
	Variant string `json:"variant"`
	Unit    string `json:"unit,omitempty"`
	Median  int64  `json:"median"`
	Min     int64  `json:"min"`
	Max     int64  `json:"max"`
	Runs    int32  `json:"runs"`
}

// versionKeys are the keys of versions in the environment, with their titles on pages.
var versionKeys = []struct{ key, title string }{
	{"zfs.version", "OpenZFS"}, {"kernel", "Linux"}, {"fio", "fio"}, {"postgres.version", "PostgreSQL"},
}

// resultOf returns the result of a row from an experiment. An experiment that did not end has no result.
func resultOf(one row, of *results.Experiment, commit string) (*result, error) {
	if of.Benchmark.Name != one.Folder {
		return nil, fmt.Errorf("these are results of %s, not of %s", of.Benchmark.Name, one.Folder)
	}
	if of.State != results.StateComplete || of.Verdict == "" || of.FinishedAt == nil || of.StartedAt == nil || of.Extended {
		return nil, fmt.Errorf("the experiment is %s, without a final verdict", of.State)
	}
	found := &result{
		Verdict: of.Verdict, Message: of.Message, Date: of.FinishedAt.UTC().Format("2006-01-02"),
		Took: of.FinishedAt.Sub(*of.StartedAt).Round(1e9).String(), Commit: commit,
		Lab: one.Lab, Inputs: one.Inputs, Experiment: of.Experiment, Runs: len(of.Runs), Versions: map[string][]string{},
	}
	for i := range of.Runs {
		if of.Runs[i].Valid {
			found.ValidRuns++
		}
	}
	for _, version := range versionKeys {
		if values := of.Environment[version.key]; len(values) > 0 {
			found.Versions[version.key] = values
		}
	}
	for _, gate := range of.Gates {
		found.Gates = append(found.Gates, gateResult{gate.Name, gate.Verdict, gate.Reason, gate.Definition, gate.Message})
	}
	found.Figures = figuresOf(of)
	return found, nil
}

// value matches a figure in the message of a gate, as "read.readOperationsPerSecond of variant zfs = 1000 (3 runs)". Bounds have an
// interval too.
var value = regexp.MustCompile(`([A-Za-z0-9-]+\.[A-Za-z0-9.-]+)(?: of variant (\S+))? = (-?[0-9]+) \([0-9]+ runs?\)` +
	`(?:, the median lies between (-?[0-9]+) and (-?[0-9]+) )?`)

// compared matches the beginning of the message of a comparison: "read.readOperationsPerSecond is 10.0% lower than".
var compared = regexp.MustCompile(`([A-Za-z0-9-]+\.[A-Za-z0-9.-]+) is ((?:as high as|[0-9.]+% (?:higher|lower) than)[^(;:]*[^(;: ])`)

// divided matches the message of a ratio gate, as "aged.readBytes / fresh.readBytes = 0.835 (6 runs)" or "a.b / a.b of variant old = 2 (6
// pairs)".
var divided = regexp.MustCompile(`([A-Za-z0-9-]+\.[A-Za-z0-9.-]+) / ([A-Za-z0-9-]+\.[A-Za-z0-9.-]+)(?: of variant \S+)? = ` +
	`([0-9.e+-]+) \([0-9]+ (?:run|pair)s?\)(?:, the median lies between (\S+) and (\S+) )?`)

// interval matches the interval of a comparison, as " (from -38.0% to -25.5%; 5 pairs of runs)".
var interval = regexp.MustCompile(`^ \(from (\S+) to ([^;) ]+)`)

// figuresOf returns the metrics that gates name, with their spread over the runs of each variant.
func figuresOf(of *results.Experiment) []figure {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, gate := range of.Gates {
		for _, match := range divided.FindAllStringSubmatch(gate.Message, -1) {
			add(match[1])
			add(match[2])
		}
		for _, match := range slices.Concat(value.FindAllStringSubmatch(gate.Message, -1), compared.FindAllStringSubmatch(gate.Message, -1)) {
			add(match[1])
		}
	}
	var figures []figure
	for _, name := range names {
		for _, variant := range of.Variants {
			for _, phase := range variant.Phases {
				for _, metric := range phase.Metrics {
					if phase.Name+"."+metric.Name == name {
						figures = append(figures, figure{name, variant.Name, metric.Unit, metric.Median, metric.Min, metric.Max, metric.Runs})
					}
				}
			}
		}
	}
	return figures
}

// shown describes a gate in a few words: the change that a comparison found, a ratio, or the figures that it judges (of two figures of the
// same metric, their ratio). Without any of these, it returns only the verdict.
func (g gateResult) shown() string {
	if changes := changesOf(g.Message); len(changes) > 0 {
		return strings.Join(changes, ", ")
	}
	if ratios := ratiosOf(g.Message); len(ratios) > 0 {
		return strings.Join(ratios, ", ")
	}
	var words []string
	segments := segmentsOf(g.Message)
	for _, one := range segments {
		text := one.shown()
		if one.variant != "" && len(segments) > 1 {
			text = one.variant + " " + text
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return g.Verdict
	}
	return strings.Join(words, "; ")
}

// changesOf returns the changes that a comparison has found, with the metrics if there are several.
func changesOf(message string) []string {
	var changes []string
	all := compared.FindAllStringSubmatchIndex(message, -1)
	for _, match := range all {
		text := message[match[4]:match[5]]
		if ends := interval.FindStringSubmatch(message[match[1]:]); ends != nil {
			text += fmt.Sprintf(" (%s to %s)", ends[1], ends[2])
		}
		if len(all) > 1 {
			text = message[match[2]:match[3]] + " " + text
		}
		changes = append(changes, text)
	}
	return changes
}

// ratiosOf returns the ratios in the message of a ratio gate, with the variants if there are several.
func ratiosOf(message string) []string {
	var ratios []string
	all := divided.FindAllStringSubmatchIndex(message, -1)
	for _, match := range all {
		text := message[match[6]:match[7]]
		if match[8] >= 0 {
			text += fmt.Sprintf(" (%s to %s)", message[match[8]:match[9]], message[match[10]:match[11]])
		}
		if of := variantBefore.FindStringSubmatch(message[:match[0]]); of != nil && len(all) > 1 {
			text = of[1] + " " + text
		}
		ratios = append(ratios, text)
	}
	return ratios
}

// segment has the figures of one variant in a message, which are separated by commas. An expression that names variants is one segment.
type segment struct {
	variant string
	figures []said
}

// said is a figure in a message.
type said struct {
	name, variant string
	value         float64
	// low and high are the ends of its interval, if it has one.
	low, high *float64
}

// variantBefore matches the name that a message puts before the figures of one variant, as in "holds for two: ".
var variantBefore = regexp.MustCompile(`(\S+): $`)

func segmentsOf(message string) []segment {
	var all []segment
	end := 0
	for _, match := range value.FindAllStringSubmatchIndex(message, -1) {
		between := message[end:match[0]]
		end = match[1]
		if len(all) == 0 || between != ", " {
			one := segment{}
			if of := variantBefore.FindStringSubmatch(between); of != nil {
				one.variant = of[1]
			}
			all = append(all, one)
		}
		last := &all[len(all)-1]
		one := said{name: message[match[2]:match[3]], value: number(message[match[6]:match[7]])}
		if match[8] >= 0 {
			low, high := number(message[match[8]:match[9]]), number(message[match[10]:match[11]])
			one.low, one.high = &low, &high
		}
		if match[4] >= 0 {
			one.variant = message[match[4]:match[5]]
		}
		last.figures = append(last.figures, one)
	}
	return all
}

// number parses a figure that the pattern has matched.
func number(text string) float64 {
	parsed, _ := strconv.ParseFloat(text, 64)
	return parsed
}

func (s segment) shown() string {
	if len(s.figures) == 2 && s.figures[0].metric() == s.figures[1].metric() && s.figures[1].value != 0 {
		return strconv.FormatFloat(s.figures[0].value/s.figures[1].value, 'g', 4, 64)
	}
	var words []string
	for i, one := range s.figures {
		text := one.shown()
		if one.variant != "" {
			text = one.variant + " " + text
		}
		if i == 0 || one.name != s.figures[i-1].name {
			text = s.label(one) + " " + text
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

// label returns the name of a metric, with its phase if the segment has the same metric of several phases.
func (s segment) label(of said) string {
	if slices.ContainsFunc(s.figures, func(other said) bool { return other.metric() == of.metric() && other.name != of.name }) {
		return of.name
	}
	return of.metric()
}

// metric returns the name without the phase.
func (s said) metric() string {
	_, metric, _ := strings.Cut(s.name, ".")
	return metric
}

func (s said) shown() string {
	text := s.inUnit(s.value)
	if s.low != nil {
		text += fmt.Sprintf(" (%s to %s)", s.inUnit(*s.low), s.inUnit(*s.high))
	}
	return text
}

func (s said) inUnit(value float64) string {
	metric := s.metric()
	if _, known := results.LookupMetric(metric); known {
		return pictures.Write(metric, value)
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// readResult returns nil if the file does not exist.
func readResult(file string) (*result, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found result
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &found, nil
}

func (r *result) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return replace(file, append(text, '\n'))
}

// replace writes a whole file or leaves it as it was: half a file would stop all rows.
func replace(file string, text []byte) error {
	if err := os.WriteFile(file+".new", text, 0o644); err != nil { //nolint:gosec // it is committed
		return err
	}
	return os.Rename(file+".new", file)
}
