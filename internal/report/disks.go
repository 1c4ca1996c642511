package report

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// diskColumn is a metric that explains the metrics of a workload: data layout, and the work of the disks.
type diskColumn struct {
	title, metric string
	// ofPool is true if only the agent reports the metric, for a pool of the benchmark.
	ofPool bool
}

var diskColumns = []diskColumn{
	{"Layout score", "layoutScorePartsPerMillion", true},
	{"Free space fragmented", "freeSpaceFragmentationPartsPerMillion", true},
	{"In use", "poolAllocatedBytes", true},
	{"Disk reads", "diskReadOperationsPerSecond", false},
	{"Mean read", "diskReadRequestBytes", false},
	{"Reads below 32 KiB", "smallDiskReadsPartsPerMillion", true},
	{"Disk reads per read", "diskReadsPerReadMilli", false},
	{"Disk writes", "diskWriteOperationsPerSecond", false},
	{"Mean write", "diskWriteRequestBytes", false},
	{"Read per transaction", "diskReadBytesPerTransaction", false},
	{"Written per transaction", "diskWrittenBytesPerTransaction", false},
}

// disksSection has a row for each phase and variant with disk metrics, with medians over the runs. Layout score, fragmentation and
// reads per read are independent metrics.
func disksSection(e results.Experiment) *section {
	s := newSection("What the disks did", disksBytes)
	disks := disksOf(e.Variants)
	var titles []string
	for _, column := range disks.columns {
		titles = append(titles, column.title)
	}
	for _, of := range disks.parts {
		for _, variant := range e.Variants {
			var cells []string
			known := false
			for _, column := range disks.columns {
				shown := ""
				if metric, found := find(variant, of.phase, of.prefix+column.metric); found {
					scale := scaleFor(metric)
					shown, known = scale.format(metric.Median)+scale.suffix, true
				}
				cells = append(cells, shown)
			}
			if !known {
				continue
			}
			if s.text.Len() == 0 {
				s.uncounted(disks.source + "; medians. Empty cells: " + disks.empty + ".\n\n| Phase | Variant | " + strings.Join(titles, " | ") +
					" |\n|---|---|" + strings.Repeat("---|", len(titles)))
			}
			s.row("| %s | %s | %s |", name(of.String()), name(variant.Name), strings.Join(cells, " | "))
		}
	}
	return s
}

// part is a phase, or one of several workloads in it, whose metrics have a prefix.
type part struct{ phase, prefix string }

func (p part) String() string { return strings.TrimSuffix(p.phase+"."+p.prefix, ".") }

// diskFigures is what reports show about the disks.
type diskFigures struct {
	// parts that have metrics of disks: a phase as a whole, or each of its workloads.
	parts []part
	// columns with a figure in any row.
	columns []diskColumn
	// source of the figures, and what an empty cell means.
	source, empty string
}

// disksOf collects the disk metrics of the variants. It derives their source from the metrics: a phase on an observed pool has some that
// only pools have.
func disksOf(variants []results.VariantResult) diskFigures {
	disks := diskFigures{source: "Counters of the disks below the volume", empty: "not measured"}
	known := map[string]bool{}
	for _, phase := range phaseNames(variants) {
		for _, metric := range metricsOf(variants, phase) {
			at := strings.LastIndexByte(metric, '.') + 1
			one, column := part{phase, metric[:at]}, metric[at:]
			if !isDiskMetric(column) {
				continue
			}
			known[column] = true
			if !slices.Contains(disks.parts, one) {
				disks.parts = append(disks.parts, one)
			}
		}
	}
	for _, column := range diskColumns {
		if !known[column.metric] {
			continue
		}
		disks.columns = append(disks.columns, column)
		if column.ofPool {
			disks.source, disks.empty = "Counters of the pool on the node", "not measured, or not reported by this OpenZFS"
		}
	}
	return disks
}

// metricsOf returns the names of the metrics of a phase in all variants, in their order.
func metricsOf(variants []results.VariantResult, phase string) (names []string) {
	for _, variant := range variants {
		for _, candidate := range variant.Phases {
			if candidate.Name != phase {
				continue
			}
			for _, metric := range candidate.Metrics {
				names = append(names, metric.Name)
			}
		}
	}
	return names
}

func isDiskMetric(metric string) bool {
	return slices.ContainsFunc(diskColumns, func(column diskColumn) bool { return column.metric == metric })
}
