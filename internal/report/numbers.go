package report

import (
	"slices"

	"github.com/storagebench/storagebench/internal/results"
)

// numbersSection has one table per phase: the primary metrics of every variant, compared with the first variant that has the phase.
func numbersSection(e results.Experiment, all samples) *section {
	s := newSection("Numbers", numbersBytes)
	for _, phase := range phaseNames(e.Variants) {
		s.phaseTable(having(e.Variants, phase), phase, all)
	}
	return s
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

func (s *section) phaseTable(variants []results.VariantResult, phase string, all samples) {
	metrics := primaryMetrics(variants, phase)
	if len(metrics) == 0 {
		s.uncounted("### " + name(phase) + "\n\nThis phase has no primary metrics; the others are in results.json.\n")
		return
	}
	several := len(variants) > 1
	frame := "### " + name(phase) + "\n\n| Metric | Better | Variant | Median (min..max, runs) |"
	if several {
		s.uncounted(frame + " Against " + name(variants[0].Name) + " (95% interval) |\n|---|---|---|---|---|")
	} else {
		s.uncounted(frame + "\n|---|---|---|---|")
	}
	for _, metric := range metrics {
		base, _ := find(variants[0], phase, metric)
		for i, variant := range variants {
			shown, better, against := notMeasured, "", "-"
			if found, ok := find(variant, phase, metric); ok {
				shown, better = Figures(found), found.Better
				of := source{variant.Name, phase, metric}
				against = all.ratio(source{variants[0].Name, phase, metric}, of, base, found)
				if all.lacks(of) {
					shown += notInAll
				}
			}
			if i == 0 && several {
				against = ""
			}
			s.metricRow(metric, better, variant.Name, shown, against, several)
		}
	}
	s.uncounted("")
}

func (s *section) metricRow(metric, better, variant, shown, against string, several bool) {
	if several {
		s.row("| %s | %s | %s | %s | %s |", name(metric), name(better), name(variant), shown, against)
		return
	}
	s.row("| %s | %s | %s | %s |", name(metric), name(better), name(variant), shown)
}

// primaryMetrics returns the primary metrics of a phase, in the order of the first variant that has each.
func primaryMetrics(variants []results.VariantResult, phase string) []string {
	var names []string
	for _, variant := range variants {
		for _, candidate := range variant.Phases {
			if candidate.Name != phase {
				continue
			}
			for _, metric := range candidate.Metrics {
				if results.IsPrimary(metric.Name) && !slices.Contains(names, metric.Name) {
					names = append(names, metric.Name)
				}
			}
		}
	}
	return names
}

func find(variant results.VariantResult, phase, metric string) (results.MetricResult, bool) {
	for _, candidate := range variant.Phases {
		if candidate.Name != phase {
			continue
		}
		for _, found := range candidate.Metrics {
			if found.Name == metric {
				return found, true
			}
		}
	}
	return results.MetricResult{}, false
}
