package report

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// latencyName matches the names of latency metrics, such as JOB.readLatencyP99Nanoseconds.
var latencyName = regexp.MustCompile(`^(.*?)(?:Latency)(Mean|P[0-9]+|Max)Nanoseconds$`)

// LatencyOf splits the name of a latency metric into operation and figure, such as read and P99. It returns false for other metrics.
func LatencyOf(metric string) (operation, which string, is bool) {
	found := latencyName.FindStringSubmatch(metric)
	if found == nil {
		return "", "", false
	}
	return found[1], found[2], true
}

// latencyRank orders figures: the mean, percentiles, the largest.
func latencyRank(which string) float64 {
	switch which {
	case "Mean":
		return -1
	case "Max":
		return 101
	default:
		return Percentile(which)
	}
}

// Percentile returns the percentile of a figure: 99.9 for P999.
func Percentile(which string) float64 {
	digits := strings.TrimPrefix(which, "P")
	if len(digits) > 2 {
		digits = digits[:2] + "." + digits[2:]
	}
	percent, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	return percent
}

// latencyTitle is the heading of a column.
func latencyTitle(which string) string {
	switch which {
	case "Mean":
		return "Mean"
	case "Max":
		return "Largest"
	default:
		return "P" + strconv.FormatFloat(Percentile(which), 'f', -1, 64)
	}
}

// latency has every percentile that was measured.
func (m *maker) latency() pageSection {
	var figures []string
	for _, variant := range m.Experiment.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if _, which, is := LatencyOf(metric.Name); is && !slices.Contains(figures, which) {
					figures = append(figures, which)
				}
			}
		}
	}
	slices.SortFunc(figures, func(a, b string) int { return cmp.Compare(latencyRank(a), latencyRank(b)) })
	head := []string{"Phase", "Operation", "Variant"}
	for _, which := range figures {
		head = append(head, latencyTitle(which))
	}
	var rows [][]tableCell
	for _, phase := range phaseNames(m.Experiment.Variants) {
		for _, operation := range operationsOf(m.Experiment.Variants, phase) {
			for _, variant := range m.Experiment.Variants {
				if row, any := latencyRow(variant, phase, operation, figures); any {
					rows = append(rows, row)
				}
			}
		}
	}
	section := pageSection{After: tables(m.rows(table{Head: head,
		Caption: "Latencies: medians over the valid runs, with the smallest, the largest and the number of runs"}, rows...))}
	if len(rows) > 0 {
		section.Notes = []string{"An empty cell was not measured: a percentile needs at least ten slower operations."}
	}
	return section
}

func operationsOf(variants []results.VariantResult, phase string) []string {
	var operations []string
	for _, variant := range variants {
		for _, candidate := range variant.Phases {
			for _, metric := range candidate.Metrics {
				operation, _, is := LatencyOf(metric.Name)
				if candidate.Name == phase && is && !slices.Contains(operations, operation) {
					operations = append(operations, operation)
				}
			}
		}
	}
	slices.Sort(operations)
	return operations
}

func latencyRow(variant results.VariantResult, phase, operation string, all []string) (row []tableCell, any bool) {
	row = []tableCell{words(phase), words(operation), words(variant.Name)}
	for _, which := range all {
		text := ""
		if metric, found := find(variant, phase, operation+"Latency"+which+"Nanoseconds"); found {
			text, any = strings.Replace(Figures(metric), " ", "\u00a0", 1), true
		}
		row = append(row, tableCell{Text: text})
	}
	return row, any
}

func (m *maker) overTime() pageSection { return pageSection{} }

// disks has the metrics of the disks, one row for each.
func (m *maker) disks() pageSection {
	disks := disksOf(m.Experiment.Variants)
	var rows [][]tableCell
	for _, of := range disks.parts {
		for _, column := range disks.columns {
			for _, variant := range m.Experiment.Variants {
				if metric, found := find(variant, of.phase, of.prefix+column.metric); found {
					rows = append(rows, append([]tableCell{words(column.title), words(of.String()), words(variant.Name)}, figureCells(metric)...))
				}
			}
		}
	}
	return pageSection{After: tables(m.rows(table{Caption: disks.source, Head: []string{"What", "Phase", "Variant", "Median",
		"Smallest to largest", "Runs"}}, rows...))}
}

// nodes compares the nodes of groups.
func (m *maker) nodes() pageSection {
	e := m.Experiment
	if len(e.Groups) == 0 {
		return pageSection{}
	}
	var rows, late [][]tableCell
	for _, node := range nodesOf(e.Groups) {
		for _, variant := range results.Summarise(runsOn(e.Runs, node)) {
			for _, phase := range variant.Phases {
				for _, metric := range phase.Metrics {
					if results.IsPrimary(metric.Name) {
						rows = append(rows, append([]tableCell{words(metric.Name), words(phase.Name), words(variant.Name), words(node)},
							figureCells(metric)...))
					}
				}
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b []tableCell) int {
		return cmp.Or(strings.Compare(a[2].Text, b[2].Text), strings.Compare(a[1].Text, b[1].Text), strings.Compare(a[0].Text, b[0].Text))
	})
	for _, group := range e.Groups {
		for _, phase := range group.Phases {
			for _, straggler := range phase.Stragglers {
				late = append(late, []tableCell{words(group.Name), words(phase.Name), words(straggler)})
			}
		}
	}
	return pageSection{Notes: []string{"Each phase was executed on these nodes at once. The numbers above combine all nodes: sums of " +
		"rates and amounts, and the times and shares of the worst node."},
		After: tables(m.rows(table{Caption: "Medians of each node", Head: []string{"Metric", "Phase", "Variant", "Node", "Median",
			"Smallest to largest", "Runs"}}, rows...), m.rows(table{Caption: "Stragglers", Head: []string{"Group", "Phase", "What"}}, late...))}
}
