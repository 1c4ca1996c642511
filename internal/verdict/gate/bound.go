package gate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
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

func (b boundRule) judge(evidence *Evidence, variants []string) []opinion {
	opinions := make([]opinion, 0, len(variants))
	for _, variant := range variants {
		opinions = append(opinions, b.judgeVariant(evidence.measured(), variant))
	}
	return opinions
}

func (b boundRule) judgeVariant(measured measurements, variant string) opinion {
	metric, missing := measured.find(reference{variant, b.of.phase, b.of.metric})
	if missing != "" {
		return opinion{variant: variant, verdict: v1alpha1.VerdictInconclusive, reason: ReasonNoData, text: missing}
	}
	median := *resource.NewQuantity(metric.Median, resource.DecimalSI)
	text := figure(b.of, metric)
	switch {
	case b.min != nil && compareQuantities(median, b.min.Quantity) < 0:
		return opinion{variant: variant, verdict: v1alpha1.VerdictFailed, reason: ReasonBelowMinimum, text: text + ", below the minimum of " +
			quantityText(b.min)}
	case b.max != nil && compareQuantities(median, b.max.Quantity) > 0:
		return opinion{variant: variant, verdict: v1alpha1.VerdictFailed, reason: ReasonAboveMaximum, text: text + ", above the maximum of " +
			quantityText(b.max)}
	case b.min != nil && b.max != nil:
		text += fmt.Sprintf(", between %s and %s", quantityText(b.min), quantityText(b.max))
	case b.min != nil:
		text += ", at least " + quantityText(b.min)
	default:
		text += ", at most " + quantityText(b.max)
	}
	return opinion{variant: variant, verdict: v1alpha1.VerdictPassed, reason: ReasonHolds, text: text}
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
