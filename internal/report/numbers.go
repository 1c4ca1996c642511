package report

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// numbersTable has the main metrics of every variant in a phase, compared with the first variant that has the phase.
func numbersTable(e results.Experiment, all samples, phase string, columns figureColumns) table {
	variants := having(e.Variants, phase)
	first, several := variants[0].Name, len(variants) > 1
	t := table{Caption: "Phase " + plain(phase, maxNameBytes), Head: slices.Concat([]string{"Metric", "Better", "Variant"}, columns.head)}
	ratios := "of medians"
	for _, metric := range mainMetrics(e, phase) {
		base, _ := find(variants[0], phase, metric)
		for i, variant := range variants {
			of, cells, against := source{variant.Name, phase, metric}, slices.Clone(columns.none), "-"
			found, ok := find(variant, phase, metric)
			if ok {
				cells, against = columns.of(found), all.ratio(source{first, phase, metric}, of, base, found)
				if all.lacks(of) {
					cells[len(cells)-1].Text += notInAll
				}
			}
			if i == 0 {
				against = ""
			}
			if strings.Contains(against, "(") {
				ratios = "95% interval"
			}
			if several {
				cells = append(cells, figure(against))
			}
			t.add(append([]tableCell{named(metric), named(found.Better), named(variant.Name)}, cells...)...)
		}
	}
	if several {
		t.Head = append(t.Head, "Against "+plain(first, maxNameBytes)+" ("+ratios+")")
	}
	return t
}

// numbersSection has one table per phase.
func numbersSection(e results.Experiment, all samples) *section {
	s := newSection("Numbers", 36<<10)
	for _, phase := range phaseNames(e.Variants) {
		heading := "### " + name(phase)
		t := numbersTable(e, all, phase, narrow)
		if len(t.Rows) == 0 {
			s.paragraph(heading + "\n\nThe metrics of this phase did not fit into the results. The ConfigMaps of its runs have them.")
		}
		s.table(t, heading)
	}
	return s
}

func (m *maker) numbers() pageSection {
	e, all := m.Experiment, samplesOf(m.Experiment)
	var shown []table
	for _, phase := range phaseNames(e.Variants) {
		shown = append(shown, numbersTable(e, all, phase, wide))
	}
	shown = append(shown, outliersTable(e, all), notesTable(e), otherMetrics(e))
	section := pageSection{After: m.tables(shown...), Before: m.tables(bestTable(e, all))}
	if len(section.After) > 0 && len(e.Variants) > 1 {
		section.Notes = []string{"Medians over the valid runs. The last column is the ratio to the first variant, with an interval if there " +
			"are enough comparable runs."}
	}
	return section
}

// notesTable has what runners say about their own numbers, such as why one is missing. Few experiments measure long enough for P999, so the
// note about it is shown only if a gate needs it.
func notesTable(e results.Experiment) table {
	t := table{Caption: "Notes about these numbers", Head: []string{"Phase", "Note", "Results"}}
	judged := slices.ContainsFunc(e.Gates, func(gate results.GateResult) bool { return strings.Contains(gate.Message, "P999") })
	for _, note := range e.Notes {
		if strings.Contains(note.Text, "operations are too few for P999 ") && !judged {
			continue
		}
		t.add(named(note.Phase), words(note.Text), figure(fmt.Sprintf("%d of %d", note.Results, note.Of)))
	}
	return t
}

// otherMetrics lists the metrics that are neither among the main ones of their phase nor latencies: latencies have a table of their own.
func otherMetrics(e results.Experiment) table {
	t := wideTable("All other metrics", "Metric", "Phase", "Variant")
	t.Closed = true
	main := map[string][]string{}
	for _, phase := range phaseNames(e.Variants) {
		main[phase] = mainMetrics(e, phase)
	}
	for of, metric := range eachMetric(e.Variants) {
		if _, _, isLatency := LatencyOf(of.metric); !slices.Contains(main[of.phase], of.metric) && !isLatency {
			t.addFigures(metric, of.metric, of.phase, of.variant)
		}
	}
	return t
}

// eachMetric yields the metrics of the variants, with where each is from.
func eachMetric(variants []results.VariantResult) iter.Seq2[source, results.MetricResult] {
	return func(yield func(source, results.MetricResult) bool) {
		for _, variant := range variants {
			for _, phase := range variant.Phases {
				for _, metric := range phase.Metrics {
					if !yield(source{variant.Name, phase.Name, metric.Name}, metric) {
						return
					}
				}
			}
		}
	}
}

// eachPrimary yields only the primary metrics.
func eachPrimary(variants []results.VariantResult) iter.Seq2[source, results.MetricResult] {
	return func(yield func(source, results.MetricResult) bool) {
		for of, metric := range eachMetric(variants) {
			if results.IsPrimary(of.metric) && !yield(of, metric) {
				return
			}
		}
	}
}

func phaseNames(variants []results.VariantResult) []string {
	var names []string
	seen := map[string]bool{}
	for _, variant := range variants {
		for _, phase := range variant.Phases {
			if !seen[phase.Name] {
				seen[phase.Name] = true
				names = append(names, phase.Name)
			}
		}
	}
	return names
}

// having returns the variants that have a phase. It keeps variants without any valid run, which may have the phase too: their rows say that
// they were not measured.
func having(variants []results.VariantResult, phase string) []results.VariantResult {
	return slices.DeleteFunc(slices.Clone(variants), func(variant results.VariantResult) bool {
		return len(variant.Phases) > 0 && !slices.ContainsFunc(variant.Phases, func(one results.PhaseResult) bool { return one.Name == phase })
	})
}

// metricsOf returns the names of the metrics of a phase, in the order of the first variant that has each.
func metricsOf(variants []results.VariantResult, phase string) []string {
	var names []string
	for _, variant := range variants {
		for _, metric := range metricsIn(variant, phase) {
			if !slices.Contains(names, metric.Name) {
				names = append(names, metric.Name)
			}
		}
	}
	return names
}

// primaryMetrics returns the primary metrics of a phase, in the order of the first variant that has each.
func primaryMetrics(variants []results.VariantResult, phase string) []string {
	return slices.DeleteFunc(metricsOf(variants, phase), func(name string) bool { return !results.IsPrimary(name) })
}

// mainMetrics returns the primary metrics of a phase and then those that gates judge, or all if none is primary: an operation has few.
func mainMetrics(e results.Experiment, phase string) []string {
	all, main := metricsOf(e.Variants, phase), primaryMetrics(e.Variants, phase)
	if len(main) == 0 {
		return all
	}
	for _, gate := range e.Gates {
		for _, of := range gate.Metrics {
			if of.Phase == phase && slices.Contains(all, of.Metric) && !slices.Contains(main, of.Metric) {
				main = append(main, of.Metric)
			}
		}
	}
	return main
}

func metricsIn(variant results.VariantResult, phase string) []results.MetricResult {
	for _, one := range variant.Phases {
		if one.Name == phase {
			return one.Metrics
		}
	}
	return nil
}

func find(variant results.VariantResult, phase, metric string) (results.MetricResult, bool) {
	for _, found := range metricsIn(variant, phase) {
		if found.Name == metric {
			return found, true
		}
	}
	return results.MetricResult{}, false
}
