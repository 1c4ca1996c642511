package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

func (m *maker) gates() pageSection {
	var rows, evidence [][]tableCell
	for _, gate := range m.Experiment.Gates {
		why := cmp.Or(gate.Message, gate.Reason)
		rows = append(rows, []tableCell{{Text: plain(gate.Name, maxNameBytes)}, verdictCell(gate.Verdict), words(why),
			codeWords(gate.Definition)})
		for _, c := range gate.Comparisons {
			evidence = append(evidence, comparisonRow(gate.Name, c))
		}
	}
	section := pageSection{}
	if len(rows) == 0 {
		section.Notes = []string{"The experiment has no gates: the verdict says only whether all runs are valid."}
	}
	section.Before = tables(m.rows(table{Caption: "Gates with their verdicts", Head: []string{"Gate", "Verdict", "Why", "Definition"}},
		rows...))
	section.After = tables(m.rows(table{Caption: "Evidence of comparisons", Head: []string{"Gate", "Variant", "Verdict", "Change", "Interval",
		"Confidence", "p of worse", "p of within", "Runs", "Tolerance", "Noise"}, Note: "p of worse is small if the metric is worse by more " +
		"than the tolerance and the noise; it is corrected for all comparisons. p of within is small if it is worse by less than the tolerance."},
		evidence...))
	return section
}

func comparisonRow(gate string, c results.Comparison) []tableCell {
	interval, confidence, noise := certainty(c)
	return []tableCell{{Text: plain(gate, maxNameBytes)}, words(c.Variant), verdictCell(c.Verdict),
		figure(signedPercent(c.ChangePartsPerMillion)),
		figure(interval), figure(confidence), figure(probability(c.WorseProbabilityPartsPerMillion)),
		figure(probability(c.WithinProbabilityPartsPerMillion)), figure(fmt.Sprintf("%d and %d", c.Runs, c.BaselineRuns)),
		figure(percentOf(c.TolerancePartsPerMillion)), figure(noise)}
}

// warnings are what a reader must know before trusting the numbers.
func (m *maker) warnings() pageSection {
	var section pageSection
	for _, key := range sortedKeys(m.Experiment.Environment) {
		if strings.HasPrefix(key, "warning.") {
			for _, value := range m.Experiment.Environment[key] {
				section.Warnings = append(section.Warnings, plain(value, maxCellBytes))
			}
		}
	}
	section.Warnings = slices.Compact(section.Warnings)
	for _, warning := range cacheWarnings(m.Experiment) {
		section.Warnings = append(section.Warnings, plain(warning, maxCellBytes))
	}
	section.After = m.preflightTable()
	if most := 32; len(section.Warnings) > most {
		section.Notes = []string{fmt.Sprintf("%d more warnings are in results.json.", len(section.Warnings)-most)}
		section.Warnings = section.Warnings[:most]
	}
	return section
}

func (m *maker) numbers() pageSection {
	e, all := m.Experiment, samplesOf(m.Experiment)
	var section pageSection
	for _, phase := range phaseNames(e.Variants) {
		variants := having(e.Variants, phase)
		several := len(variants) > 1
		head := []string{"Metric", "Better", "Variant", "Median", "Smallest to largest", "Runs"}
		if several {
			head = append(head, "Against "+plain(variants[0].Name, maxNameBytes))
		}
		var rows [][]tableCell
		for _, metric := range primaryMetrics(variants, phase) {
			rows = append(rows, metricRows(all, variants, phase, metric, several)...)
		}
		section.After = append(section.After, m.rows(table{Caption: "Phase " + plain(phase, maxNameBytes), Head: head}, rows...))
	}
	section.Before = tables(m.bestTable())
	section.After = tables(append(section.After, m.notesTable(), m.allMetrics())...)
	if len(section.After) > 0 && len(e.Variants) > 1 {
		section.Notes = []string{"Medians over the valid runs. The last column is the ratio of the median to that of the first variant."}
		if len(section.Before) > 0 {
			section.Notes = append(section.Notes, bestNote)
		}
	}
	return section
}

func metricRows(all samples, variants []results.VariantResult, phase, metric string, several bool) [][]tableCell {
	base, _ := find(variants[0], phase, metric)
	var rows [][]tableCell
	for i, variant := range variants {
		found, ok := find(variant, phase, metric)
		row := []tableCell{words(metric), words(found.Better), words(variant.Name), figure(notMeasured), figure(""), figure("0")}
		against, of := "-", source{variant.Name, phase, metric}
		if ok {
			row = append(row[:3], figureCells(found)...)
			if !all.eitherLacks(source{variants[0].Name, phase, metric}, of) {
				against = ratio(found.Median, base.Median)
			}
		}
		if all.lacks(of) {
			row[5] = figure(fmt.Sprint(found.Runs) + notInAll)
		}
		if i == 0 {
			against = ""
		}
		if several {
			row = append(row, figure(against))
		}
		rows = append(rows, row)
	}
	return rows
}

// figureCells returns cells with the median, the range and the number of runs.
func figureCells(metric results.MetricResult) []tableCell {
	s := scaleFor(metric)
	return []tableCell{figure(s.format(metric.Median) + s.suffix), figure(s.format(metric.Min) + " to " + s.format(metric.Max) + s.suffix),
		figure(fmt.Sprint(metric.Runs))}
}

// allMetrics lists the metrics that are neither primary nor latencies: latencies have a table of their own.
func (m *maker) allMetrics() table {
	var rows [][]tableCell
	for _, variant := range m.Experiment.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if _, _, isLatency := LatencyOf(metric.Name); !results.IsPrimary(metric.Name) && !isLatency {
					rows = append(rows, append([]tableCell{words(metric.Name), words(phase.Name), words(variant.Name)}, figureCells(metric)...))
				}
			}
		}
	}
	return m.rows(table{Caption: "All other metrics", Closed: true, Head: []string{"Metric", "Phase", "Variant", "Median",
		"Smallest to largest", "Runs"}}, rows...)
}
