package report

import (
	"fmt"

	"github.com/storagebench/storagebench/internal/results"
)

// comparisonsSection has the evidence of compare gates: a row for each variant.
func comparisonsSection(e results.Experiment) *section {
	s := newSection("Comparisons", comparisonsBytes)
	for _, gate := range e.Gates {
		for _, c := range gate.Comparisons {
			if s.text.Len() == 0 {
				s.uncounted("p of \"worse\" is small if the metric is worse by more than the tolerance and the noise; it is corrected for all " +
					"comparisons. p of\n" +
					"\"within\" is small if it is worse by less than the tolerance.\n\n" +
					"| Gate | Variant | Verdict | Change | Interval | Confidence | p of worse | p of within | Runs | Tolerance | Noise " +
					"|\n|---|---|---|---|---|---|---|---|---|---|---|")
			}
			interval, confidence, noise := certainty(c)
			s.row("| %s | %s | **%s** | %s | %s | %s | %s | %s | %d and %d | %s | %s |", name(gate.Name), name(c.Variant), name(c.Verdict),
				signedPercent(c.ChangePartsPerMillion), interval, confidence, probability(c.WorseProbabilityPartsPerMillion),
				probability(c.WithinProbabilityPartsPerMillion), c.Runs, c.BaselineRuns, percentOf(c.TolerancePartsPerMillion), noise)
		}
	}
	return s
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
