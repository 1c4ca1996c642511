package report

import (
	"slices"
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
	for _, of := range withDisks(e.Variants) {
		for _, variant := range e.Variants {
			var cells []string
			known := false
			for _, column := range diskColumns {
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
				s.frame("Counters of the pool on the node; medians. Empty cells: not measured, or not reported by this OpenZFS.\n\n| Phase | " +
					"Variant | " +
					strings.Join(titles, " | ") + " |\n|---|---|" + strings.Repeat("---|", len(titles)))
			}
			s.row("| %s | %s | %s |", name(of.String()), name(variant.Name), strings.Join(cells, " | "))
		}
	}
	return s
}

// part is a phase, or one of several workloads in it, whose metrics have a prefix.
type part struct{ phase, prefix string }

func (p part) String() string { return strings.TrimSuffix(p.phase+"."+p.prefix, ".") }

// withDisks are those that have metrics of disks: a phase as a whole, or each of its workloads.
func withDisks(variants []results.VariantResult) []part {
	var parts []part
	for _, phase := range phaseNames(variants) {
		for _, variant := range variants {
			for _, candidate := range variant.Phases {
				if candidate.Name != phase {
					continue
				}
				for _, metric := range candidate.Metrics {
					at := strings.LastIndexByte(metric.Name, '.') + 1
					one := part{phase, metric.Name[:at]}
					if isDiskMetric(metric.Name[at:]) && !slices.Contains(parts, one) {
						parts = append(parts, one)
					}
				}
			}
		}
	}
	return parts
}

func isDiskMetric(metric string) bool {
	for _, column := range diskColumns {
		if column.metric == metric {
			return true
		}
	}
	return false
}
