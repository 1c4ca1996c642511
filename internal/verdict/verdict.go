package verdict

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// Decision holds the results of the gates of an experiment, and the overall verdict.
type Decision struct {
	Verdict         v1alpha1.Verdict
	Reason, Message string
	Gates           []results.GateResult
}

// looks returns the times at which the gates of a spec may be judged.
func looks(spec *v1alpha1.StorageBenchmarkSpec) []gate.Look {
	if spec.Adaptive == nil || spec.Adaptive.MaxRepetitions <= spec.Repetitions {
		return []gate.Look{{Repetitions: int(spec.Repetitions), Share: 1}}
	}
	first, last := gate.LargeShare, gate.SmallShare
	if spec.Repetitions < gate.LeastPairs { // the first look can decide little: it leaves more to the last
		first, last = last, first
	}
	return []gate.Look{{Repetitions: int(spec.Repetitions), Share: first}, {Repetitions: int(spec.Adaptive.MaxRepetitions), Share: last}}
}

// Undecidable says which gates of a spec cannot be decided with its repetitions, and how many they need. It returns an empty text if all
// gates can be decided.
func Undecidable(spec *v1alpha1.StorageBenchmarkSpec, gates *gate.Set) string {
	if gates == nil {
		return ""
	}
	return gates.Undecidable(spec.Order, looks(spec)...)
}

// shareAt is the share of the levels that a look at this number of repetitions may use.
func shareAt(spec *v1alpha1.StorageBenchmarkSpec, repetitions int32) float64 {
	all := looks(spec)
	if int(repetitions) > all[0].Repetitions {
		return all[len(all)-1].Share
	}
	return all[0].Share
}

// Judge judges the gates of a spec by an experiment. The set must have been compiled from the gates of that spec.
func Judge(spec *v1alpha1.StorageBenchmarkSpec, gates *gate.Set, standards Standards, experiment *results.Experiment) Decision {
	statuses := gates.Judge(compared(spec, standards, experiment))
	var decision Decision
	var needed [][]gate.Reference
	var limits []gate.Limits
	if gates != nil {
		needed, limits = gates.References(), gates.Limits()
	}
	decision.Verdict, decision.Message = gate.Overall(statuses)
	decision.Reason = string(decision.Verdict)
	for i, status := range statuses {
		decision.Gates = append(decision.Gates, results.GateResult{
			Name: string(status.Name), Definition: gate.Definition(spec.Gates[i]), Metrics: gateMetrics(needed[i]),
			AtLeast: limits[i].AtLeast, AtMost: limits[i].AtMost,
			Verdict: string(status.Verdict), Reason: status.Reason, Message: status.Message, Comparisons: comparisons(status.Comparisons),
		})
	}
	return decision
}

// Incomplete replaces the decision on an experiment with missing runs. The gates show the results of the other runs, but decide nothing.
func (d *Decision) Incomplete(verdict v1alpha1.Verdict, reason, message string) {
	d.Verdict, d.Reason, d.Message = verdict, reason, message
	for i := range d.Gates {
		one := &d.Gates[i]
		one.Message = fmt.Sprintf("would be %s on the existing runs: %s", one.Verdict, one.Message)
		one.Verdict, one.Reason = string(v1alpha1.VerdictInconclusive), gate.ReasonRunsMissing
		one.Comparisons = slices.Clone(one.Comparisons)
		for k := range one.Comparisons {
			one.Comparisons[k].Verdict = one.Verdict
		}
	}
}

// maxGateMetrics bounds the results: an expression can name many.
const maxGateMetrics = 16

// gateMetrics lists each metric once.
func gateMetrics(needed []gate.Reference) []results.GateMetric {
	var metrics []results.GateMetric
	for _, of := range needed {
		one := results.GateMetric{Variant: of.Variant, Phase: of.Phase, Metric: of.Metric}
		if len(metrics) < maxGateMetrics && !slices.Contains(metrics, one) {
			metrics = append(metrics, one)
		}
	}
	return metrics
}

func comparisons(evidence []v1alpha1.GateComparison) []results.Comparison {
	var all []results.Comparison
	for _, c := range evidence {
		all = append(all, results.Comparison{
			Variant: c.Variant, Verdict: string(c.Verdict), ChangePartsPerMillion: c.ChangePartsPerMillion,
			LowPartsPerMillion: c.LowPartsPerMillion, HighPartsPerMillion: c.HighPartsPerMillion,
			ConfidencePartsPerMillion:       c.ConfidencePartsPerMillion,
			WorseProbabilityPartsPerMillion: c.WorseProbabilityPartsPerMillion, WithinProbabilityPartsPerMillion: c.WithinProbabilityPartsPerMillion,
			Runs: c.Runs, BaselineRuns: c.BaselineRuns, TolerancePartsPerMillion: c.TolerancePartsPerMillion,
			NoisePartsPerMillion: c.NoisePartsPerMillion,
		})
	}
	return all
}
