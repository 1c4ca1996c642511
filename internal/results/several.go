package results

import (
	"fmt"
	"slices"
)

// with returns the baseline with one more experiment. It replaces an experiment that the baseline already has. It refuses results of
// another environment or another definition, because they are not the same thing on another day.
func (b Baseline) with(one Baseline) (Baseline, error) {
	const remedy = "start over with --replace"
	if differences := Differences(b.Environment, one.Environment, nil); len(differences) > 0 {
		return Baseline{}, fmt.Errorf("the baseline comes from different hardware or versions: %s: %s",
			DifferencesInWords(differences, maxListedDifferences), remedy)
	}
	if b.SameVariants != one.SameVariants {
		return Baseline{}, fmt.Errorf("only one of the baseline and the results declares all variants equal: use --same-variants for both, or %s",
			remedy)
	}
	for _, variant := range one.Variants {
		if then := b.Definition(variant.Name); then != "" && then != variant.Definition {
			return Baseline{}, fmt.Errorf("variant %s differs from the baseline: its target, phases or pods have changed: %s", variant.Name, remedy)
		}
	}
	joined := b.Without(one.Experiments[0].Experiment)
	for len(joined.Experiments) >= MaxBaselineExperiments {
		joined = joined.Without(joined.Experiments[0].Experiment)
	}
	before := len(joined.Experiments)
	if before == 0 {
		return one, nil
	}
	joined.Experiments = append(joined.Experiments, one.Experiments[0])
	joined.Environment = joinedEnvironment(b.Environment, one.Environment)
	joined.Omitted = nil
	for _, words := range slices.Concat(b.Omitted, one.Omitted) {
		if !slices.Contains(joined.Omitted, words) {
			joined.Omitted = append(joined.Omitted, words)
		}
	}
	joined.extend(one, before)
	return joined, nil
}

// maxListedDifferences is the number of differences of environments that an error lists.
const maxListedDifferences = 4

// Without returns the baseline without an experiment, and does not change the original.
func (b Baseline) Without(experiment string) Baseline {
	at := slices.IndexFunc(b.Experiments, func(accepted Accepted) bool { return accepted.Experiment == experiment })
	short := b
	short.Experiments = dropped(b.Experiments, at)
	short.Variants = nil
	for _, variant := range b.Variants {
		phases := variant.Phases
		variant.Phases = nil
		for _, phase := range phases {
			metrics := phase.Metrics
			phase.Metrics = nil
			phase.Order = dropped(phase.Order, at)
			for _, metric := range metrics {
				if metric.Values = dropped(metric.Values, at); len(slices.Concat(metric.Values...)) > 0 {
					phase.Metrics = append(phase.Metrics, metric)
				}
			}
			if len(phase.Metrics) > 0 {
				variant.Phases = append(variant.Phases, phase)
			}
		}
		if len(variant.Phases) > 0 {
			short.Variants = append(short.Variants, variant)
		}
	}
	return short
}

func dropped[T any](all []T, at int) []T {
	if at < 0 || at >= len(all) {
		return slices.Clone(all)
	}
	return slices.Delete(slices.Clone(all), at, at+1)
}

// extend adds the values of one experiment to those of the experiments before it.
func (b *Baseline) extend(one Baseline, before int) {
	for _, variant := range one.Variants {
		ofVariant := named(&b.Variants, variant.Name, func(v *BaselineVariant) string { return v.Name }, BaselineVariant{Name: variant.Name,
			Definition: variant.Definition})
		for _, phase := range variant.Phases {
			ofPhase := named(&ofVariant.Phases, phase.Name, func(p *BaselinePhase) string { return p.Name }, BaselinePhase{Name: phase.Name,
				Kind: phase.Kind})
			if one.SameVariants {
				ofPhase.Order = append(padded(ofPhase.Order, before), phase.Order...)
			}
			for _, metric := range phase.Metrics {
				ofMetric := named(&ofPhase.Metrics, metric.Name, func(m *BaselineMetric) string { return m.Name }, BaselineMetric{Name: metric.Name,
					Unit: metric.Unit, Better: metric.Better})
				ofMetric.Values = append(padded(ofMetric.Values, before), metric.Values...)
			}
		}
	}
	// Phases and metrics that the new experiment does not have get an empty list for it.
	for i := range b.Variants {
		for j := range b.Variants[i].Phases {
			phase := &b.Variants[i].Phases[j]
			if one.SameVariants {
				phase.Order = padded(phase.Order, before+1)
			}
			for k := range phase.Metrics {
				phase.Metrics[k].Values = padded(phase.Metrics[k].Values, before+1)
			}
		}
	}
}

// padded adds empty lists up to a length.
func padded[T any](lists [][]T, length int) [][]T {
	for len(lists) < length {
		lists = append(lists, []T{})
	}
	return lists
}

// named finds the member with a name, or adds it.
func named[T any](all *[]T, name string, of func(*T) string, fresh T) *T {
	for i := range *all {
		if of(&(*all)[i]) == name {
			return &(*all)[i]
		}
	}
	*all = append(*all, fresh)
	return &(*all)[len(*all)-1]
}

func joinedEnvironment(a, b map[string][]string) map[string][]string {
	joined := map[string][]string{}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(sortedKeys(a), sortedKeys(b))))) {
		values := slices.Concat(a[key], b[key])
		slices.Sort(values)
		joined[key] = slices.Compact(values)
	}
	return joined
}
