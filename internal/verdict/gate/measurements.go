package gate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// measurements finds values in the summary of an experiment.
type measurements struct {
	*Evidence
}

// find returns a value, or says what is missing.
func (m measurements) find(ref reference) (metric results.MetricResult, missing string) {
	variant := byName(m.Summary, ref.variant, func(v *results.VariantResult) string { return v.Name })
	if variant == nil {
		return metric, fmt.Sprintf("no data: variant %s has no valid runs: see its BenchmarkRuns for the reason", plain(ref.variant))
	}
	phase := byName(variant.Phases, ref.phase, func(p *results.PhaseResult) string { return p.Name })
	if phase == nil {
		return metric, fmt.Sprintf("no data: variant %s has no metrics for phase %s: see its BenchmarkRuns for the reason",
			plain(ref.variant), plain(ref.phase))
	}
	found := byName(phase.Metrics, ref.metric, func(r *results.MetricResult) string { return r.Name })
	if found == nil || found.Runs <= 0 {
		return metric, fmt.Sprintf("no data: in variant %s, phase %s measured no %s: it has %s",
			plain(ref.variant), plain(ref.phase), plain(ref.metric), measuredNames(phase))
	}
	if counted := results.Repetitions(m.Runs); results.Lacks(counted, ref.variant, *found) {
		return metric, unmeasured(ref, results.Lacking(counted, ref.variant, ref.phase, ref.metric))
	}
	return *found, ""
}

// unmeasured says which repetitions lack a metric. None are given if the results do not say which.
func unmeasured(ref reference, repetitions []int32) string {
	const most = 5
	words := make([]string, 0, most)
	for _, repetition := range repetitions[:min(len(repetitions), most)] {
		words = append(words, strconv.Itoa(int(repetition)))
	}
	named := "repetitions "
	switch len(repetitions) {
	case 0:
		named = "all repetitions"
	case 1:
		named = "repetition "
	}
	if more := len(repetitions) - most; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("no data: %s was not measured in %s%s, and the other runs cannot replace it: the notes of the report say why", ref,
		named, strings.Join(words, ", "))
}

func measuredNames(phase *results.PhaseResult) string {
	var names []string
	for _, metric := range phase.Metrics {
		if metric.Runs > 0 {
			names = append(names, metric.Name)
		}
	}
	if len(names) == 0 {
		return "no metrics at all"
	}
	return list(names)
}

func byName[T any](all []T, name string, of func(*T) string) *T {
	for i := range all {
		if of(&all[i]) == name {
			return &all[i]
		}
	}
	return nil
}
