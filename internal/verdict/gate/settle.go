package gate

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/stats"
)

// maxComparisons is the limit of GateStatus.comparisons.
const maxComparisons = 16

// settle decides every opinion that is based on a comparison. The p-values of Failed are corrected together, because among many
// comparisons one looks bad by chance. Those of Passed need no correction: a gate passes only if each of its comparisons does.
func settle(all [][]opinion, at levels) {
	var open, paired, others []*opinion
	for _, opinions := range all {
		for i := range opinions {
			switch one := &opinions[i]; {
			case one.comparison == nil:
				continue
			case one.comparison.paired():
				paired = append(paired, one)
			default:
				others = append(others, one)
			}
			open = append(open, &opinions[i])
		}
	}
	// Pairs and others share the level in proportion to their numbers: only pairs of the same repetitions are tested together.
	err := errors.Join(joinPaired(paired, len(open), at), joinOthers(others, len(open), at))
	for _, one := range open {
		if err != nil {
			one.verdict, one.reason, one.text = v1alpha1.VerdictInvalid, ReasonEvaluationFailed, err.Error()
			continue
		}
		one.comparison.decide(one, len(open), at)
		one.comparison.explain(one)
	}
}

// joinPaired tests the comparisons of pairs jointly.
func joinPaired(paired []*opinion, family int, at levels) error {
	if len(paired) == 0 {
		return nil
	}
	members := make([]stats.Member, 0, len(paired))
	for _, one := range paired {
		members = append(members, one.comparison.member())
	}
	part := float64(len(paired)) / float64(family)
	joint, err := stats.Joint(members, at.family*part)
	for i, one := range paired {
		if err == nil {
			one.comparison.join(joint.P[i]/part, min(at.failing, joint.Level), min(at.failing, at.family*part))
		}
	}
	return err
}

// joinOthers corrects the p-values of unpaired comparisons by Holm's method.
func joinOthers(others []*opinion, family int, at levels) error {
	if len(others) == 0 {
		return nil
	}
	p := make([]float64, 0, len(others))
	for _, one := range others {
		p = append(p, one.comparison.pWorse)
	}
	adjusted, err := stats.Holm(p)
	part, rejected := float64(len(others))/float64(family), 0
	for i := range adjusted {
		if adjusted[i] /= part; adjusted[i] <= at.family {
			rejected++
		}
	}
	left := max(1, len(others)-rejected)
	for i, one := range others {
		if err == nil {
			one.comparison.join(adjusted[i], min(at.failing, at.family*part/float64(left)), at.best(family))
		}
	}
	return err
}

// join sets the results that the comparison gets from its family.
func (c *comparison) join(p, failing, atBest float64) {
	c.pFamily, c.failing, c.failingAtBest = min(1, p), failing, atBest
}

// decide sets the verdict of a comparison, given the number of comparisons and the levels.
func (c *comparison) decide(one *opinion, family int, at levels) {
	c.interval(at)
	text := c.words()
	switch {
	case c.pFamily <= at.family && c.pWorse <= at.failing:
		one.verdict, one.reason = v1alpha1.VerdictFailed, ReasonWorse
		one.text = fmt.Sprintf("%s: worse than %s, p = %s", text, c.limitWords(), probability(c.pFamily))
	case c.pWithin <= at.passing:
		one.verdict, one.reason = v1alpha1.VerdictPassed, ReasonHolds
		one.text = fmt.Sprintf("%s: within the tolerance of %s, p = %s", text, share(c.tolerance), probability(c.pWithin))
	case c.smallest > c.failingAtBest:
		one.verdict, one.reason = v1alpha1.VerdictInconclusive, ReasonTooFewRuns
		one.text = fmt.Sprintf("%s: too few runs to show that it is worse, whatever their values: %s", text, c.enough(family))
	default:
		one.verdict, one.reason = v1alpha1.VerdictInconclusive, ReasonUnclear
		one.text = fmt.Sprintf("%s: neither worse than %s (p = %s) nor within the tolerance of %s (p = %s): %s",
			text, c.limitWords(), probability(c.pFamily), share(c.tolerance), probability(c.pWithin), c.advice(at.passing))
	}
}

