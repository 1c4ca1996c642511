package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/storagebench/storagebench/internal/results"
)

const (
	metricHint    = "write phase('NAME').METRIC, such as phase('aged-scan').readBytesPerSecond"
	statisticHint = "write phase('redo').share('writeLatency', '>', '10ms') or phase('redo').mode('diskWriteRequestSize')"
)

// findings are the result of a walk over a checked expression.
type findings struct {
	tree       *ast.AST
	known      scope
	references []reference
	mistakes   []string
	// nodes maps the selections phase('NAME').METRIC, the shares and the modes to the indices of their references.
	nodes map[ast.Expr]int
	// used are the calls of phase and variant that are part of a complete reference.
	used map[int64]bool
}

// walk collects all references and checks every one of them, parents before children.
func walk(tree *ast.AST, known scope) *findings {
	found := &findings{tree: tree, known: known, nodes: map[ast.Expr]int{}, used: map[int64]bool{}}
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(node ast.Expr) {
		switch node.Kind() {
		case ast.SelectKind:
			found.checkSelect(node)
		case ast.CallKind:
			found.checkCall(node)
		case ast.LiteralKind:
			if v, ok := node.AsLiteral().(types.Double); ok && (math.IsInf(float64(v), 0) || math.IsNaN(float64(v))) {
				found.mistake(node.ID(), "this number is too large: write one below 1e308")
			}
		default: // says nothing about phases
		}
	}))
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(node ast.Expr) {
		if node.Kind() == ast.CallKind {
			found.checkUnits(node)
		}
	}))
	return found
}

func (f *findings) mistake(id int64, text string) {
	f.mistakes = append(f.mistakes, fmt.Sprintf("expression %s: %s", f.position(id), text))
}

// position returns LINE:COLUMN, both counted from 1.
func (f *findings) position(id int64) string {
	at := f.tree.SourceInfo().GetStartLocation(id)
	return fmt.Sprintf("%d:%d", max(1, at.Line()), max(0, at.Column())+1)
}

// checkSelect handles phase('NAME').METRIC and variant('NAME').phase('NAME').METRIC as a whole, both also with workload('NAME') before the
// metric.
func (f *findings) checkSelect(node ast.Expr) {
	selection := node.AsSelect()
	if !readsPhase(selection.Operand()) {
		return
	}
	f.used[selection.Operand().ID()] = true
	if selection.IsTestOnly() {
		f.mistake(node.ID(), "has() is useless here, because a missing metric always makes the gate Inconclusive: remove it")
		return
	}
	f.refer(node, selection.Operand(), selection.FieldName(), f.known.checkMetric)
}

// readsPhase reports whether a call is phase('NAME') or phase('NAME').workload('NAME').
func readsPhase(operand ast.Expr) bool {
	calls := func(name string) bool {
		return operand.Kind() == ast.CallKind && operand.AsCall().FunctionName() == name
	}
	if calls(workloadFunction) {
		operand = operand.AsCall().Target()
	}
	return calls(phaseFunction)
}

// checkStatistic handles phase('NAME').share('DISTRIBUTION', '>', 'BOUND') and phase('NAME').mode('DISTRIBUTION') as a whole.
func (f *findings) checkStatistic(node ast.Expr) {
	call := node.AsCall()
	var texts []string
	for _, argument := range call.Args() {
		if text, literal := literalText(argument); literal {
			texts = append(texts, text)
		}
	}
	phase := call.Target()
	if !readsPhase(phase) || len(texts) != len(call.Args()) {
		f.mistake(node.ID(), fmt.Sprintf("%s() needs a phase before it and texts in quotes, so that they can be checked before anything runs: %s",
			call.FunctionName(), statisticHint))
		return
	}
	f.used[phase.ID()] = true
	statistic := results.StatisticMode
	if call.FunctionName() == shareFunction {
		of := map[string]string{">": results.StatisticOver, "<": results.StatisticBelow}[texts[1]]
		if of == "" {
			f.mistake(call.Args()[1].ID(), fmt.Sprintf("a share is of what is above or below a bound, %q is neither: write '>' or '<'", texts[1]))
			return
		}
		statistic = of + strings.Replace(texts[2], "% of mean", results.OfMean, 1)
	}
	f.refer(node, phase, texts[0]+"."+statistic, func(_, name string) string {
		if _, err := results.ParseDerived(name); err != nil {
			return cut(printable(err.Error()), maxIssue)
		}
		return ""
	})
}

