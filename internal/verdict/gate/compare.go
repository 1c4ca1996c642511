package gate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// defaultTolerance is the default of the API.
const defaultTolerance = "5%"

// The values of CompareGate.To.
const (
	toVariant  = "Variant"
	toBaseline = "Baseline"
	toHistory  = "History"
)

// AsksHistory reports whether a gate compares with earlier experiments.
func AsksHistory(gate v1alpha1.Gate) bool { return gate.Compare != nil && gate.Compare.To == toHistory }

// compareRule requires that a metric is not worse than the reference by more than a tolerance.
type compareRule struct {
	of     reference
	metric results.Metric
	to     string
	// rival is the variant to compare with, if to is Variant.
	rival rival
	// tolerance is the accepted change for the worse.
	tolerance float64
	// since is the time from which on a history counts. Zero means all of it.
	since time.Time
	// acceptOneDay allows a decision against a baseline of one experiment.
	acceptOneDay bool
	// acceptAgeing allows a decision although runs have used a pool one after another.
	acceptAgeing bool
}

func compileCompare(compare *v1alpha1.CompareGate, known scope) (rule, []string) {
	var mistakes []string
	of, mistake := known.checkPath(string(compare.Metric))
	if mistake != "" {
		mistakes = append(mistakes, "compare."+mistake)
	}
	rule := compareRule{of: of, to: compare.To, acceptOneDay: compare.AcceptSingleDay,
		acceptAgeing: compare.AcceptAgeing}
	if compare.Since != nil {
		rule.since = compare.Since.Time
	}
	rule.metric, _ = results.LookupMetric(of.metric)
	if rule.metric.Better == results.Neither {
		mistakes = append(mistakes,
			fmt.Sprintf("compare.metric %q has no better direction: use a bound or an expression",
				compare.Metric))
	}
	if rule.metric.PowerOfTwo() {
		mistakes = append(mistakes, fmt.Sprintf("compare.metric %q is only known down to a power of two: compare freeSegments, or use a bound, "+
			"a ratio or an expression", compare.Metric))
	}
	if known := rule.metric.Name != ""; known && rule.to == toHistory && !results.IsPrimary(rule.metric.Name) {
		mistakes = append(mistakes,
			fmt.Sprintf("compare.metric %q: the history has only primary metrics: use one of those, or compare with a baseline",
				compare.Metric))
	}
	tolerance, err := parseTolerance(compare.Tolerance)
	if err == nil && rule.metric.Binned() && tolerance < leastBinned {
		err = fmt.Errorf("latencies are counted in bins that are up to 1.6%% wide, so %s is too small for a percentile: write at least 3%%, or "+
			"compare a mean", cmp.Or(compare.Tolerance, defaultTolerance))
	}
	if err == nil && tolerance >= 1 {
		err = fmt.Errorf("a tolerance of %s accepts everything: use a smaller one, such as %s", compare.Tolerance, defaultTolerance)
	}
	if err != nil {
		mistakes = append(mistakes, "compare.tolerance: "+err.Error())
	}
	rule.tolerance = tolerance
	if rule.to == toVariant {
		var wrong []string
		rule.rival, wrong = known.rivalIn("compare.variant", compare.Variant, of.phase, of.phase)
		mistakes = append(mistakes, wrong...)
	}
	return rule, mistakes
}

func parseTolerance(share v1alpha1.Share) (float64, error) {
	percent, err := cmp.Or(share, defaultTolerance).Percent()
	return percent / 100, err
}

func (c compareRule) uses() []reference { return []reference{c.of} }

func (c compareRule) judge(evidence *Evidence, variants []string) []opinion {
	var opinions []opinion
	for _, variant := range variants {
		rival := ""
		if c.to == toVariant {
			if rival = c.rival.of(variant); rival == "" {
				continue
			}
		}
		opinion := c.judgeVariant(evidence, variant, rival)
		opinion.variant = variant
		if aged := c.ageing(evidence, variant); opinion.comparison != nil {
			opinion.comparison.ageing = aged
		} else {
			opinion.text += aged
		}
		opinions = append(opinions, opinion)
	}
	return opinions
}

func (c compareRule) judgeVariant(evidence *Evidence, variant, rival string) opinion {
	of := reference{variant, c.of.phase, c.of.metric}
	if refused := evidence.Noise.Refused; refused != nil {
		return refused.opinion()
	}
	now, unknown := c.independent(evidence, of)
	if unknown != nil {
		return *unknown
	}
	var one *comparison
	var then span
	switch c.to {
	case toHistory:
		if one, unknown = c.history(evidence, variant); unknown != nil {
			return *unknown
		}
	case toVariant:
		there := reference{rival, c.of.phase, c.of.metric}
		before, unknown := c.independent(evidence, there)
		if unknown != nil {
			return *unknown
		}
		then = evidence.span(there, before)
		if one = compareSamples(before, now, evidence.Order); len(one.now) == 0 {
			return opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonNoData, text: fmt.Sprintf(
				"no data: %s was never measured in the same repetition in both variants: see their BenchmarkRuns for the reason", c.of)}
		}
		one.than = "in variant " + plain(rival)
	default:
		if one, unknown = c.baseline(evidence, of, now); unknown != nil {
			return *unknown
		}
		then = evidence.Baseline.span(of)
	}
	one.of, one.better, one.tolerance = c.of, c.metric.Better, c.tolerance
	if evidence.Noise.Floor != nil {
		one.noise, one.noiseKnown = evidence.Noise.Floor(c.of.phase, c.of.metric)
	}
	if err := one.test(); err != nil {
		return opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonNoRatio, text: fmt.Sprintf(
			"%s cannot be compared as a share: %v: use a bound or an expression", c.of, err)}
	}
	if few := c.tooFew(one, then, evidence.span(of, now)); few != nil {
		return *few
	}
	if coarse := c.coarse(one); coarse != nil {
		return *coarse
	}
	return opinion{comparison: one}
}

