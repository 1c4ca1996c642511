package gate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	// maxCost limits one evaluation. Sensible gates cost less than a hundredth of it.
	maxCost = 20_000
	// maxTime limits all evaluations of a gate, in case the cost limit does not.
	maxTime = 500 * time.Millisecond
	// interruptEvery is the number of loop steps between checks of the clock.
	interruptEvery = 100
	// faultsName is the variable through which the guards report the faults of an evaluation.
	faultsName = "@faults"
)

// uncertain ends the message of an expression that was decided.
const uncertain = "; an expression judges medians without their uncertainty"

type expressionRule struct {
	program    cel.Program
	references []reference
	// perVariant is true if at least one reference is to the variant being judged.
	perVariant bool
	position   func(id int64) string
}

func compileExpression(text string, known scope) (rule, []string) {
	if n := utf8.RuneCountInString(text); n > maxExpression {
		return nil, []string{fmt.Sprintf("the expression has %d characters, the limit is %d: split it into several gates", n, maxExpression)}
	}
	environment, err := language()
	if err != nil {
		return nil, []string{fmt.Sprintf("the expression language is broken, please report this: %v", err)}
	}
	checked, issues := environment.Compile(text)
	if issues.Err() != nil {
		return nil, explain(issues.Errors())
	}
	tree := checked.NativeRep()
	found := walk(tree, known)
	switch {
	case len(found.mistakes) > 0:
		return nil, bounded(found.mistakes)
	case checked.OutputType() != cel.BoolType:
		return nil, []string{fmt.Sprintf("expression: its value is a %s, not true or false: compare it, for example %s >= 100.0",
			checked.OutputType(), cut(printable(text), 80))}
	case len(found.references) == 0:
		return nil, []string{"expression: it uses no measurement: use phase('NAME').METRIC"}
	}
	found.replaceReferences(tree)
	program, err := environment.PlanProgram(tree, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(interruptEvery),
		cel.CustomDecoratorV2(guardCalls))
	if err != nil {
		return nil, []string{"expression: " + cut(printable(err.Error()), maxIssue)}
	}
	rule := expressionRule{program: program, references: found.references, position: found.position}
	for _, ref := range found.references {
		rule.perVariant = rule.perVariant || ref.variant == ""
	}
	return rule, nil
}

func (e expressionRule) uses() []reference { return e.references }

func (e expressionRule) judge(evidence *Evidence, variants []string) []opinion {
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	if !e.perVariant {
		return []opinion{e.judgeVariant(ctx, evidence.measured(), "")}
	}
	opinions := make([]opinion, 0, len(variants))
	for _, variant := range variants {
		opinions = append(opinions, e.judgeVariant(ctx, evidence.measured(), variant))
	}
	return opinions
}

func (e expressionRule) judgeVariant(ctx context.Context, measured measurements, variant string) opinion {
	variables := map[string]any{}
	figures := make([]string, 0, len(e.references))
	var unsure []alternatives
	// All references need data, even those that && and || would skip.
	for i, ref := range e.references {
		full := ref.of(variant)
		metric, missing := measured.find(full)
		if missing != "" {
			return opinion{variant: variant, verdict: v1alpha1.VerdictInconclusive, reason: ReasonNoData, text: missing}
		}
		variables[variableName(i)] = types.Double(asPart(ref, metric.Median))
		figures = append(figures, figure(ref, metric))
		if others := measured.doubts(full, metric.Median); len(others) > 0 {
			one := alternatives{doubt: doubtAbout(full), variable: variableName(i), median: asPart(ref, metric.Median)}
			for _, other := range others {
				one.values = append(one.values, asPart(ref, other))
			}
			unsure = append(unsure, one)
		}
	}
	decided := e.evaluate(ctx, variables, strings.Join(figures, ", "))
	decided.variant = variant
	if decided.reason == ReasonEvaluationFailed {
		return decided
	}
	// Values that are not known exactly decide only if the expression says the same for the other values that they may have.
	for _, changes := range combinations(unsure) {
		changed, words := maps.Clone(variables), make([]string, 0, len(changes))
		for _, one := range changes {
			changed[one.variable] = types.Double(one.value)
			words = append(words, fmt.Sprint(one.value))
		}
		if opposite := e.evaluate(ctx, changed, ""); opposite.verdict != decided.verdict {
			return opinion{variant: variant, verdict: v1alpha1.VerdictInconclusive, reason: changes[0].reason, text: fmt.Sprintf(
				"%s: %s: with %s the expression says the opposite: %s", decided.text, changes[0].why, strings.Join(words, " and "),
				changes[0].remedy)}
		}
	}
	return decided
}

