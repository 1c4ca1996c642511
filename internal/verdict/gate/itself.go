package gate

import (
	"context"
	"math"
	"slices"

	"github.com/google/cel-go/common/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// NeverForItself returns for each gate a variant for which its expression is false whatever is measured, because the expression compares
// each variant that it judges with this one, and is false for equal values. Empty if there is none.
func (s *Set) NeverForItself() []string {
	// A tenant's expressions may be costly, and the manager asks before each experiment.
	ctx, cancel := context.WithTimeout(context.Background(), maxTime/5)
	defer cancel()
	all := make([]string, len(s.gates))
	for i, gate := range s.gates {
		expression, is := gate.rule.(expressionRule)
		if !is || !expression.perVariant {
			continue
		}
		for _, variant := range gate.variants {
			if expression.comparesWith(variant) && expression.neverHoldsFor(ctx, variant) {
				all[i] = variant
			}
		}
	}
	return all
}

// comparesWith reports whether the expression uses each metric of the variant being judged also of a given variant, and nothing else.
func (e expressionRule) comparesWith(variant string) bool {
	return !slices.ContainsFunc(e.references, func(ref reference) bool {
		return ref.of(variant).variant != variant || !slices.Contains(e.references, reference{variant, ref.phase, ref.metric})
	})
}

// neverHoldsFor reports whether the expression is false for a variant at many values of its measurements. It is undecided, and so returns
// false, if an evaluation fails.
func (e expressionRule) neverHoldsFor(ctx context.Context, variant string) bool {
	metrics := map[reference]int{}
	for _, ref := range e.references {
		if own := ref.of(variant); metrics[own] == 0 {
			metrics[own] = len(metrics) + 1
		}
	}
	nothing := map[string]any{} // such as no errors
	for i, ref := range e.references {
		nothing[variableName(i)] = types.Double(1)
		if metric, _ := results.LookupMetric(ref.metric); metric.Unit == results.UnitCount {
			nothing[variableName(i)] = types.Double(0)
		}
	}
	if e.evaluate(ctx, nothing, "").verdict == v1alpha1.VerdictPassed { // a division by zero decides nothing
		return false
	}
	for exponent := range 63 {
		for _, slope := range []float64{-1, 0, 1} { // different metrics have different values
			variables := map[string]any{}
			for i, ref := range e.references {
				at := float64(exponent) + slope*float64(metrics[ref.of(variant)]-1)
				variables[variableName(i)] = types.Double(asPart(ref, int64(math.Exp2(min(max(at, 0), 62)))))
			}
			if e.evaluate(ctx, variables, "").verdict != v1alpha1.VerdictFailed {
				return false
			}
		}
	}
	return true
}
