package gate

import (
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// kind is one kind of gate: a member of the API's Gate.
type kind struct {
	// name is the name of the member.
	name string
	// asked reports whether the gate has the member.
	asked func(v1alpha1.Gate) bool
	// compile checks the member and returns its rule, or all mistakes.
	compile func(v1alpha1.Gate, scope) (rule, []string)
	// define describes the member for reports.
	define func(v1alpha1.Gate) string
}

// kinds are all kinds of gate. TestEveryMemberHasAKind compares them with the API.
var kinds = []kind{
	{"expression", func(g v1alpha1.Gate) bool { return g.Expression != "" },
		func(g v1alpha1.Gate, known scope) (rule, []string) { return compileExpression(g.Expression, known) },
		func(g v1alpha1.Gate) string { return printable(g.Expression) }},
	{"bound", func(g v1alpha1.Gate) bool { return g.Bound != nil },
		func(g v1alpha1.Gate, known scope) (rule, []string) { return compileBound(g.Bound, known) },
		func(g v1alpha1.Gate) string { return defineBound(g.Bound) }},
	{"ratio", func(g v1alpha1.Gate) bool { return g.Ratio != nil },
		func(g v1alpha1.Gate, known scope) (rule, []string) { return compileRatio(g.Ratio, known) },
		func(g v1alpha1.Gate) string { return defineRatio(g.Ratio) }},
	{"compare", func(g v1alpha1.Gate) bool { return g.Compare != nil },
		func(g v1alpha1.Gate, known scope) (rule, []string) { return compileCompare(g.Compare, known) },
		func(g v1alpha1.Gate) string { return defineCompare(g.Compare) }},
	{"preflight", func(g v1alpha1.Gate) bool { return g.Preflight != nil },
		func(g v1alpha1.Gate, _ scope) (rule, []string) { return compilePreflight(g.Preflight) },
		func(g v1alpha1.Gate) string { return definePreflight(g.Preflight) }},
}

// kindsOf returns the kinds whose members a gate has. A valid gate has exactly one.
func kindsOf(gate v1alpha1.Gate) []kind {
	var of []kind
	for _, kind := range kinds {
		if kind.asked(gate) {
			of = append(of, kind)
		}
	}
	return of
}

// kindNames lists the kinds, such as "expression, bound, ratio, compare and preflight".
func kindNames() string {
	names := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		names = append(names, kind.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
