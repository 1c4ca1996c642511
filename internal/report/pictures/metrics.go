package pictures

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

// shownBesides are metrics that are shown besides the primary ones: what a pool looks like.
var shownBesides = []string{"layoutScorePartsPerMillion", "freeSpaceFragmentationPartsPerMillion", "diskReadRequestBytes", "gangBlocks"}

// path is a metric of a phase.
type path struct{ phase, metric string }

// figures are the values of all metrics, by run.
type figures struct {
	variants []results.VariantResult
	runs     []results.RunResult
}

func figuresOf(e results.Experiment) figures {
	valid := slices.DeleteFunc(results.Repetitions(e.Runs), func(run results.RunResult) bool { return !run.Valid })
	return figures{e.Variants, valid}
}

// row is the values of a metric in a variant; false if there are none. If single runs are not in the results, it is their range.
func (f figures) row(of path, variant int) (svg.Row, bool) {
	v := f.variants[variant]
	row := svg.Row{Series: variant}
	for _, run := range f.runs {
		if run.Variant != v.Name {
			continue
		}
		for _, phase := range run.Phases {
			if value, known := phase.Metrics[of.metric]; known && phase.Name == of.phase && phase.Outcome == results.OutcomeValid {
				row.Values = append(row.Values, float64(value))
			}
		}
	}
	for _, phase := range v.Phases {
		for _, metric := range phase.Metrics {
			if phase.Name == of.phase && metric.Name == of.metric {
				row.Middle, row.HasMiddle = float64(metric.Median), true
				row.Low, row.High, row.HasRange = float64(metric.Min), float64(metric.Max), len(row.Values) == 0
			}
		}
	}
	return row, row.HasMiddle
}

// strip has a row for each path and variant.
func (f figures) strip(paths []path) svg.Strip {
	s := svg.Strip{Dots: "a run", Middle: "median"}
	var lines []line
	for _, of := range paths {
		for i, variant := range f.variants {
			if row, known := f.row(of, i); known && len(s.Rows) < maxRows {
				s.Rows, lines = append(s.Rows, row), append(lines, line{of.phase, variant.Name})
			}
		}
	}
	for i := range s.Rows {
		s.Rows[i].Label = label(lines[i], lines)
		if s.Rows[i].HasRange {
			s.Interval = "smallest to largest"
		}
	}
	return s
}

// describe says in words what a strip shows.
func describe(s svg.Strip) string {
	var words []string
	for _, row := range s.Rows {
		if row.HasMiddle {
			words = append(words, row.Label+" "+s.Axis.Unit.Format(row.Middle))
		}
	}
	return "Medians: " + strings.Join(words, "; ")
}

// metrics shows each metric in all phases and variants.
type metrics struct {
	figures
	names []string
}

func newMetrics(e results.Experiment) room {
	m := &metrics{figures: figuresOf(e)}
	for _, variant := range e.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if (results.IsPrimary(metric.Name) || slices.Contains(shownBesides, metric.Name)) && !slices.Contains(m.names, metric.Name) {
					m.names = append(m.names, metric.Name)
				}
			}
		}
	}
	return m
}

func (*metrics) add(seen) {}

func (m *metrics) pictures() []report.Picture {
	var drawn []report.Picture
	for _, name := range m.names {
		var paths []path
		for _, variant := range m.variants {
			for _, phase := range variant.Phases {
				if one := (path{phase.Name, name}); !slices.Contains(paths, one) {
					paths = append(paths, one)
				}
			}
		}
		s := m.strip(paths)
		s.ID, s.Title, s.Axis = slug("metric-"+name), name, svg.Axis{Label: betterWords(name), Unit: unitOf(name)}
		s.Description = describe(s)
		section := "numbers"
		if slices.Contains(shownBesides, name) {
			section = "disks"
		}
		drawn = append(drawn, picture(section, name, name, s.Sampled(), s))
	}
	return drawn
}

func betterWords(metric string) string {
	known, _ := results.LookupMetric(metric)
	switch known.Better {
	case results.Higher:
		return "higher is better"
	case results.Lower:
		return "lower is better"
	default:
		return ""
	}
}

// gates shows what gates have judged.
type gates struct {
	figures
	gates []results.GateResult
}

func newGates(e results.Experiment) room { return &gates{figuresOf(e), e.Gates} }

func (*gates) add(seen) {}