// asPart returns a share as a fraction of 1, and any other value unchanged.
func asPart(of reference, value int64) float64 {
	if derived, err := results.ParseDerived(of.metric); err == nil && derived.Share {
		return float64(value) / 1e6
	}
	return float64(value)
}

// alternatives holds the values that a reference may have instead of its median.
type alternatives struct {
	doubt
	variable string
	median   float64
	values   []float64
}

// alternative is one of these values.
type alternative struct {
	doubt
	variable string
	value    float64
}

// pick returns one of the values.
func (a alternatives) pick(at int) alternative { return alternative{a.doubt, a.variable, a.values[at]} }

// mostCombinations limits the number of combinations of other values that are tried.
const mostCombinations = 64

// combinations returns the ways to change one or more of the references, those with few changes first. If there are too many, each
// reference changes alone, then all that may be smaller change together, and all that may be larger.
func combinations(of []alternatives) [][]alternative {
	ways := [][]alternative{nil}
	for _, one := range of {
		for _, way := range slices.Clone(ways) {
			for at := range one.values {
				ways = append(ways, append(slices.Clone(way), one.pick(at)))
			}
		}
		if len(ways) > mostCombinations {
			return extremes(of)
		}
	}
	slices.SortStableFunc(ways, func(a, b []alternative) int { return cmp.Compare(len(a), len(b)) })
	return ways[1:]
}

func extremes(of []alternatives) (ways [][]alternative) {
	var smaller, larger []alternative
	for _, one := range of {
		for at, value := range one.values {
			ways = append(ways, []alternative{one.pick(at)})
			if value < one.median {
				smaller = append(smaller, one.pick(at))
			} else {
				larger = append(larger, one.pick(at))
			}
		}
	}
	for _, all := range [][]alternative{smaller, larger} {
		if len(all) > 0 {
			ways = append(ways, all)
		}
	}
	return ways
}

// evaluate returns the opinion on these values. text is the message that lists them.
func (e expressionRule) evaluate(ctx context.Context, variables map[string]any, text string) opinion {
	found := &faults{}
	variables[faultsName] = found
	value, _, err := e.program.ContextEval(ctx, variables)
	// An error that && or || ignored counts as well.
	if found.first != "" {
		return opinion{verdict: v1alpha1.VerdictInvalid, reason: ReasonEvaluationFailed,
			text: fmt.Sprintf("at %s of the expression, %s; %s", e.position(found.id), found.first, text)}
	}
	if err != nil {
		return opinion{verdict: v1alpha1.VerdictInvalid, reason: ReasonEvaluationFailed,
			text: fmt.Sprintf("%s; %s", evaluationError(err), text)}
	}
	switch value {
	case types.True:
		return opinion{verdict: v1alpha1.VerdictPassed, reason: ReasonHolds, text: text}
	case types.False:
		return opinion{verdict: v1alpha1.VerdictFailed, reason: ReasonDoesNotHold, text: text}
	default:
		return opinion{verdict: v1alpha1.VerdictInvalid, reason: ReasonEvaluationFailed,
			text: "the expression is neither true nor false; " + text}
	}
}

func evaluationError(err error) string {
	text := cut(printable(err.Error()), maxIssue)
	if strings.Contains(text, "cost limit") || strings.Contains(text, "interrupt") {
		return text + ": the expression does too much work: simplify it"
	}
	return text
}
