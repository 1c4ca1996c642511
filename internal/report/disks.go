package report

import (
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// diskColumns are the disk metrics that explain the metrics of a workload: data layout, and the work of the disks.
var diskColumns = []struct{ title, metric string }{
	{"Layout score", "layoutScorePartsPerMillion"},
	{"Free space fragmented", "freeSpaceFragmentationPartsPerMillion"},
	{"In use", "poolAllocatedBytes"},
	{"Disk reads", "diskReadOperationsPerSecond"},
	{"Mean read", "diskReadRequestBytes"},
	{"Reads below 32 KiB", "smallDiskReadsPartsPerMillion"},
	{"Disk reads per read", "diskReadsPerReadMilli"},
	{"Disk writes", "diskWriteOperationsPerSecond"},
	{"Mean write", "diskWriteRequestBytes"},
}

// disksSection has a row for each phase and variant with disk metrics, with medians over the runs. Layout score, fragmentation and
// reads per read are independent metrics.
func disksSection(e results.Experiment) *section {
	s := newSection("What the disks did", disksBytes)
	var titles []string
	for _, column := range diskColumns {
		titles = append(titles, column.title)
	}
	for _, phase := range phaseNames(e.Variants) {
		for _, variant := range e.Variants {
			var cells []string
			known := false
			for _, column := range diskColumns {
				shown := ""
				if metric, found := find(variant, phase, column.metric); found {
					scale := scaleFor(metric)
					shown, known = scale.format(metric.Median)+scale.suffix, true
				}
				cells = append(cells, shown)
			}
			if !known {
				continue
			}
			if s.text.Len() == 0 {
				s.frame("Counters of the pool on the node; medians. Empty cells: not measured, or not reported by this OpenZFS.\n\n| Phase | " +
					"Variant | " +
					strings.Join(titles, " | ") + " |\n|---|---|" + strings.Repeat("---|", len(titles)))
			}
			s.row("| %s | %s | %s |", name(phase), name(variant.Name), strings.Join(cells, " | "))
		}
	}
	return s
}
