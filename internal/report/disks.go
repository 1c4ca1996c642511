package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

const poolAllocated = "poolAllocatedBytes"

// diskColumn is a metric that explains the metrics of a workload: data layout, and the work of the disks.
type diskColumn struct {
	title, metric string
	// ofPool is true if only the agent reports the metric, for a pool of the benchmark.
	ofPool bool
}

var diskColumns = []diskColumn{
	{"Layout score", "layoutScorePartsPerMillion", true},
	{"Free space fragmented", "freeSpaceFragmentationPartsPerMillion", true},
	{"Allocated (zpool)", poolAllocated, true},
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
// reads per read are independent metrics. Medians of fewer runs than there are valid ones say so.
func disksSection(e results.Experiment, all samples) *section {
	disks := disksOf(e.Variants)
	t := table{Head: []string{"Phase", "Variant"}}
	for _, column := range disks.columns {
		t.Head = append(t.Head, column.title)
	}
	for _, of := range disks.parts {
		for _, variant := range e.Variants {
			row := []tableCell{named(of.String()), named(variant.Name)}
			known := false
			for _, column := range disks.columns {
				shown := figure("")
				if metric, found := find(variant, of.phase, of.prefix+column.metric); found {
					shown, known = median(metric), true
					if all.lacks(source{variant.Name, of.phase, metric.Name}) {
						shown.Text += fmt.Sprintf(" (n=%d)", metric.Runs)
					}
				}
				row = append(row, shown)
			}
			if known {
				t.add(row...)
			}
		}
	}
	return newSection("What the disks did", 12<<10).table(t, disks.source+"; medians. Empty cells: "+disks.empty+".", disks.note)
}

// disks has the same metrics, one row for each.
func (m *maker) disks() pageSection {
	variants := m.Experiment.Variants
	disks := disksOf(variants)
	t := wideTable(disks.source, "What", "Phase", "Variant")
	t.Note = disks.note
	for _, of := range disks.parts {
		for _, column := range disks.columns {
			for _, variant := range variants {
				if metric, found := find(variant, of.phase, of.prefix+column.metric); found {
					t.addFigures(metric, column.title, of.String(), variant.Name)
				}
			}
		}
	}
	return pageSection{After: m.tables(t)}
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
	// source of the figures, what an empty cell means, and how a column counts.
	source, empty, note string
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
			disks.source, disks.empty = "Counters of the pool on the node",
				"not measured, too few samples in a short phase, or not reported by this OpenZFS"
		}
		if column.metric == poolAllocated {
			disks.note = "Allocated: a mirror counts once, a raidz with its parity."
		}
	}
	return disks
}

func isDiskMetric(metric string) bool {
	return slices.ContainsFunc(diskColumns, func(column diskColumn) bool { return column.metric == metric })
}
