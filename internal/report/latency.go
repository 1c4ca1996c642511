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
	variants := m.Experiment.Variants
	var figures []string
	for of := range eachMetric(variants) {
		if _, which, is := LatencyOf(of.metric); is && !slices.Contains(figures, which) {
			figures = append(figures, which)
		}
	}
	slices.SortFunc(figures, func(a, b string) int { return cmp.Compare(latencyRank(a), latencyRank(b)) })
	t := table{Caption: "Latencies: medians over the valid runs, with the smallest, the largest and the number of runs",
		Head: []string{"Phase", "Operation", "Variant"}}
	for _, which := range figures {
		t.Head = append(t.Head, latencyTitle(which))
	}
	for _, phase := range phaseNames(variants) {
		for _, operation := range operationsOf(variants, phase) {
			for _, variant := range variants {
				if row, any := latencyRow(variant, phase, operation, figures); any {
					t.add(row...)
				}
			}
		}
	}
	section := pageSection{After: m.tables(t)}
	if len(t.Rows) > 0 {
		section.Notes = []string{"An empty cell was not measured: a percentile needs at least ten slower operations."}
	}
	return section
}

func operationsOf(variants []results.VariantResult, phase string) []string {
	var operations []string
	for _, metric := range metricsOf(variants, phase) {
		if operation, _, is := LatencyOf(metric); is {
			operations = append(operations, operation)
		}
	}
	slices.Sort(operations)
	return slices.Compact(operations)
}

func latencyRow(variant results.VariantResult, phase, operation string, all []string) (row []tableCell, any bool) {
	row = []tableCell{named(phase), named(operation), named(variant.Name)}
	for _, which := range all {
		text := ""
		if metric, found := find(variant, phase, operation+"Latency"+which+"Nanoseconds"); found {
			text, any = strings.Replace(Figures(metric), " ", "\u00a0", 1), true
		}
		row = append(row, tableCell{Text: text})
	}
	return row, any
}
