package gate

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/stats"
)

type boundRule struct {
	of       reference
	min, max *v1alpha1.Bound
}

func compileBound(bound *v1alpha1.BoundGate, known scope) (rule, []string) {
	of, mistake := known.checkPath(string(bound.Metric))
	var mistakes []string
	if mistake != "" {
		mistakes = append(mistakes, "bound."+mistake)
	}
	switch {
	case bound.Min == nil && bound.Max == nil:
		mistakes = append(mistakes, "bound has neither min nor max: set at least one")
	case bound.Min != nil && bound.Max != nil && compareQuantities(bound.Min.Quantity, bound.Max.Quantity) > 0:
		mistakes = append(mistakes, fmt.Sprintf("bound.min %s is larger than bound.max %s, so nothing could pass: swap them",
			quantityText(bound.Min), quantityText(bound.Max)))
	}
	return boundRule{of, bound.Min.DeepCopy(), bound.Max.DeepCopy()}, mistakes
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
	values := make([]int64, 0, len(found))
	for _, one := range found {
		values = append(values, one.value)
	}
	slices.Sort(values)
	at := levelsAt(evidence.Share)
	outside := stats.MedianOutside(len(values), at.passing)
	text := figure(b.of, metric)
	if outside == 0 {
		return opinion{verdict: v1alpha1.VerdictInconclusive, reason: ReasonTooFewRuns, text: fmt.Sprintf(
			"%s: too few runs to know the median: use at least %d repetitions, or an expression, which does not ask how certain the median is",
			text, leastPairs(at.passing))}
	}
	low, high := values[outside-1], values[len(values)-outside]
	text += fmt.Sprintf(", the median lies between %d and %d with a confidence of %s", low, high,
		share(1-2*stats.Binomial(len(values), outside-1)-2*(level-at.passing)))
	verdict, reason, words := b.decide(*resource.NewQuantity(low, resource.DecimalSI), *resource.NewQuantity(high, resource.DecimalSI))
	return opinion{verdict: verdict, reason: reason, text: text + ": " + words}
}

// decide compares both ends of the interval of the median with the bounds.
func (b boundRule) decide(low, high resource.Quantity) (verdict v1alpha1.Verdict, reason, words string) {
	below := func(value resource.Quantity) bool {
		return b.min != nil && compareQuantities(value, b.min.Quantity) < 0
	}
	above := func(value resource.Quantity) bool {
		return b.max != nil && compareQuantities(value, b.max.Quantity) > 0
	}
	switch {
	case below(high):
		return v1alpha1.VerdictFailed, ReasonBelowMinimum, "below the minimum of " + quantityText(b.min)
	case above(low):
		return v1alpha1.VerdictFailed, ReasonAboveMaximum, "above the maximum of " + quantityText(b.max)
	case below(low):
		return v1alpha1.VerdictInconclusive, ReasonUnclear, fmt.Sprintf("it may be on either side of the minimum of %s: add repetitions",
			quantityText(b.min))
	case above(high):
		return v1alpha1.VerdictInconclusive, ReasonUnclear, fmt.Sprintf("it may be on either side of the maximum of %s: add repetitions",
			quantityText(b.max))
	case b.min != nil && b.max != nil:
		return v1alpha1.VerdictPassed, ReasonHolds, fmt.Sprintf("between %s and %s", quantityText(b.min), quantityText(b.max))
	case b.min != nil:
		return v1alpha1.VerdictPassed, ReasonHolds, "at least " + quantityText(b.min)
	default:
		return v1alpha1.VerdictPassed, ReasonHolds, "at most " + quantityText(b.max)
	}
}

// compareQuantities works on copies: comparing modifies a Quantity, and a Set is shared.
func compareQuantities(a, b resource.Quantity) int {
	a, b = a.DeepCopy(), b.DeepCopy()
	return a.Cmp(b)
}

// quantityText works on a copy: String caches in the Quantity.
func quantityText(bound *v1alpha1.Bound) string {
	quantity := bound.Quantity.DeepCopy()
	return quantity.String()
}
