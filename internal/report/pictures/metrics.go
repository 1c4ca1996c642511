package pictures

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

// shownBesides are metrics that are shown in addition to the primary ones: they describe the state of a pool.
var shownBesides = []string{"layoutScorePartsPerMillion", "freeSpaceFragmentationPartsPerMillion", "diskReadRequestBytes", "gangBlocks"}

// figures are the values of all metrics, by run.
type figures struct {
	variants []results.VariantResult
	runs     []results.RunResult
}

func figuresOf(e results.Experiment) figures {
	valid := slices.DeleteFunc(results.Repetitions(e.Runs), func(run results.RunResult) bool { return !run.Valid })
	return figures{e.Variants, valid}
}

// lacks reports whether a valid run of a variant has no value of a metric. The values of the other runs do not count then, as in tables.
func (f figures) lacks(variant string, metric *results.MetricResult) bool {
	return results.Lacks(f.runs, variant, *metric)
}

// row returns the values of a metric in a variant, or false if there are none. If the results do not have the single runs, the row has
// their range.
func (f figures) row(of results.GateMetric, variant int) (svg.Row, bool) {
	v := f.variants[variant]
	metric := metricOf(v, of.Phase, of.Metric)
	if metric == nil || of.Variant != "" && v.Name != of.Variant && !strings.HasPrefix(v.Name, of.Variant+",") {
		return svg.Row{}, false
	}
	row := svg.Row{Series: variant, Values: f.values(v.Name, of.Phase, of.Metric), Middle: float64(metric.Median), HasMiddle: true,
		Low: float64(metric.Min), High: float64(metric.Max)}
	row.HasRange = len(row.Values) == 0
	return row, true
}

// values returns the values of a metric in the runs of a variant.
func (f figures) values(variant, phase, metric string) (values []float64) {
	for _, run := range f.runs {
		if run.Variant != variant {
			continue
		}
		for _, of := range run.Phases {
			if value, known := of.Metrics[metric]; known && of.Name == phase && of.Outcome == results.OutcomeValid {
				values = append(values, float64(value))
			}
		}
	}
	return values
}

// metricOf returns a metric of a variant, or nil.
func metricOf(v results.VariantResult, phase, metric string) *results.MetricResult {
	for i := range v.Phases {
		for j := range v.Phases[i].Metrics {
			if one := &v.Phases[i].Metrics[j]; v.Phases[i].Name == phase && one.Name == metric {
				return one
			}
		}
	}
	return nil
}

// strip returns a strip with a row for each metric and variant.
func (f figures) strip(metrics []results.GateMetric) svg.Strip {
	s := svg.Strip{Middle: "median"}
	var lines []line
	for _, of := range metrics {
		for i, variant := range f.variants {
			one := line{of.Phase, variant.Name}
			if row, known := f.row(of, i); known && len(s.Rows) < maxRows && !slices.Contains(lines, one) {
				s.Rows, lines = append(s.Rows, row), append(lines, one)
			}
		}
	}
	for i := range s.Rows {
		s.Rows[i].Label = label(lines[i], lines)
		if s.Rows[i].HasRange {
			s.Interval = "smallest to largest"
		} else {
			s.Dots = "a run"
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
		var of []results.GateMetric
		for _, variant := range m.variants {
			for _, phase := range variant.Phases {
				if one := (results.GateMetric{Phase: phase.Name, Metric: name}); !slices.Contains(of, one) {
					of = append(of, one)
				}
			}
		}
		s, section := m.strip(of), "numbers"
		if slices.Contains(shownBesides, name) {
			section = "disks"
			if !slices.ContainsFunc(s.Rows, func(row svg.Row) bool { return row.Low != 0 || row.High != 0 }) {
				continue // such as gang blocks: there are none
			}
		}
		s.ID, s.Title, s.Axis = slug("metric-"+name), name, svg.Axis{Label: betterWords(name), Unit: unitOf(name)}
		s.Description = describe(s)
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
		judged := g.judged(gate)
		if len(gate.Comparisons) > 0 {
			drawn = append(drawn, comparison(gate, judged))
		}
		for _, metric := range metricsOf(judged) {
			s := g.strip(slices.DeleteFunc(slices.Clone(judged), func(one results.GateMetric) bool { return one.Metric != metric }))
			if len(s.Rows) == 0 {
				continue
			}
			s.ID, s.Title, s.Axis = slug("gate-runs-"+gate.Name+metric), gate.Name+": "+metric, svg.Axis{Label: metric, Unit: unitOf(metric)}
			s.Rules, s.Description = bounds(gate, s.Axis.Unit), describe(s)
			drawn = append(drawn, picture("gates", gate.Name+"-runs", gate.Name+": the runs", s.Sampled(), s))
		}
	}
	return drawn
}

// judged returns the metrics of a gate for which there are numbers.
func (g *gates) judged(gate results.GateResult) []results.GateMetric {
	return slices.DeleteFunc(slices.Clone(gate.Metrics), func(of results.GateMetric) bool {
		return !slices.ContainsFunc(g.variants, func(v results.VariantResult) bool { return metricOf(v, of.Phase, of.Metric) != nil })
	})
}

// metricsOf returns the names of the metrics, each once.
func metricsOf(judged []results.GateMetric) (names []string) {
	for _, of := range judged {
		if !slices.Contains(names, of.Metric) {
			names = append(names, of.Metric)
		}
	}
	return names
}

// bounds returns rules for the bounds of a bound gate.
func bounds(gate results.GateResult, unit svg.Unit) []svg.Rule {
	var rules []svg.Rule
	if gate.AtLeast != nil {
		rules = append(rules, svg.Rule{Name: "at least " + unit.Format(float64(*gate.AtLeast)), Value: float64(*gate.AtLeast)})
	}
	if gate.AtMost != nil {
		rules = append(rules, svg.Rule{Name: "at most " + unit.Format(float64(*gate.AtMost)), Value: float64(*gate.AtMost)})
	}
	return rules
}

// comparison shows the changes with their intervals, and the tolerance.
func comparison(gate results.GateResult, judged []results.GateMetric) report.Picture {
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
	if len(judged) > 0 {
		band := svg.Band{Name: "tolerated", From: -tolerance}
		if known, _ := results.LookupMetric(judged[0].Metric); known.Better == results.Lower {
			band.From, band.To = 0, tolerance
		}
		s.Bands = []svg.Band{band}
	}
	s.Description = "Changes: " + strings.Join(words, "; ")
	return picture("gates", gate.Name, s.Title, "", s)
}

// verdictSeries are the colours that come nearest to those of verdicts elsewhere; the words beside them say the same.
var verdictSeries = map[string]int{"Passed": 2, "Failed": 1, "Inconclusive": 5, "Invalid": 5}