func (g *gates) pictures() []report.Picture {
	var drawn []report.Picture
	for _, gate := range g.gates {
		paths := g.paths(gate.Definition)
		if len(gate.Comparisons) > 0 {
			drawn = append(drawn, comparison(gate, paths))
		}
		for i, of := range paths {
			if slices.ContainsFunc(paths[:i], func(other path) bool { return other.metric == of.metric }) {
				continue
			}
			var same []path
			for _, other := range paths {
				if other.metric == of.metric {
					same = append(same, other)
				}
			}
			s := g.strip(same)
			if len(s.Rows) == 0 {
				continue
			}
			s.ID, s.Title = slug("gate-runs-"+gate.Name+of.metric), gate.Name+": "+of.metric
			s.Axis = svg.Axis{Label: of.metric, Unit: unitOf(of.metric)}
			s.Rules = bounds(gate.Definition, s.Axis.Unit)
			s.Description = describe(s)
			drawn = append(drawn, picture("gates", gate.Name+"-runs", gate.Name+": the runs", s.Sampled(), s))
		}
	}
	return drawn
}

// metricPath is how definitions name a metric of a phase.
var metricPath = regexp.MustCompile(`(?:phase\(['"]([^'"]+)['"]\)(?:\.workload\(['"]([^'"]+)['"]\))?|\b([a-z0-9][-a-z0-9]*))` +
	`\.([A-Za-z][A-Za-z0-9_.-]*)`)

// paths are those metrics in a definition that there are numbers of.
func (g *gates) paths(definition string) []path {
	var paths []path
	for _, found := range metricPath.FindAllStringSubmatch(definition, -1) {
		of := path{found[1] + found[3], strings.TrimRight(found[4], ".")}
		if found[2] != "" {
			of.metric = found[2] + "." + of.metric
		}
		for i := range g.variants {
			if _, known := g.row(of, i); known && !slices.Contains(paths, of) {
				paths = append(paths, of)
			}
		}
	}
	return paths
}

var bound = regexp.MustCompile(`\bat (least|most) ([0-9.]+[A-Za-z]*)(?: |$)`)

// bounds of a bound gate. A comparison has a share of something else there.
func bounds(definition string, unit svg.Unit) []svg.Rule {
	var rules []svg.Rule
	for _, found := range bound.FindAllStringSubmatch(definition, -1) {
		if quantity, err := resource.ParseQuantity(found[2]); err == nil {
			value := quantity.AsApproximateFloat64()
			rules = append(rules, svg.Rule{Name: "at " + found[1] + " " + unit.Format(value), Value: value})
		}
	}
	return rules
}

// comparison shows the changes with their intervals, and what is tolerated.
func comparison(gate results.GateResult, paths []path) report.Picture {
	s := svg.Strip{ID: slug("gate-" + gate.Name), Title: gate.Name + ": change with its interval", Middle: "change", Interval: "interval",
		Axis: svg.Axis{Label: "change against the reference", Unit: svg.PartsPerMillion}, Rules: []svg.Rule{{Value: 0}}}
	var words []string
	for _, c := range gate.Comparisons[:min(len(gate.Comparisons), maxRows)] {
		row := svg.Row{Label: c.Variant + ": " + c.Verdict, Series: verdictSeries[c.Verdict], Middle: float64(c.ChangePartsPerMillion),
			HasMiddle: true}
		if c.LowPartsPerMillion != nil && c.HighPartsPerMillion != nil {
			row.Low, row.High, row.HasRange = float64(*c.LowPartsPerMillion), float64(*c.HighPartsPerMillion), true
		}
		s.Rows = append(s.Rows, row)
		words = append(words, fmt.Sprintf("%s %+.1f%%", c.Variant, float64(c.ChangePartsPerMillion)/1e4))
	}
	tolerance := float64(gate.Comparisons[0].TolerancePartsPerMillion)
	if len(paths) > 0 {
		band := svg.Band{Name: "tolerated", From: -tolerance}
		if known, _ := results.LookupMetric(paths[0].metric); known.Better == results.Lower {
			band.From, band.To = 0, tolerance
		}
		s.Bands = []svg.Band{band}
	}
	s.Description = "Changes: " + strings.Join(words, "; ")
	return picture("gates", gate.Name, s.Title, "", s)
}

// verdictSeries are the colours that come nearest to those of verdicts elsewhere; the words beside them say the same.
var verdictSeries = map[string]int{"Passed": 2, "Failed": 1, "Inconclusive": 5, "Invalid": 5}
