package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// nights returns the values of experiments at these levels, with a spread of 1% that repeats.
func nights(levels ...float64) []float64 {
	var values []float64
	for i, level := range levels {
		values = append(values, float64(scaled(level)[i%6]))
	}
	return values
}

// repeated returns the same level for each of count experiments.
func repeated(level float64, count int) []float64 {
	var levels []float64
	for range count {
		levels = append(levels, level)
	}
	return levels
}

func TestCompareWithHistory(t *testing.T) {
	of := func(levels ...[]float64) Evidence {
		evidence := evidenceOf(measured("new", scanned, scaled(1)...), measured("old", scanned, scaled(1)...))
		var all []float64
		for _, some := range levels {
			all = append(all, some...)
		}
		evidence.History = func(variant, phase, metric string, since time.Time) Trend {
			if phase+"."+metric != scanned || !since.IsZero() {
				t.Errorf("asked for %s.%s since %s", phase, metric, since)
			}
			return Trend{Values: nights(all...), Change: func() string { return "the kernel changed" }}
		}
		return evidence
	}
	none := of()
	none.History = nil
	kept, noisy, uncalibrated, missing := of(repeated(1, 30)), of(repeated(1, 30), repeated(0.85, 3)), of(repeated(1, 30)), of()
	kept.Runs[2].KeptFrom = "x"
	noisy.Noise.Floor = func(_, _ string) (float64, bool) { return 0.5, true }
	uncalibrated.Noise.Refused = &Refusal{ReasonCalibrationUnlike, "another node", true}
	missing.History = func(string, string, string, time.Time) Trend {
		return Trend{Refused: &Refusal{ReasonNoData, "nothing there", false}}
	}
	var rough []float64
	for i := range 33 {
		rough = append(rough, 1+0.3*float64(i*7%5-2)/2)
	}
	for name, c := range map[string]comparing{
		"none":         {evidence: none, verdict: inconclusive, reason: ReasonNoData, message: "no earlier experiments"},
		"missing":      {evidence: missing, verdict: inconclusive, reason: ReasonNoData, message: "nothing there"},
		"reused pools": {evidence: kept, verdict: inconclusive, reason: ReasonNotIndependent},
		"uncalibrated": {evidence: uncalibrated, verdict: invalid, reason: ReasonCalibrationUnlike},
		"too few": {evidence: of(repeated(1, 12)), verdict: inconclusive, reason: ReasonTooFewExperiments,
			message: "12 experiments of its present definition, including this one, but the history is judged from 13 on: run 1 more"},
		"as ever": {evidence: of(repeated(1, 13)), verdict: passed, reason: ReasonHolds, message: "3 experiments, 10 there): within the tolerance"},
		"halved last night": {evidence: of(repeated(1, 30), repeated(0.5, 1)), verdict: inconclusive, reason: ReasonDaysDiffer,
			message: "it seems worse, and that is not certain yet"},
		"one bad night of three": {evidence: of(repeated(1, 38), repeated(0.9, 1)), verdict: inconclusive, reason: ReasonDaysDiffer,
			message: "the newest experiment is worse than the ones before"},
		"halved for two": {evidence: of(repeated(1, 30), repeated(0.5, 2)), verdict: failed, reason: ReasonWorse,
			message: "in a year of nights, by the last 3 experiments; the kernel changed"},
		"over again":  {evidence: of(repeated(1, 30), repeated(0.5, 20), repeated(1, 3)), verdict: passed, reason: ReasonHolds},
		"better":      {evidence: of(repeated(1, 30), repeated(1.4, 5)), verdict: passed, reason: ReasonHolds},
		"below noise": {evidence: noisy, verdict: inconclusive, reason: ReasonDaysDiffer, message: "the noise of"},
		"rough": {evidence: of(rough), verdict: inconclusive, reason: ReasonDaysDiffer,
			message: "more of them would not decide, but a tolerance above "},
		"zeros": {evidence: of(repeated(0, 20)), verdict: inconclusive, reason: ReasonNoRatio},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, toHistory) })
	}
}

// TestHistoryInFamily: a history counts among the comparisons of the experiment, like every other gate.
func TestHistoryInFamily(t *testing.T) {
	evidence := evidenceOf(measured("new", scanned, scaled(1)...))
	evidence.History = func(string, string, string, time.Time) Trend {
		return Trend{Values: nights(append(repeated(1, 30), repeated(0.925, 3)...)...), Change: func() string { return "" }}
	}
	p := map[int]int64{}
	for _, count := range []int{1, 4} {
		var gates []v1alpha1.Gate
		for i := range count {
			gate := compareGate(scanned, toHistory, "")
			gate.Name = v1alpha1.GateName(fmt.Sprint("g", i))
			gates = append(gates, gate)
		}
		p[count] = judgeOnly(t, evidence, gates, "new")[0].Comparisons[0].WorseProbabilityPartsPerMillion
	}
	if p[1] <= 0 || p[4] < 4*p[1]-4 {
		t.Errorf("p values %v are not corrected", p)
	}
}

// TestMoreExperiments: if a longer reference would decide, the message says how much longer.
func TestMoreExperiments(t *testing.T) {
	evidence := evidenceOf(measured("new", scanned, scaled(1)...))
	var levels []float64
	for i := range 13 {
		levels = append(levels, 1+0.05*float64(i*7%5-2)/2)
	}
	evidence.History = func(string, string, string, time.Time) Trend { return Trend{Values: nights(levels...)} }
	gate := compareGate(scanned, toHistory, "")
	gate.Compare.Tolerance = "5%"
	since := metav1.NewTime(time.Unix(1e9, 0))
	gate.Compare.Since = &since
	status := judgeOnly(t, evidence, []v1alpha1.Gate{gate}, "new")[0]
	if status.Verdict != inconclusive || !strings.Contains(status.Message, "more experiments like these would decide") {
		t.Errorf("%+v", status)
	}
	if runs := status.Comparisons[0]; runs.Runs != 3 || runs.BaselineRuns != 10 || runs.LowPartsPerMillion == nil {
		t.Errorf("%+v", runs)
	}
}
