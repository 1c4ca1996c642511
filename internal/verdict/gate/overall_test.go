package gate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func TestOverall(t *testing.T) {
	for name, test := range map[string]struct {
		verdicts []v1alpha1.Verdict
		want     v1alpha1.Verdict
		message  string
	}{
		"no gates":  {nil, passed, "each repetition has a valid run; there are no gates"},
		"one holds": {[]v1alpha1.Verdict{passed}, passed, "the gate g0 holds"},
		"all hold":  {[]v1alpha1.Verdict{passed, passed}, passed, "all 2 gates hold"},
		"one fails": {[]v1alpha1.Verdict{failed}, failed, "the only gate failed: g0 (R)"},
		"failed beats all": {[]v1alpha1.Verdict{invalid, inconclusive, failed, passed, failed}, failed,
			"2 of 5 gates failed: g2 (R), g4 (R)"},
		"invalid beats no data": {[]v1alpha1.Verdict{inconclusive, passed, invalid}, invalid, "1 of 3 gates could not be evaluated: g2 (R)"},
		"no data beats passed":  {[]v1alpha1.Verdict{inconclusive, passed}, inconclusive, "1 of 2 gates could not be decided: g0 (R)"},
		"all without data": {[]v1alpha1.Verdict{inconclusive, inconclusive}, inconclusive,
			"all 2 gates could not be decided: g0 (R), g1 (R)"},
		"unknown never passes": {[]v1alpha1.Verdict{passed, "Perhaps"}, inconclusive, "1 of 2 gates could not be decided: g1 (R)"},
		"empty never passes":   {[]v1alpha1.Verdict{""}, inconclusive, "the only gate could not be decided: g0 (R)"},
	} {
		t.Run(name, func(t *testing.T) {
			var gates []v1alpha1.GateStatus
			for i, verdict := range test.verdicts {
				gates = append(gates, v1alpha1.GateStatus{Name: v1alpha1.GateName(fmt.Sprintf("g%d", i)), Verdict: verdict, Reason: "R"})
			}
			if got, message := Overall(gates); got != test.want || message != test.message {
				t.Errorf("got %s, %q", got, message)
			}
		})
	}
}

func TestOverallIsBounded(t *testing.T) {
	gates := make([]v1alpha1.GateStatus, 100)
	for i := range gates {
		gates[i] = v1alpha1.GateStatus{Name: v1alpha1.GateName(strings.Repeat("g", 40)), Verdict: failed, Reason: ReasonDoesNotHold}
	}
	if _, message := Overall(gates); len(message) > maxMessage {
		t.Errorf("%d bytes", len(message))
	}
}

func TestDefinition(t *testing.T) {
	const metric = "aged-scan.readBytesPerSecond"
	relaxed := compareGate(metric, "History", "")
	relaxed.Compare.Tolerance = "10%"
	for name, test := range map[string]struct {
		gate v1alpha1.Gate
		want string
	}{
		"expression": {expression(aged + "\n > 1.0"), aged + "  > 1.0"},
		"min":        {boundGate(metric, "100M", ""), metric + " is at least 100M"},
		"max":        {boundGate(metric, "", "5k"), metric + " is at most 5k"},
		"both":       {boundGate(metric, "1", "2"), metric + " is at least 1 and at most 2"},
		"neither":    {boundGate(metric, "", ""), metric + " has no bound"},
		"baseline":   {compareGate(metric, "Baseline", ""), metric + " is at most 5% worse than in the baseline"},
		"variant":    {compareGate(metric, "Variant", "r8k"), metric + " is at most 5% worse than in variant r8k"},
		"history":    {relaxed, metric + " is at most 10% worse than in earlier experiments"},
		"hostile":    {boundGate("<b>\n.x", "1", ""), `"<b>\n.x" is at least 1`},
		"nothing":    {v1alpha1.Gate{}, "no condition"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Definition(test.gate); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
