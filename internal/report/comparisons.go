package report

import (
	"fmt"

	"github.com/storagebench/storagebench/internal/results"
)

const comparisonsNote = "p of worse is small if the metric is worse by more than the tolerance and the noise; it is corrected for all " +
	"comparisons. p of within is small if it is worse by less than the tolerance."

// comparisonsTable has the evidence of compare gates: a row for each variant.
func comparisonsTable(e results.Experiment) table {
	t := table{Caption: "Evidence of comparisons", Head: []string{"Gate", "Variant", "Verdict", "Change", "Interval", "Confidence",
		"p of worse", "p of within", "Runs", "Tolerance", "Noise"}, Note: comparisonsNote}
	for _, gate := range e.Gates {
		for _, c := range gate.Comparisons {
			interval, confidence, noise := certainty(c)
			t.add(named(gate.Name), named(c.Variant), verdictCell(c.Verdict), figure(signedPercent(c.ChangePartsPerMillion)), figure(interval),
				figure(confidence), figure(probability(c.WorseProbabilityPartsPerMillion)),
				figure(probability(c.WithinProbabilityPartsPerMillion)), figure(fmt.Sprintf("%d and %d", c.Runs, c.BaselineRuns)),
				figure(percentOf(c.TolerancePartsPerMillion)), figure(noise))
		}
	}
	return t
}

// certainty returns the interval of a comparison, its confidence and the noise, as text.
func certainty(c results.Comparison) (interval, confidence, noise string) {
	interval, noise = "too few runs", "not measured"
	if c.LowPartsPerMillion != nil && c.HighPartsPerMillion != nil {
		interval = signedPercent(*c.LowPartsPerMillion) + " to " + signedPercent(*c.HighPartsPerMillion)
		confidence = percentOf(c.ConfidencePartsPerMillion)
	}
	if c.NoisePartsPerMillion != nil {
		noise = percentOf(*c.NoisePartsPerMillion)
	}
	return interval, confidence, noise
}

func signedPercent(partsPerMillion int64) string {
	return fmt.Sprintf("%+.1f%%", float64(partsPerMillion)/1e4)
}

func percentOf(partsPerMillion int64) string {
	return fmt.Sprintf("%.4g%%", float64(partsPerMillion)/1e4)
}

func probability(partsPerMillion int64) string {
	return fmt.Sprintf("%.2g", float64(partsPerMillion)/1e6)
}
