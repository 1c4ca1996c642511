package verdict

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// Decision is what the gates of an experiment say, and what follows from them.
type Decision struct {
	Verdict         v1alpha1.Verdict
	Reason, Message string
	Gates           []results.GateResult
}

// Looks is the number of times that the gates of a spec may be judged.
func Looks(spec *v1alpha1.StorageBenchmarkSpec) int {
	if spec.Adaptive == nil {
		return 1
	}
	return 2
}

// Judge judges the gates of a spec by an experiment, whose gates they were compiled from.
func Judge(spec *v1alpha1.StorageBenchmarkSpec, gates *gate.Set, standards Standards, experiment *results.Experiment) Decision {
	statuses := gates.Judge(compared(spec, standards, experiment))
	var decision Decision
	decision.Verdict, decision.Message = gate.Overall(statuses)
	decision.Reason = string(decision.Verdict)
	for i, status := range statuses {
		decision.Gates = append(decision.Gates, results.GateResult{
			Name: string(status.Name), Definition: gate.Definition(spec.Gates[i]),
			Verdict: string(status.Verdict), Reason: status.Reason, Message: status.Message, Comparisons: comparisons(status.Comparisons),
		})
	}
	return decision
}

// Incomplete replaces the decision on an experiment with missing runs. The gates show what the other runs say, but decide nothing.
func (d *Decision) Incomplete(verdict v1alpha1.Verdict, reason, message string) {
	d.Verdict, d.Reason, d.Message = verdict, reason, message
	for i := range d.Gates {
		one := &d.Gates[i]
		one.Message = fmt.Sprintf("would be %s on the runs there are: %s", one.Verdict, one.Message)
		one.Verdict, one.Reason = string(v1alpha1.VerdictInconclusive), gate.ReasonRunsMissing
	}
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
