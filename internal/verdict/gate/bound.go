package gate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

type boundRule struct {
	of       reference
	min, max *limit
}

func compileBound(bound *v1alpha1.BoundGate, known scope) (rule, []string) {
	of, mistake := known.checkPath(string(bound.Metric))
	if mistake != "" {
		return nil, []string{"bound." + mistake}
	}
	metric, _ := results.LookupMetric(of.metric)
	least, wrongMin := parseLimit(bound.Min, metric)
	most, wrongMax := parseLimit(bound.Max, metric)
	var mistakes []string
	if wrongMin != nil {
		mistakes = append(mistakes, "bound.min "+wrongMin.Error())
	}
	if wrongMax != nil {
		mistakes = append(mistakes, "bound.max "+wrongMax.Error())
	}
	switch {
	case bound.Min == "" && bound.Max == "":
		mistakes = append(mistakes, "bound has neither min nor max: set at least one")
	case least != nil && most != nil && least.value.Cmp(most.value) > 0:
		mistakes = append(mistakes, fmt.Sprintf("bound.min %s is larger than bound.max %s, so nothing could pass: swap them",
			least.text, most.text))
	}
	return boundRule{of, least, most}, mistakes
}

func (b boundRule) uses() []reference { return []reference{b.of} }

func (b boundRule) judge(evidence *Evidence, variants []string) []opinion {
	opinions := make([]opinion, 0, len(variants))
	for _, variant := range variants {
		one := b.judgeVariant(evidence, reference{variant, b.of.phase, b.of.metric})
		one.variant = variant
		opinions = append(opinions, one)
	}
	return opinions
}

func (b boundRule) judgeVariant(evidence *Evidence, of reference) opinion {
	metric, missing := evidence.measured().find(of)
	found, _ := evidence.samples(of)
	if missing != "" || len(found) == 0 {
		return opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonNoData, text: cmp.Or(missing, noRun(of))}
	}
	lows, highs := evidence.ends(of, found)
	slices.Sort(lows)
	slices.Sort(highs)
	at := levelsAt(evidence.Share)
	outside := stats.MedianOutside(len(found), at.passing)
	text := figure(b.of, metric)
	if outside == 0 {
		return opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonTooFewRuns, text: fmt.Sprintf(
			"%s: too few runs to know the median: use at least %d repetitions, or an expression, which does not ask how certain the median is",
			text, leastPairs(at.passing))}
	}
	low, high := lows[outside-1], highs[len(highs)-outside]
	text += fmt.Sprintf(", the median lies between %d and %d with a confidence of %s", low, high,
		share(1-2*stats.Binomial(len(found), outside-1)-2*(level-at.passing)))
	verdict, reason, words := b.decide(low, high)
	if few := doubted(found, low, high, outside); few && reason == ReasonUnclear {
		return opinion{verdict: verdict, reason: ReasonTooFewOperations, text: fmt.Sprintf("%s: %s: %s", text, fewBeyond, moreOperations)}
	}
	return opinion{verdict: verdict, reason: reason, text: text + ": " + words}
}

// doubted says that the interval would be narrower if more operations had told.
func doubted(found []sample, low, high int64, outside int) bool {
	var plain []int64
	for _, one := range found {
		plain = append(plain, one.value)
	}
	slices.Sort(plain)
	return low < plain[outside-1] || high > plain[len(plain)-outside]
}

// decide compares both ends of the interval of the median with the bounds.
func (b boundRule) decide(low, high int64) (verdict v1alpha1.Verdict, reason, words string) {
	switch {
	case b.min.below(high):
		return v1alpha1.VerdictFailed, ReasonBelowMinimum, "below the minimum of " + b.min.text
	case b.max.above(low):
		return v1alpha1.VerdictFailed, ReasonAboveMaximum, "above the maximum of " + b.max.text
	case b.min.below(low):
		return v1alpha1.VerdictInconclusive, ReasonUnclear, fmt.Sprintf("it may be on either side of the minimum of %s: add repetitions",
			b.min.text)
	case b.max.above(high):
		return v1alpha1.VerdictInconclusive, ReasonUnclear, fmt.Sprintf("it may be on either side of the maximum of %s: add repetitions",
			b.max.text)
	case b.min != nil && b.max != nil:
		return v1alpha1.VerdictPassed, ReasonHolds, fmt.Sprintf("between %s and %s", b.min.text, b.max.text)
	case b.min != nil:
		return v1alpha1.VerdictPassed, ReasonHolds, "at least " + b.min.text
	default:
		return v1alpha1.VerdictPassed, ReasonHolds, "at most " + b.max.text
	}
}