// refer records that a node is a metric of a phase, or of one of its workloads.
func (f *findings) refer(node, operand ast.Expr, metric string, check func(phase, metric string) string) {
	of := ast.Expr(nil)
	if operand.AsCall().FunctionName() == workloadFunction {
		of, operand = operand, operand.AsCall().Target()
		f.used[operand.ID()] = true
	}
	call, before := operand.AsCall(), len(f.mistakes)
	ref := reference{metric: metric}
	if call.IsMemberFunction() {
		f.used[call.Target().ID()] = true
		ref.variant = f.nameIn(call.Target(), f.known.checkVariant)
	}
	ref.phase = f.nameIn(operand, f.known.checkPhase)
	if of != nil {
		f.used[of.ID()] = true
		name := f.nameIn(of, func(name string) string { return f.known.checkWorkload(ref.phase, name) })
		ref.metric = name + "." + ref.metric
	}
	if text := check(ref.phase, ref.metric); text != "" {
		f.mistake(node.ID(), text)
	}
	if len(f.mistakes) > before {
		return
	}
	at := slices.Index(f.references, ref)
	if at < 0 {
		at = len(f.references)
		f.references = append(f.references, ref)
	}
	f.nodes[node] = at
}

// nameIn is the literal argument of phase(...) or variant(...).
func (f *findings) nameIn(node ast.Expr, check func(string) string) string {
	if node.Kind() != ast.CallKind || len(node.AsCall().Args()) != 1 {
		f.mistake(node.ID(), metricHint)
		return ""
	}
	argument := node.AsCall().Args()[0]
	if name, literal := literalText(argument); literal {
		if text := check(name); text != "" {
			f.mistake(argument.ID(), text)
		}
		return name
	}
	f.mistake(argument.ID(), fmt.Sprintf("%s() needs a name in quotes, so that it can be checked before anything runs: %s",
		node.AsCall().FunctionName(), metricHint))
	return ""
}

func literalText(node ast.Expr) (string, bool) {
	if node.Kind() != ast.LiteralKind {
		return "", false
	}
	text, is := node.AsLiteral().(types.String)
	return string(text), is
}

func (f *findings) checkCall(node ast.Expr) {
	call := node.AsCall()
	switch call.FunctionName() {
	case phaseFunction:
		if !f.used[node.ID()] {
			f.mistake(node.ID(), "phase() stands for all metrics of a phase: choose one: "+metricHint)
			if call.IsMemberFunction() {
				f.used[call.Target().ID()] = true
			}
		}
	case workloadFunction:
		if !f.used[node.ID()] {
			f.mistake(node.ID(), "workload() is only part of a reference: write phase('NAME').workload('NAME').METRIC")
		}
	case shareFunction, modeFunction:
		f.checkStatistic(node)
	case variantFunction:
		if !f.used[node.ID()] {
			f.mistake(node.ID(), "variant() is only part of a reference: write variant('NAME').phase('NAME').METRIC")
		}
	case operators.In:
		// Like ==, this must not compare nested lists.
		if left := call.Args()[0]; !f.scalar(left) {
			f.mistake(left.ID(), "only numbers, texts and booleans can be searched in a list")
		}
	case operators.Add:
		// The macros map and filter add to their hidden result; written by hand, lists could double without bound.
		first := call.Args()[0]
		macro := first.Kind() == ast.IdentKind && first.AsIdent() == "@result"
		if !macro && f.tree.GetType(node.ID()).Kind() == types.ListKind {
			f.mistake(node.ID(), "lists cannot be joined: write one list")
		}
	}
	if f.tree.GetType(node.ID()).Kind() == types.DynKind {
		f.mistake(node.ID(), doubleHint)
	}
}

func (f *findings) scalar(node ast.Expr) bool {
	switch f.tree.GetType(node.ID()).Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.StringKind:
		return true
	default:
		return false
	}
}

// replaceReferences replaces every reference by a variable, so that an evaluation uses only numbers.
func (f *findings) replaceReferences(tree *ast.AST) {
	factory := ast.NewExprFactory()
	for node, at := range f.nodes {
		node.SetKindCase(factory.NewIdent(node.ID(), variableName(at)))
		tree.SetReference(node.ID(), ast.NewIdentReference(variableName(at), nil))
	}
}

// variableName is not valid in CEL, so no expression can shadow it.
func variableName(at int) string { return fmt.Sprintf("@%d", at) }
