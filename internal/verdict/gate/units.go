package gate

import (
	"fmt"
	"math/big"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/storagebench/storagebench/internal/results"
)

var comparisons = map[string]bool{operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
	operators.Equals: true, operators.NotEquals: true}

// checkUnits finds metrics that are compared with a number that is too small for their unit, and shares that are compared with a
// percentage: such an expression always holds, or never. The same numbers are refused in bounds.
func (f *findings) checkUnits(node ast.Expr) {
	call := node.AsCall()
	if !comparisons[call.FunctionName()] || len(call.Args()) != 2 {
		return
	}
	for i, side := range call.Args() {
		other := call.Args()[1-i]
		at, isMetric := f.nodes[side]
		if !isMetric || other.Kind() != ast.LiteralKind {
			continue
		}
		if number, is := numberIn(other); is {
			share := side.Kind() == ast.CallKind && side.AsCall().FunctionName() == shareFunction
			if text := wrongUnit(f.references[at].metric, number, share); text != "" {
				f.mistake(other.ID(), text)
			}
		}
	}
}

// wrongUnit says what to write instead of a number that a metric is compared with, if its unit was probably forgotten.
func wrongUnit(name string, number float64, share bool) string {
	value := new(big.Rat)
	if value.SetFloat64(number) == nil {
		return ""
	}
	if share {
		if number <= 1 {
			return ""
		}
		return fmt.Sprintf("a share is from 0 to 1: write %g for %g%%", number/100, number)
	}
	metric, known := results.LookupMetric(name)
	if !known || number == 1 && (metric.Unit == results.UnitBytes || metric.Unit == results.UnitBytesPerSecond) { // any at all
		return ""
	}
	own := measureOf(metric.Unit)
	probably, unit := own.forgotten(value)
	if probably == nil {
		return ""
	}
	in, _ := new(big.Rat).Mul(probably, new(big.Rat).SetInt64(own.units[unit])).Float64()
	meant, _ := probably.Float64()
	return fmt.Sprintf("%g is in %s: write %.1f for %g%s", number, metric.Unit, in, meant, unit)
}

func numberIn(literal ast.Expr) (float64, bool) {
	switch value := literal.AsLiteral().(type) {
	case types.Double:
		return float64(value), true
	case types.Int:
		return float64(value), true
	}
	return 0, false
}