// interval sets the interval, which ends where the verdict changes: with a tolerance beyond its better end the metric would be Failed, and
// with one beyond its worse end Passed. If there are too few runs for the level of Failed, the better end is at the level of Passed, but
// never on the worse side of the limit, because the metric was not shown to be worse.
func (c *comparison) interval(at levels) {
	switch {
	case c.ofDays != nil: // a symmetric interval, at the level of Passed
		c.ofDays.passing = at.passing
		c.worse = c.ofDays.test.Shift(1 - 2*at.passing)
	case c.smallest <= c.failing:
		c.worse = c.ranked.Shift(c.failing, at.passing)
	default:
		c.worse = c.ranked.Shift(at.passing, at.passing)
		c.worse.Interval.Low = min(c.worse.Interval.Low, c.limit())
	}
	if c.ranked != nil {
		_, high := c.ranked.CountEnds(at.passing, at.passing)
		c.worse.Interval.High = max(c.worse.Interval.High, high)
	}
	c.worse.Interval.Confidence = max(0, c.worse.Interval.Confidence-at.elsewhere)
	c.shift = c.turn(c.worse)
}

// limitWords describes the limit beyond which the metric counts as worse.
func (c *comparison) limitWords() string {
	if c.limit() > c.accepted() {
		return fmt.Sprintf("the noise of %s with so many runs, which exceeds the tolerance of %s",
			share(math.Expm1(c.estimateNoise())), share(c.tolerance))
	}
	return "the tolerance of " + share(c.tolerance)
}

// enough says how many runs are needed for a decision, given the number of comparisons.
func (c *comparison) enough(family int) string {
	among := ""
	if family > 1 {
		among = fmt.Sprintf(" for %d comparisons", family)
	}
	if c.paired() {
		return fmt.Sprintf("use at least %d repetitions%s", leastPairs(c.failingAtBest), among)
	}
	n := 1
	for 1/ways(len(c.before), n) > c.failingAtBest {
		n++
	}
	return fmt.Sprintf("use at least %d repetitions%s, or compare with more than %s", n, among, spelling.Count(len(c.before), "run"))
}

// words describes the measurement, such as "scan.readBytesPerSecond is 10.4% lower than in variant old (from -11.0% to -9.8% with a
// confidence of 96.9%; 6 pairs of runs)".
func (c *comparison) words() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s is %s %s (", c.of, change(c.shift.Estimate), c.than)
	if interval := c.shift.Interval; interval.Known {
		fmt.Fprintf(&text, "from %s to %s with a confidence of %s; ", signed(interval.Low), signed(interval.High), share(interval.Confidence))
	}
	if c.ofDays != nil {
		text.WriteString(c.ofDays.words())
	} else if c.paired() {
		fmt.Fprintf(&text, "%s of runs", spelling.Count(len(c.now), "pair"))
	} else {
		fmt.Fprintf(&text, "%s, %d there", spelling.Count(len(c.now), "run"), len(c.before))
	}
	if far := c.far(); len(far) > 0 {
		fmt.Fprintf(&text, "; an outlying run in repetition %s, which has the lowest rank", strings.Join(far, ", "))
	}
	text.WriteString(")")
	return text.String()
}

// far returns the repetitions with an outlying run.
func (c *comparison) far() []string {
	var far []string
	for i, outlying := range c.outlying {
		if outlying {
			far = append(far, strconv.Itoa(int(c.repetitions[i])))
		}
	}
	return far
}

// figures returns the comparisons behind the opinions, the deciding ones first.
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
		figures.NoisePartsPerMillion = new(ceiling(math.Expm1(c.noise)))
	}
	return figures
}

// partsPerMillion rounds to whole parts per million. Values out of range become 1e18 or -1e18.
func partsPerMillion(value float64) int64 {
	if scaled := math.Round(value * 1e6); math.Abs(scaled) < 1e18 {
		return int64(scaled)
	}
	return int64(math.Copysign(1e18, value))
}

// ceiling rounds up, to never understate a probability or noise.
func ceiling(value float64) int64 { return partsPerMillion(math.Ceil(value*1e6) / 1e6) }
