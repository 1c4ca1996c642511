package gate

import (
	"fmt"
	"math"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/stats"
)

// maxComparisons is the limit of GateStatus.comparisons.
const maxComparisons = 16

// settle decides every opinion that is based on a comparison. The p-values of Failed are corrected together, because among many
// comparisons one looks bad by chance. Those of Passed need no correction: a gate passes only if each of its comparisons does.
// Repeated looks share the level.
func settle(all [][]opinion, looks int) {
	var open []*opinion
	for _, opinions := range all {
		for i := range opinions {
			if opinions[i].comparison != nil {
				open = append(open, &opinions[i])
			}
		}
	}
	if len(open) == 0 {
		return
	}
	worse := make([]float64, 0, len(open))
	for _, one := range open {
		worse = append(worse, one.comparison.pWorse)
	}
	adjusted, err := stats.Holm(worse)
	for i, one := range open {
		if err != nil {
			one.verdict, one.reason, one.text = v1alpha1.VerdictInvalid, ReasonEvaluationFailed, err.Error()
			continue
		}
		one.comparison.pFamily = adjusted[i]
		one.comparison.decide(one, len(open), levelAt(looks))
		one.comparison.explain(one)
	}
}

// levelAt is the level of each of so many looks.
func levelAt(looks int) float64 { return level / float64(max(1, looks)) }

// decide returns the verdict of a comparison, given the number of comparisons and the level.
func (c *comparison) decide(one *opinion, family int, level float64) {
	text := c.words()
	switch {
	case c.pFamily <= level && c.pWorse <= failingLevel:
		one.verdict, one.reason = v1alpha1.VerdictFailed, ReasonWorse
		one.text = fmt.Sprintf("%s: worse than %s, p = %s", text, c.limitWords(), probability(c.pFamily))
	case c.pWithin <= level:
		one.verdict, one.reason = v1alpha1.VerdictPassed, ReasonHolds
		one.text = fmt.Sprintf("%s: within the tolerance of %s, p = %s", text, share(c.tolerance), probability(c.pWithin))
	case c.smallest > mostEach(family, level):
		one.verdict, one.reason = v1alpha1.VerdictInconclusive, ReasonTooFewRuns
		one.text = fmt.Sprintf("%s: too few runs to show that it is worse, whatever their values: %s", text, c.enough(family, level))
	default:
		one.verdict, one.reason = v1alpha1.VerdictInconclusive, ReasonUnclear
		one.text = fmt.Sprintf("%s: neither worse than %s (p = %s) nor within the tolerance of %s (p = %s): "+
			"add repetitions, or increase the tolerance",
			text, c.limitWords(), probability(c.pFamily), share(c.tolerance), probability(c.pWithin))
	}
}

// Needs returns the number of comparisons of the gates, and the number of repetitions from which a comparison between variants can
// be Failed.
func (s *Set) Needs(looks int) (comparisons, repetitions int) {
	pairs := false
	for _, one := range s.gates {
		rule, is := one.rule.(compareRule)
		if !is || rule.to == toHistory {
			continue
		}
		for _, variant := range s.variants {
			if name, _, _ := strings.Cut(variant, ","); rule.to != toVariant || name != rule.rival {
				comparisons++
				pairs = pairs || rule.to == toVariant
			}
		}
	}
	if !pairs {
		return comparisons, 0
	}
	return comparisons, leastPairs(comparisons, levelAt(looks))
}

// leastPairs is how many pairs a decision needs, given the number of comparisons.
func leastPairs(family int, level float64) int {
	return int(math.Ceil(-math.Log2(mostEach(family, level)) - 1e-9))
}

// mostEach is the largest p of a Failed, given the number of comparisons.
func mostEach(family int, level float64) float64 { return min(failingLevel, level/float64(family)) }

// limitWords describe the limit from which the metric counts as worse.
func (c *comparison) limitWords() string {
	if c.failing() > c.accepted() {
		return fmt.Sprintf("the noise of %s with so many runs, which is more than the tolerance of %s",
			share(math.Expm1(c.estimateNoise())), share(c.tolerance))
	}
	return "the tolerance of " + share(c.tolerance)
}

// enough says how many runs a decision needs, given the number of comparisons.
func (c *comparison) enough(family int, level float64) string {
	among := ""
	if family > 1 {
		among = fmt.Sprintf(" for %d comparisons", family)
	}
	if c.paired {
		return fmt.Sprintf("use at least %d repetitions%s", leastPairs(family, level), among)
	}
	ways, n := 1.0, 0
	for 1/ways > mostEach(family, level) { // so many ways are there to part n runs from the earlier ones
		n++
		ways = ways * float64(len(c.before)+n) / float64(n)
	}
	return fmt.Sprintf("use at least %d repetitions%s, or compare with more than %s", n, among, number(len(c.before), "run"))
}

// words describe the measurement, such as "scan.readBytesPerSecond is 10.4% lower than in variant old (from -11.0% to -9.8% with a
// confidence of 96.9%; 6 pairs of runs)".
func (c *comparison) words() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s is %s %s (", c.of, change(c.shift.Estimate), c.than)
	if interval := c.shift.Interval; interval.Known {
		fmt.Fprintf(&text, "from %s to %s with a confidence of %s; ", signed(interval.Low), signed(interval.High), share(interval.Confidence))
	}
	if c.ofDays != nil {
		fmt.Fprintf(&text, "%s)", c.ofDays.words())
	} else if c.paired {
		fmt.Fprintf(&text, "%s of runs)", number(len(c.now), "pair"))
	} else {
		fmt.Fprintf(&text, "%s, %d there)", number(len(c.now), "run"), len(c.before))
	}
	return text.String()
}

// figures are the comparisons behind the opinions, deciding ones first.
func figures(opinions []opinion) []v1alpha1.GateComparison {
	var list []v1alpha1.GateComparison
	for _, one := range opinions {
		if c := one.comparison; c != nil && len(list) < maxComparisons {
			list = append(list, c.figures(one))
		}
	}
	return list
}

func (c *comparison) figures(one opinion) v1alpha1.GateComparison {
	figures := v1alpha1.GateComparison{
		Variant: one.variant, Verdict: one.verdict, Runs: int32(len(c.now)), BaselineRuns: int32(len(c.before)),
		ChangePartsPerMillion: partsPerMillion(math.Expm1(c.shift.Estimate)), TolerancePartsPerMillion: partsPerMillion(c.tolerance),
		WorseProbabilityPartsPerMillion: ceiling(c.pFamily), WithinProbabilityPartsPerMillion: ceiling(c.pWithin),
	}
	if c.shift.Interval.Known {
		low, high := partsPerMillion(math.Expm1(c.shift.Interval.Low)), partsPerMillion(math.Expm1(c.shift.Interval.High))
		figures.LowPartsPerMillion, figures.HighPartsPerMillion = &low, &high
		figures.ConfidencePartsPerMillion = partsPerMillion(c.shift.Interval.Confidence)
	}
	if c.noiseKnown {
		noise := ceiling(math.Expm1(c.noise))
		figures.NoisePartsPerMillion = &noise
	}
	return figures
}

// partsPerMillion rounds. Values out of range become the largest number.
func partsPerMillion(value float64) int64 {
	if scaled := math.Round(value * 1e6); math.Abs(scaled) < 1e18 {
		return int64(scaled)
	}
	return int64(math.Copysign(1e18, value))
}

// ceiling rounds up, to never understate a probability or noise.
func ceiling(value float64) int64 { return partsPerMillion(math.Ceil(value*1e6) / 1e6) }