// tooFew refuses to compare shares with too few operations, unless the answer is the same for all possible values.
func (c compareRule) tooFew(one *comparison, then, now span) *opinion {
	if !then.few && !now.few {
		return nil
	}
	least, most := math.Log(now.low/then.high), math.Log(now.high/then.low)
	if one.better == results.Higher {
		least, most = -most, -least
	}
	if least > one.limit() || most < one.accepted() {
		return nil
	}
	return &opinion{verdict: v1alpha1.VerdictInconclusive, reason: fewOperations.reason, text: fmt.Sprintf(
		"%s may be from %.0f to %.0f ppm %s, and from %.0f to %.0f now: %s", c.of, then.low, then.high, one.than, now.low, now.high,
		fewOperations)}
}

// leastBinned is the smallest tolerance for a percentile that is read from a bin: the percentiles of two runs may each be wrong by half of
// it.
const leastBinned = 0.03

// finest is the least tolerance for which rounded numbers are checked. A smaller one counts as this one: even with zero tolerance, 1000
// cannot be distinguished from 1000.4.
const finest = 0.01

// coarse refuses to compare small numbers that are rounded, such as rates of a few operations a second: rounding alone would decide, and no
// scatter would show it.
func (c compareRule) coarse(one *comparison) *opinion {
	least := slices.Min(slices.Concat(one.before, one.now))
	if !c.of.tooCoarse(least, c.tolerance) {
		return nil
	}
	unit, remedy := "", "use a bound"
	if c.metric.Unit == results.UnitPerSecond {
		unit, remedy = " a second", "compare the bytes a second"
	}
	return &opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonTooCoarse, text: fmt.Sprintf(
		"%s is as low as %.0f%s: one step of it is %s, too much for a tolerance of %s: %s, or a larger tolerance",
		c.of, least, unit, share(float64(c.of.step())/least), share(c.tolerance), remedy)}
}

// compareSamples pairs the runs of interleaved variants. In other orders, a drift between them would appear as a difference in each
// pair.
func compareSamples(before, now []sample, order v1alpha1.RunOrder) *comparison {
	if order == v1alpha1.OrderSequential {
		return &comparison{before: values(before), now: values(now)}
	}
	a, b, repetitions := pairs(before, now)
	return &comparison{before: a, now: b, repetitions: repetitions}
}

// independent returns the samples of a metric, or an opinion if there are none or they depend on each other.
func (c compareRule) independent(evidence *Evidence, of reference) ([]sample, *opinion) {
	_, missing := evidence.measured().find(of)
	found, kept := evidence.samples(of)
	switch {
	case missing != "" || len(found) == 0:
		return nil, &opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonNoData, text: cmp.Or(missing, noRun(of))}
	case kept != "" && !c.acceptAgeing:
		remedy := "set target.zfs.reset to Pool to compare"
		if c.to != toVariant {
			remedy += ", or acceptAgeing in the gate to ask how the pool ages"
		}
		return nil, notIndependent(kept, of.variant, remedy)
	}
	return found, nil
}

func notIndependent(kept, variant, remedy string) *opinion {
	return &opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonNotIndependent, text: fmt.Sprintf(
		"run %s of variant %s reused the pool of another run, so it is not an independent repetition: %s", plain(kept), plain(variant), remedy)}
}

// ageing describes the condition of the pool, if the gate accepts ageing.
func (c compareRule) ageing(evidence *Evidence, variant string) string {
	age := evidence.age(variant)
	if !c.acceptAgeing || age == nil {
		return ""
	}
	return "; " + age.Words()
}

func noRun(of reference) string {
	return fmt.Sprintf("no data: no valid run of variant %s has measured %s", plain(of.variant), plain(of.phase)+"."+plain(of.metric))
}

// earlier returns the values of the experiments of the baseline, or an opinion if the baseline is not comparable.
func (c compareRule) earlier(baseline Earlier, of reference) ([][]float64, *opinion) {
	refused := func(why Refusal) ([][]float64, *opinion) {
		return nil, new(why.opinion())
	}
	if baseline.Refused != nil {
		return refused(*baseline.Refused)
	}
	var stored Stored
	if baseline.Values != nil {
		stored = baseline.Values(of.variant, of.phase, of.metric)
	}
	switch {
	case len(stored.Values) == 0:
		return refused(Refusal{Reason: ReasonNoData, Message: fmt.Sprintf(
			"no data: the baseline has no %s of variant %s: accept a newer one with 'kubectl storagebench baseline accept'", c.of,
			plain(of.variant))})
	case stored.Unlike != "":
		return refused(Refusal{ReasonBaselineUnlike, stored.Unlike, true})
	case stored.Unit != c.metric.Unit:
		return refused(Refusal{ReasonBaselineInvalid, fmt.Sprintf(
			"the baseline has %s in %s, but it is measured in %s: accept a newer one with 'kubectl storagebench baseline accept'", c.of,
			plain(stored.Unit), c.metric.Unit), true})
	}
	converted := make([][]float64, len(stored.Values))
	for i, values := range stored.Values {
		for _, value := range values {
			converted[i] = append(converted[i], float64(value))
		}
	}
	return converted, nil
}
