package gate

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/ext"
)

const (
	// maxExpression is the limit of the API, in characters.
	maxExpression = 1024
	// maxDepth, maxNodes and maxRecovery limit the parsing and checking of a hostile expression.
	maxDepth    = 40
	maxNodes    = 2000
	maxRecovery = 4
)

// The functions through which an expression reaches the metrics.
const (
	phaseFunction    = "phase"
	variantFunction  = "variant"
	workloadFunction = "workload"
	shareFunction    = "share"
	modeFunction     = "mode"
)

var variantType = cel.OpaqueType("variant")

// language is CEL without the parts that gates do not need: no dyn, no text, no times, no patterns.
var language = sync.OnceValues(func() (*cel.Env, error) {
	medians := cel.MapType(cel.StringType, cel.DoubleType)
	return cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(env.NewLibrarySubset().AddIncludedFunctions(standardFunctions()...))),
		ext.Math(),
		cel.CrossTypeNumericComparisons(true),
		cel.ASTValidators(cel.ValidateHomogeneousAggregateLiterals()),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(maxDepth),
		cel.ParserErrorRecoveryLimit(maxRecovery),
		cel.ExpressionNodeLimit(maxNodes),
		equality(operators.Equals),
		equality(operators.NotEquals),
		// Declared without implementation: references are replaced before a program is built.
		cel.Function(phaseFunction,
			cel.Overload("gate_phase", []*cel.Type{cel.StringType}, medians),
			cel.MemberOverload("gate_variant_phase", []*cel.Type{variantType, cel.StringType}, medians)),
		cel.Function(workloadFunction,
			cel.MemberOverload("gate_phase_workload", []*cel.Type{medians, cel.StringType}, medians)),
		cel.Function(shareFunction, cel.MemberOverload("gate_phase_share",
			[]*cel.Type{medians, cel.StringType, cel.StringType, cel.StringType}, cel.DoubleType)),
		cel.Function(modeFunction, cel.MemberOverload("gate_phase_mode", []*cel.Type{medians, cel.StringType}, cel.DoubleType)),
		cel.Function(variantFunction,
			cel.Overload("gate_variant", []*cel.Type{cel.StringType}, variantType)),
	)
})

// equality redeclares == or !=; the interpreter has the implementation. CEL orders numbers across types, but would reject ioErrors
// == 0. It would also compare nested lists, which can take unbounded time and cannot be interrupted.
func equality(operator string) cel.EnvOption {
	numbers := []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType}
	pairs := [][]*cel.Type{{cel.BoolType, cel.BoolType}, {cel.StringType, cel.StringType}}
	for _, left := range numbers {
		for _, right := range numbers {
			pairs = append(pairs, []*cel.Type{left, right})
		}
	}
	var declared []cel.FunctionOpt
	for _, pair := range pairs {
		declared = append(declared, cel.Overload(fmt.Sprintf("gate_%s_%s_%s", operator, pair[0], pair[1]), pair, cel.BoolType))
	}
	return cel.Function(operator, declared...)
}

func standardFunctions() []*env.Function {
	var functions []*env.Function
	for _, name := range []string{
		operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
		operators.Index, operators.In, overloads.Size,
	} {
		functions = append(functions, env.NewFunction(name))
	}
	return append(functions,
		// Only the macros map and filter may join lists, see checkCall. Texts cannot be joined at all.
		include(operators.Add, overloads.AddDouble, overloads.AddInt64, overloads.AddUint64, overloads.AddList),
		include(overloads.TypeConvertDouble, overloads.IntToDouble, overloads.UintToDouble, overloads.DoubleToDouble))
}

func include(name string, ids ...string) *env.Function {
	function := env.NewFunction(name)
	for _, id := range ids {
		function.Overloads = append(function.Overloads, &env.Overload{ID: id})
	}
	return function
}
