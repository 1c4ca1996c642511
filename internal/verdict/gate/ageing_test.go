package gate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// onPool marks runs as the last of several experiments that have used one pool, one run after another, since the given time.
func onPool(runs []results.RunResult, since time.Time, experiments int32) []results.RunResult {
	for i := range runs {
		runs[i].KeptFrom = "before"
		runs[i].PoolAge = &results.PoolAge{Since: since, Experiments: experiments, Runs: 6*(experiments-1) + int32(i) + 1}
	}
	return runs
}

// TestAcceptAgeing: gates on an old pool are undecided, unless they accept its age. Then experiments are compared, never single runs, and
// the message says how old the pool is.
func TestAcceptAgeing(t *testing.T) {
	created := time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)
	const age = "; the pool was aged over 20 experiments (120 runs) since 2026-11-01T02:00:00Z"
	on := func(level float64) Evidence {
		return evidenceOf(onPool(measured("new", scanned, scaled(level)...), created, 20))
	}
	against := func(level float64, days ...float64) Evidence {
		evidence := on(level)
		var stored [][]int64
		for _, day := range days {
			stored = append(stored, scaled(day))
		}
		evidence.Baseline.Values = func(_, _, _ string) Stored { return Stored{Values: stored, Unit: results.UnitBytesPerSecond} }
		return evidence
	}
	var asked time.Time
	history := func(evidence Evidence, levels ...[]float64) Evidence {
		evidence.History = func(_, _, _ string, since time.Time) Trend {
			asked = since
			return Trend{Values: nights(slices.Concat(levels...)...), Change: func() string { return "the kernel changed" }}
		}
		return evidence
	}
	withinOne := on(1)
	for i := range withinOne.Runs {
		withinOne.Runs[i].PoolAge = nil
	}
	quiet := []float64{1, 1.005, 0.995, 1.002, 0.998}
	for name, test := range map[string]struct {
		to              string
		evidence        Evidence
		refuses         bool
		verdict         v1alpha1.Verdict
		reason, message string
	}{
		"not accepted": {to: toHistory, evidence: history(on(1), repeated(1, 20)), refuses: true, verdict: inconclusive,
			reason: ReasonNotIndependent, message: "or acceptAgeing in the gate"},
		"baseline, not accepted": {to: toBaseline, evidence: against(1, quiet...), refuses: true, verdict: inconclusive,
			reason: ReasonNotIndependent, message: "or acceptAgeing in the gate"},
		"as ever":  {to: toHistory, evidence: history(on(1), repeated(1, 20)), verdict: passed, reason: ReasonHolds, message: age},
		"declined": {to: toHistory, evidence: history(on(0.8), repeated(1, 30), repeated(0.8, 3)), verdict: failed, reason: ReasonWorse, message: "the kernel changed" + age},
		"a young pool": {to: toHistory, evidence: history(on(1), repeated(1, 4)), verdict: inconclusive, reason: ReasonTooFewExperiments,
			message: "run 9 more" + age},
		"undecided": {to: toHistory, evidence: history(on(0.5), repeated(1, 30), repeated(0.5, 1)), verdict: inconclusive,
			reason: ReasonDaysDiffer, message: "the next experiments will show it" + age},
		"baseline":        {to: toBaseline, evidence: against(1, quiet...), verdict: passed, reason: ReasonHolds, message: age},
		"baseline, worse": {to: toBaseline, evidence: against(0.8, quiet...), verdict: failed, reason: ReasonWorse, message: age},
		"baseline of one experiment": {to: toBaseline, evidence: against(1, 1), verdict: inconclusive, reason: ReasonNotIndependent,
			message: "accept more experiments into the baseline"},
		"a pool of one experiment": {to: toHistory, evidence: history(withinOne, repeated(1, 20)), verdict: passed, reason: ReasonHolds},
	} {
		t.Run(name, func(t *testing.T) {
			asked = time.Time{}
			gate := compareGate(scanned, test.to, "")
			gate.Compare.AcceptAgeing = !test.refuses
			got := judgeOnly(t, test.evidence, []v1alpha1.Gate{gate}, "new")[0]
			if got.Verdict != test.verdict || got.Reason != test.reason || !strings.Contains(got.Message, test.message) {
				t.Errorf("%s %s %q, want %s %s %q", got.Verdict, got.Reason, got.Message, test.verdict, test.reason, test.message)
			}
			if strings.Contains(got.Message, "aged over") == test.refuses && name != "a pool of one experiment" {
				t.Errorf("what it says of the age: %q", got.Message)
			}
			if ofPool := test.to == toHistory && !test.refuses && name != "a pool of one experiment"; asked.Equal(created) != ofPool {
				t.Errorf("the history counts from %s", asked)
			}
		})
	}
}
