package gate

import (
	"fmt"
	"math"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// faults are the errors of one evaluation. CEL lets && and || ignore an error; here it is recorded.
type faults struct {
	id    int64
	first string
}

func (f *faults) add(id int64, text string) {
	if f.first == "" {
		f.id, f.first = id, text
	}
}

// guardCalls wraps every call. Measurements and literals are finite, so only calls can produce an infinity or NaN: CEL would
// compare them, and x / 0.0 >= 0.8 would pass.
func guardCalls(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, ok := step.(interpreter.InterpretableCall); ok {
		return &guardedCall{call}, nil
	}
	return step, nil
}

type guardedCall struct {
	interpreter.InterpretableCall
}

// Exec implements interpreter.InterpretableV2.
func (g *guardedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return g.check(g.InterpretableCall.Exec(frame), frame)
}

// Eval implements interpreter.Interpretable.
func (g *guardedCall) Eval(vars interpreter.Activation) ref.Val {
	return g.check(g.InterpretableCall.Eval(vars), vars)
}

func (g *guardedCall) check(value ref.Val, vars interpreter.Activation) ref.Val {
	text := ""
	switch v := value.(type) {
	case types.Double:
		if math.IsInf(float64(v), 0) || math.IsNaN(float64(v)) {
			text = fmt.Sprintf("%s gives %v, which is not a number to judge by", callName(g.Function()), float64(v))
		}
	case *types.Err:
		text = cut(printable(v.Error()), maxIssue)
	}
	if text == "" {
		return value
	}
	if g.Function() == operators.Divide || g.Function() == operators.Modulo {
		text += ": add a check before the division, such as phase('a').x > 0.0 && phase('b').x / phase('a').x >= 0.8"
	}
	if found, ok := vars.ResolveName(faultsName); ok {
		if all, ok := found.(*faults); ok {
			all.add(g.ID(), text)
		}
	}
	return types.NewErrWithNodeID(g.ID(), "%s", text)
}

func callName(function string) string {
	switch function {
	case operators.Divide:
		return "the division"
	case operators.Multiply:
		return "the multiplication"
	case operators.Add:
		return "the sum"
	case operators.Subtract:
		return "the difference"
	default:
		return "a function"
	}
}
