package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	// maxAlike is how many names a sentence has room for.
	maxAlike = 4
	// binWidth is the relative width of the bins that percentiles are read from.
	binWidth = 0.016
)

// bestOf says which variant has the best values of a metric, and by how much. Empty if there are fewer than two variants, or if the metric
// has no better direction.
func bestOf(e results.Experiment, all samples, phase, metric string) string {
	known, _ := results.LookupMetric(metric)
	if known.Better != results.Higher && known.Better != results.Lower {
		return ""
	}
	variants := having(e.Variants, phase)
	ranked := slices.DeleteFunc(slices.Clone(variants), func(v results.VariantResult) bool {
		_, has := find(v, phase, metric)
		return !has
	})
	if len(ranked) < 2 {
		return ""
	}
	slices.SortStableFunc(ranked, func(a, b results.VariantResult) int {
		one, _ := find(a, phase, metric)
		other, _ := find(b, phase, metric)
		if known.Better == results.Lower {
			one, other = other, one
		}
		return cmp.Compare(other.Median, one.Median)
	})
	words := all.choose(ranked, phase, known)
	if without := len(variants) - len(ranked); without > 0 {
		words += fmt.Sprintf("; %d other variants were not measured", without)
	}
	return words
}

// choose compares the variant with the best median with each of the others. Because the data chooses that variant, the intervals against it
// only show whether it is the best, at a level at which "best" is seldom wrong. The stricter level of all pairs decides which of the others
// are worse.
func (s samples) choose(ranked []results.VariantResult, phase string, metric results.Metric) string {
	best, edge := ranked[0].Name, edgeOf(ranked, phase, metric)
	others := float64(len(ranked) - 1)
	pairs := others * float64(len(ranked)) / 2
	var next string
	var alike []string
	beatsAll := true
	for i, other := range ranked[1:] {
		of, reference := source{other.Name, phase, metric.Name}, source{best, phase, metric.Name}
		shift, known := s.shift(of, reference, outside/others)
		if !known {
			return best + " has the best median; " + s.tooFew(ranked, phase, metric.Name)
		}
		if i == 0 {
			next = shiftWords(shift)
		}
		beatsAll = beatsAll && beyond(shift, edge, metric)
		if shift, known = s.shift(of, reference, outside/pairs); !known || !beyond(shift, edge, metric) {
			alike = append(alike, other.Name)
		}
	}
	if beatsAll {
		return fmt.Sprintf(isBest+"%s, %s %s, the next", best, next, ranked[1].Name)
	}
	more := ""
	if len(alike) > maxAlike {
		alike, more = alike[:maxAlike], fmt.Sprintf(" and %d more", len(alike)-maxAlike)
	}
	return fmt.Sprintf(noBest+"%s has the best median, %s %s, but may be no better than %s%s: take any of them, or add repetitions",
		best, next, ranked[1].Name, strings.Join(alike, " and "), more)
}

// beyond reports whether the whole interval is better by more than an edge.
func beyond(shift stats.Shift, edge float64, metric results.Metric) bool {
	if metric.Better == results.Higher {
		return shift.Interval.Low > edge
	}
	return shift.Interval.High < -edge
}

// tooFew says why there are no intervals: too few runs, or their values are not in this document.
func (s samples) tooFew(ranked []results.VariantResult, phase, metric string) string {
	needed, omitted, pools := RepetitionsFor(len(ranked)), false, ""
	for _, variant := range ranked {
		if s.kept[variant.Name] {
			pools = ", each with a new pool"
		}
		if s.lacks(source{variant.Name, phase, metric}) {
			return fmt.Sprintf("some runs of %s have no such value, often for too few operations, and the others may be the good ones: "+
				"measure longer", variant.Name)
		}
	}
	for _, variant := range ranked {
		found, _ := find(variant, phase, metric)
		if int(found.Runs) < needed || s.kept[variant.Name] {
			omitted = false
			break
		}
		omitted = omitted || len(s.values[source{variant.Name, phase, metric}]) < int(found.Runs)
	}
	if omitted {
		return fmt.Sprintf("the values of single runs of %d variants did not fit into results.json: see report.md", len(ranked))
	}
	return fmt.Sprintf("too few comparable runs to tell a difference between %d variants from chance: use at least %d repetitions%s",
		len(ranked), needed, pools)
}

// edgeOf returns the largest difference, as a logarithm, that is meaningless: values are whole numbers, and percentiles are ends of bins.
func edgeOf(ranked []results.VariantResult, phase string, metric results.Metric) float64 {
	edge := 0.0
	if metric.Binned() {
		edge = 2 * binWidth
	}
	for _, variant := range ranked {
		if found, _ := find(variant, phase, metric.Name); found.Median > 0 {
			edge = max(edge, float64(max(1, metric.Step()))/float64(found.Median))
		}
	}
	return edge
}

// RepetitionsFor returns how many repetitions the intervals of that many variants need: enough that all pairs seldom point the same way by
// chance.
func RepetitionsFor(variants int) int {
	return int(math.Ceil(-math.Log2(outside / float64(variants-1))))
}

// shiftWords returns, for example, "12.0% (9.1..15.2) above", or the same with "below".
func shiftWords(shift stats.Shift) string {
	percent := func(logarithm float64) float64 { return 100 * math.Expm1(logarithm) }
	middle, low, high := percent(shift.Estimate), percent(shift.Interval.Low), percent(shift.Interval.High)
	if middle < 0 {
		return fmt.Sprintf("%.1f%% (%.1f..%.1f) below", -middle, -high, -low)
	}
	return fmt.Sprintf("%.1f%% (%.1f..%.1f) above", middle, low, high)
}

// isFill reports whether a phase is a fill phase.
func isFill(runs []results.RunResult, phase string) bool {
	return slices.ContainsFunc(runs, func(run results.RunResult) bool {
		return slices.ContainsFunc(run.Phases, func(one results.RunPhase) bool { return one.Name == phase && one.Kind == results.KindFill })
	})
}

const (
	isBest, noBest = "best: ", "no best: "
	bestNote       = "Lines that begin with \"best\" or \"no best\" compare the best median with each of the others. At most 5% of them " +
		"call one best that is not. Variants that they do not name after \"may be no better than\" are worse, with a confidence of 95% for " +
		"all pairs of a line together."
)

// bestTable has every primary metric for which a best variant can be named, and a note if a line says what a test found. Fill phases are
// left out: their rate is that of one writer, and says as much about the processor as about the storage.
func bestTable(e results.Experiment, all samples) table {
	t := table{Caption: "Which variant is best", Head: []string{"Metric", "What follows"}}
	for _, phase := range phaseNames(e.Variants) {
		if isFill(e.Runs, phase) {
			continue
		}
		for _, metric := range primaryMetrics(e.Variants, phase) {
			if text := bestOf(e, all, phase, metric); text != "" {
				t.add(words(phase+"."+metric), words(text))
				if strings.HasPrefix(text, isBest) || strings.HasPrefix(text, noBest) {
					t.Note = bestNote
				}
			}
		}
	}
	return t
}
