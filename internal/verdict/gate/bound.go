package gate

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

type boundRule struct {
	of reference
	limits
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
	rule := boundRule{of, limits{least, most}}
	return rule, append(mistakes, rule.mistakes("bound", bound.Min == "" && bound.Max == "")...)
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
		return tooFewRuns(text, at)
	}
	low, high := lows[outside-1], highs[len(highs)-outside]
	text += fmt.Sprintf(", the median lies between %d and %d with a confidence of %s", low, high, confidence(len(found), outside, at))
	verdict, reason, words := b.between(low, high)
	plain := exact(found)
	slices.Sort(plain)
	_, ifExact, _ := b.between(plain[outside-1], plain[len(plain)-outside])
	if reason == ReasonUnclear && ifExact != ReasonUnclear {
		doubt := doubtAbout(of)
		reason, words = doubt.reason, doubt.String()
	}
	return opinion{verdict: verdict, reason: reason, text: text + ": " + words}
}

func (b boundRule) between(low, high int64) (verdict v1alpha1.Verdict, reason, words string) {
	return b.decide(new(big.Rat).SetInt64(low), new(big.Rat).SetInt64(high))
}

// exact returns the values of samples.
func exact(found []sample) []int64 {
	var plain []int64
	for _, one := range found {
		plain = append(plain, one.value)
	}
	return plain
}

// tooFewRuns is the opinion of a gate if there are too few runs to know the median.
func tooFewRuns(text string, at levels) opinion {
	return opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonTooFewRuns, text: fmt.Sprintf(
		"%s: too few runs to know the median: use at least %d repetitions, or an expression, which does not ask how certain the median is",
		text, leastPairs(at.passing))}
}

// confidence is that of the interval of a median between the values at position outside, counted from each end. The chance that other looks
// are wrong is subtracted.
func confidence(runs, outside int, at levels) string {
	return share(1 - 2*stats.Binomial(runs, outside-1) - 2*(level-at.passing))
}
