package results

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Summarise takes the median, smallest and largest value of every metric over the valid phases of the valid runs. Variants and phases come
// in the order in which they first appear in runs. A variant without any valid run is listed without phases, so that its absence cannot be
// mistaken for agreement. A group of runs counts as one.
func Summarise(runs []RunResult) []VariantResult {
	runs = Repetitions(runs)
	slices.SortStableFunc(runs, func(a, b RunResult) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Name, b.Name))
	})
	var order []string
	samples := map[string]*variantSamples{}
	for _, run := range runs {
		variant, known := samples[run.Variant]
		if !known {
			variant = &variantSamples{values: map[string]map[string][]int64{}}
			samples[run.Variant] = variant
			order = append(order, run.Variant)
		}
		if run.Valid {
			variant.add(run)
		}
	}
	summary := make([]VariantResult, 0, len(order))
	for _, name := range order {
		summary = append(summary, VariantResult{Name: name, Phases: samples[name].summarise()})
	}
	return summary
}

// KeptVariants are the variants with runs that reused the pool of an earlier run: their runs depend on each other.
func KeptVariants(runs []RunResult) map[string]bool {
	kept := map[string]bool{}
	for _, run := range runs {
		kept[run.Variant] = kept[run.Variant] || run.KeptFrom != ""
	}
	return kept
}

// Lacks reports whether a valid repetition of a variant has no value of a metric of its summary. counted is the result of Repetitions. If
// so, the values of the other runs do not count: a stalled run, for example, has too few operations for a percentile, and the remaining
// runs are the good ones. The summary decides, because large results do not have the values of single runs.
func Lacks(counted []RunResult, variant string, metric MetricResult) bool {
	valid := int32(0)
	for _, run := range counted {
		if run.Variant == variant && run.Valid {
			valid++
		}
	}
	return metric.Runs < valid
}

// Lacking returns the repetitions with a valid run that has no value of a metric. It returns none if no run has one: then the results are
// so large that they do not say which runs lack it.
func Lacking(counted []RunResult, variant, phase, metric string) (repetitions []int32) {
	known := false
	for _, run := range counted {
		if run.Variant != variant || !run.Valid {
			continue
		}
		found, _ := run.phase(phase)
		_, measured := found.Metrics[metric]
		if known = known || measured; !measured && !slices.Contains(repetitions, run.Repetition) {
			repetitions = append(repetitions, run.Repetition)
		}
	}
	if !known {
		return nil
	}
	slices.Sort(repetitions)
	return repetitions
}

// variantSamples gathers the values by phase and metric.
type variantSamples struct {
	order  []string
	values map[string]map[string][]int64
}

func (v *variantSamples) add(run RunResult) {
	for _, phase := range run.Phases {
		if phase.Outcome != OutcomeValid || len(phase.Metrics) == 0 {
			continue
		}
		if v.values[phase.Name] == nil {
			v.values[phase.Name] = map[string][]int64{}
			v.order = append(v.order, phase.Name)
		}
		for name, value := range phase.Metrics {
			v.values[phase.Name][name] = append(v.values[phase.Name][name], value)
		}
	}
}

func (v *variantSamples) summarise() []PhaseResult {
	var phases []PhaseResult
	for _, name := range v.order {
		phases = append(phases, PhaseResult{Name: name, Metrics: summariseMetrics(v.values[name])})
	}
	return phases
}

func summariseMetrics(values map[string][]int64) []MetricResult {
	metrics := make([]Metric, 0, len(values))
	for name := range values {
		// A name from an older or newer release has no entry; it is still a number worth keeping.
		metric, known := LookupMetric(name)
		if !known {
			metric = Metric{Name: name, Better: Neither}
		}
		metrics = append(metrics, metric)
	}
	slices.SortFunc(metrics, compareMetrics)
	summary := make([]MetricResult, 0, len(metrics))
	for _, metric := range metrics {
		sorted := slices.Sorted(slices.Values(values[metric.Name]))
		summary = append(summary, MetricResult{
			Name: metric.Name, Unit: metric.Unit, Better: string(metric.Better),
			Median: medianOfRuns(metric.Name, sorted), Min: sorted[0], Max: sorted[len(sorted)-1], Runs: int32(len(sorted)),
		})
	}
	return summary
}

// medianOfRuns returns the median of a metric over runs. For an even number of modes, it is the smaller of the middle two: their mean would
// be a size that no run had most often.
func medianOfRuns(metric string, sorted []int64) int64 {
	if strings.HasSuffix(metric, "."+StatisticMode) {
		return sorted[(len(sorted)-1)/2]
	}
	return medianOfSorted(sorted)
}

// medianOfSorted returns the median. For an even number of values, it is the mean of the middle two, rounded to nearest (halves up). Their
// difference is taken in uint64, where it cannot overflow.
func medianOfSorted(sorted []int64) int64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	low, high := sorted[middle-1], sorted[middle]
	difference := uint64(high) - uint64(low)
	return int64(uint64(low) + difference/2 + difference%2)
}

// UnlikeKeys returns the keys of environment that differed between the runs. A document from before they were listed shows only which keys
// have several values, in any phase.
func (e Experiment) UnlikeKeys() []string {
	if e.Unlike != nil {
		return e.Unlike
	}
	return sortedKeys(differing(maps.Clone(e.Environment)))
}

// Unalike returns the keys whose values differ, in a way that matters for a comparison, between documents that should be alike, with these
// values.
func Unalike(docs []PhaseDocument) map[string][]string { return differing(MergeEnvironment(docs)) }

// differing removes all keys whose values do not differ in a way that matters.
func differing(environment map[string][]string) map[string][]string {
	maps.DeleteFunc(environment, func(key string, values []string) bool { return ignoredKey(key) || len(distinct(key, values)) < 2 })
	return environment
}

// DifferingKeys returns the keys of Unalike for the documents of each phase, sorted. Between phases they may differ: each has its own
// workload, operation and volume.
func DifferingKeys(docs []PhaseDocument) []string {
	byPhase := map[string][]PhaseDocument{}
	for _, doc := range docs {
		byPhase[doc.Phase] = append(byPhase[doc.Phase], doc)
	}
	unlike := map[string]bool{}
	for _, ofPhase := range byPhase {
		for key := range Unalike(ofPhase) {
			unlike[key] = true
		}
	}
	return append([]string{}, sortedKeys(unlike)...) // not nil: they were compared
}

// MergeEnvironment gathers the distinct values of every key over all documents. A key that only some documents have is not a difference:
// phases of different kinds look at different things.
func MergeEnvironment(docs []PhaseDocument) map[string][]string {
	merged := map[string][]string{}
	for _, doc := range docs {
		for key, value := range doc.Environment {
			values := merged[key]
			if len(values) == cap(values) { // before it grows
				values = sortedOnce(values)
				values = slices.Grow(values, len(values)+1)
			}
			merged[key] = append(values, value)
		}
	}
	for key, values := range merged {
		merged[key] = sortedOnce(values)
	}
	return merged
}

// sortedOnce sorts the values in place, and keeps each once.
func sortedOnce(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
