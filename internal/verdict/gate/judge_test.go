package gate

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	passed       = v1alpha1.VerdictPassed
	failed       = v1alpha1.VerdictFailed
	inconclusive = v1alpha1.VerdictInconclusive
	invalid      = v1alpha1.VerdictInvalid
)

// numbers returns a variant with readBytesPerSecond for its two scans. A negative one means that the scan was not measured.
func numbers(variant string, freshScan, agedScan int64) results.VariantResult {
	result := results.VariantResult{Name: variant, Phases: []results.PhaseResult{{Name: "fill", Metrics: []results.MetricResult{
		{Name: "filledBytes", Median: 1 << 30, Runs: 6}, {Name: "readBytes", Median: 0, Runs: 6},
		{Name: "writtenBytes", Median: math.MaxInt64, Runs: 1}, {Name: "rounds", Median: 7, Runs: 0},
	}}}}
	for _, scan := range []struct {
		name   string
		median int64
	}{{"fresh-scan", freshScan}, {"aged-scan", agedScan}} {
		if scan.median >= 0 {
			result.Phases = append(result.Phases, results.PhaseResult{Name: scan.name, Metrics: []results.MetricResult{
				{Name: "readBytesPerSecond", Unit: "bytes/s", Better: "Higher", Median: scan.median, Runs: 6}}})
		}
	}
	return result
}

type judgement struct {
	gate    v1alpha1.Gate
	summary []results.VariantResult
	verdict v1alpha1.Verdict
	reason  string
	message string // the whole message, if not empty
	parts   []string
}

// runsOf returns runs with the medians of a summary as their values.
func runsOf(summary []results.VariantResult) []results.RunResult {
	var runs []results.RunResult
	for _, variant := range summary {
		for repetition := int32(1); repetition <= 6; repetition++ {
			run := results.RunResult{Name: variant.Name, Variant: variant.Name, Repetition: repetition, Valid: true}
			for _, phase := range variant.Phases {
				values := map[string]int64{}
				for _, metric := range phase.Metrics {
					if repetition <= metric.Runs {
						values[metric.Name] = metric.Median
					}
				}
				run.Phases = append(run.Phases, results.RunPhase{Name: phase.Name, Outcome: results.OutcomeValid, Metrics: values})
			}
			runs = append(runs, run)
		}
	}
	return runs
}

// judgeAll compiles and judges the gate of each case.
func judgeAll(t *testing.T, tests map[string]judgement, variants ...string) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, err := Compile([]v1alpha1.Gate{test.gate}, somePhases, variants)
			if err != nil {
				t.Fatal(err)
			}
			got := set.Judge(Evidence{Summary: test.summary, Runs: runsOf(test.summary)})[0]
			t.Log(got.Verdict, got.Reason, got.Message)
			want := v1alpha1.GateStatus{Name: "g", Verdict: test.verdict, Reason: test.reason, Message: test.message}
			if test.message == "" {
				want.Message = got.Message
			} else if test.gate.Expression != "" && (test.verdict == passed || test.verdict == failed) {
				want.Message += uncertain
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			for _, part := range test.parts {
				if !strings.Contains(got.Message, part) {
					t.Errorf("%q is not in: %s", part, got.Message)
				}
			}
		})
	}
}

func TestJudgeOneVariant(t *testing.T) {
	slow, fast := []results.VariantResult{numbers("default", 100, 79)}, []results.VariantResult{numbers("default", 100, 80)}
	zero := []results.VariantResult{numbers("default", 0, 80)}
	unmeasured := []results.VariantResult{numbers("default", 100, -1)}
	ratio := aged + " / " + fresh
	judgeAll(t, map[string]judgement{
		"holds": {gate: expression(aged + " >= 0.8 * " + fresh), summary: fast, verdict: passed, reason: ReasonHolds,
			message: "aged-scan.readBytesPerSecond = 80 (6 runs), fresh-scan.readBytesPerSecond = 100 (6 runs)"},
		"does not hold": {gate: expression(aged + " >= 0.8 * " + fresh), summary: slow, verdict: failed, reason: ReasonDoesNotHold,
			message: "aged-scan.readBytesPerSecond = 79 (6 runs), fresh-scan.readBytesPerSecond = 100 (6 runs)"},
		"int":              {gate: expression(aged + " * 1.0 >= 80"), summary: fast, verdict: passed, reason: ReasonHolds},
		"int, just":        {gate: expression(aged + " * 1.0 > 80"), summary: fast, verdict: failed, reason: ReasonDoesNotHold},
		"equal":            {gate: expression(aged + " * 1.0 == 80"), summary: fast, verdict: passed, reason: ReasonHolds},
		"equal, int first": {gate: expression("80 == " + aged + " * 1.0 && " + aged + " * 1.0 != 81"), summary: fast, verdict: passed, reason: ReasonHolds},
		"not equal":        {gate: expression(aged + " * 1.0 != 80"), summary: fast, verdict: failed, reason: ReasonDoesNotHold},
		"zero errors":      {gate: expression("phase('fill').readBytes == 0"), summary: fast, verdict: passed, reason: ReasonHolds},
		"negation":         {gate: expression("!(" + aged + " * 1.0 < 80.0)"), summary: fast, verdict: passed, reason: ReasonHolds},
		"twice": {gate: expression(aged + " > 1.0 && " + aged + " * 1.0 < 90.0"), summary: fast, verdict: passed, reason: ReasonHolds,
			message: "aged-scan.readBytesPerSecond = 80 (6 runs)"},
		"in a loop": {gate: expression("[0.5, 0.8].all(x, " + aged + " >= x * " + fresh + ")"), summary: fast, verdict: passed,
			reason: ReasonHolds},
		"map, filter": {gate: expression("[" + aged + ", " + fresh + "].map(x, x / 2.0).filter(x, x > 45.0).size() == 1"), summary: fast,
			verdict: passed, reason: ReasonHolds},
		"math": {gate: expression("math.abs(" + aged + " - " + fresh + ") <= math.greatest(1.0, 20.0, 0.05 * " + fresh + ")"),
			summary: fast, verdict: passed, reason: ReasonHolds},

		"x / 0 is not large": {gate: expression(ratio + " >= 0.8"), summary: zero, verdict: invalid, reason: ReasonEvaluationFailed,
			parts: []string{"at 1:39 of the expression", "the division gives +Inf", "fresh-scan.readBytesPerSecond = 0 (6 runs)",
				"add a check before"}},
		"0 / 0": {gate: expression("phase('fill').readBytes / " + fresh + " != 1.0"), summary: zero, verdict: invalid,
			reason: ReasonEvaluationFailed, parts: []string{"NaN"}},
		"negated x / 0": {gate: expression("!(" + ratio + " < 0.8)"), summary: zero, verdict: invalid, reason: ReasonEvaluationFailed},
		"x / 0 swallowed by ||": {gate: expression(ratio + " >= 0.8 || true"), summary: zero, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"x / 0 swallowed by &&": {gate: expression("!(" + ratio + " >= 0.8 && false)"), summary: zero, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"x / 0 swallowed in loop": {gate: expression("[0.0, 1.0].exists(x, " + aged + " / x > 0.5)"), summary: zero, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"x / 0 in a branch": {gate: expression("(true ? " + ratio + " : 0.0) > 0.8"), summary: zero, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"x / 0 in greatest": {gate: expression("math.greatest(1.0, " + ratio + ") > 0.8"), summary: zero, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"x / 0 in least": {gate: expression("math.least(1.0, " + ratio + ") > 0.8"), summary: zero, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"x / 0 in a list": {gate: expression("[" + ratio + "].all(x, x > 0.8)"), summary: zero, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"isInf does not save it": {gate: expression("math.isInf(" + ratio + ")"), summary: zero, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"1 / (x / 0) is not 0": {gate: expression("1.0 / (" + ratio + ") < 0.8"), summary: zero, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"guarded by &&": {gate: expression(fresh + " > 0.0 && " + ratio + " >= 0.8"), summary: zero, verdict: failed,
			reason: ReasonDoesNotHold},
		"guarded by ||": {gate: expression(fresh + " == 0.0 || " + ratio + " >= 0.8"), summary: zero, verdict: passed,
			reason: ReasonHolds},
		"guarded by a condition": {gate: expression("(" + fresh + " > 0.0 ? " + ratio + " : 1.0) >= 0.8"), summary: zero, verdict: passed,
			reason: ReasonHolds},
		"overflow": {gate: expression(aged + " * 1e308 > 1.0"), summary: fast, verdict: invalid, reason: ReasonEvaluationFailed,
			parts: []string{"the multiplication gives +Inf"}},
		"root of a negative": {gate: expression("math.sqrt(-" + aged + ") != 1.0"), summary: fast, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"int / 0": {gate: expression(aged + " > 1.0 && 1 / 0 == 1"), summary: fast, verdict: invalid,
			reason: ReasonEvaluationFailed, parts: []string{"division by zero"}},
		"int overflow, swallowed": {gate: expression(aged + " > 1.0 || 9223372036854775807 + 1 > 0"), summary: fast, verdict: passed,
			reason: ReasonHolds},
		"int overflow": {gate: expression("9223372036854775807 + 1 > 0 || " + aged + " > 1.0"), summary: fast, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"list index out of range": {gate: expression("[" + aged + "][1] > 1.0"), summary: fast, verdict: invalid,
			reason: ReasonEvaluationFailed},
		"too much work": {gate: expression(bomb(6)), summary: fast, verdict: invalid, reason: ReasonEvaluationFailed,
			parts: []string{"cost limit", "simplify"}},
		"phase without numbers": {gate: expression(aged + " > 1.0"), summary: unmeasured, verdict: inconclusive, reason: ReasonNoData,
			message: "no data: variant default has no metrics for phase aged-scan: see its BenchmarkRuns for the reason"},
		"variant without numbers": {gate: expression(aged + " > 1.0"), summary: nil, verdict: inconclusive, reason: ReasonNoData,
			message: "no data: variant default has no valid runs: see its BenchmarkRuns for the reason"},
		"metric without numbers": {gate: expression("phase('fill').ioErrors < 1.0"), summary: fast, verdict: inconclusive, reason: ReasonNoData,
			message: "no data: in variant default, phase fill measured no ioErrors: it has filledBytes, readBytes, writtenBytes"},
		"no runs": {gate: expression("phase('fill').rounds < 100"), summary: fast, verdict: inconclusive, reason: ReasonNoData,
			parts: []string{"measured no rounds"}},
		"missing, swallowed by ||": {gate: expression(fresh + " > 1.0 || " + aged + " > 1.0"), summary: unmeasured, verdict: inconclusive,
			reason: ReasonNoData},
		"missing, not reached": {gate: expression("false && " + aged + " > 1.0 || " + fresh + " > 1.0"), summary: unmeasured,
			verdict: inconclusive, reason: ReasonNoData},
		"missing, other branch": {gate: expression("(true ? " + fresh + " : " + aged + ") > 1.0"), summary: unmeasured, verdict: inconclusive,
			reason: ReasonNoData},
		"missing, empty loop": {gate: expression("[].all(x, " + aged + " > 1.0)"), summary: unmeasured, verdict: inconclusive,
			reason: ReasonNoData},
		"missing beats x / 0": {gate: expression(fresh + " / 0.0 > " + aged), summary: unmeasured, verdict: inconclusive, reason: ReasonNoData},
	}, "default")
}

// bomb nests loops: 10^depth steps in few characters.
func bomb(depth int) string {
	text := aged + " > 1.0"
	for range depth {
		text = "[1,2,3,4,5,6,7,8,9,0].all(x, " + text + ")"
	}
	return text
}

func TestJudgeBounds(t *testing.T) {
	const metric = "aged-scan.readBytesPerSecond"
	one := func(median int64) []results.VariantResult {
		return []results.VariantResult{numbers("default", 100, median)}
	}
	known := func(value string) string {
		return metric + " = " + value + " (6 runs), the median lies between " + value + " and " + value +
			" with a confidence of 96.9%: "
	}
	judgeAll(t, map[string]judgement{
		"min": {gate: boundGate(metric, "100M", ""), summary: one(100_000_000), verdict: passed, reason: ReasonHolds,
			message: known("100000000") + "at least 100M"},
		"below min": {gate: boundGate(metric, "100M", ""), summary: one(99_999_999), verdict: failed, reason: ReasonBelowMinimum,
			message: known("99999999") + "below the minimum of 100M"},
		"max": {gate: boundGate(metric, "", "5k"), summary: one(5000), verdict: passed, reason: ReasonHolds,
			message: known("5000") + "at most 5k"},
		"above max": {gate: boundGate(metric, "", "5k"), summary: one(5001), verdict: failed, reason: ReasonAboveMaximum,
			message: known("5001") + "above the maximum of 5k"},
		"between": {gate: boundGate(metric, "1Ki", "2Ki"), summary: one(1024), verdict: passed, reason: ReasonHolds,
			message: known("1024") + "between 1Ki and 2Ki"},
		"fraction": {gate: boundGate(metric, "1.5B/s", ""), summary: one(1), verdict: failed, reason: ReasonBelowMinimum},
		"exact": {gate: boundGate(metric, "9223372036854775807", ""), summary: one(math.MaxInt64 - 1), verdict: failed,
			reason: ReasonBelowMinimum},
		"exact, just": {gate: boundGate(metric, "9223372036854775807", ""), summary: one(math.MaxInt64), verdict: passed, reason: ReasonHolds},
		"huge":        {gate: boundGate(metric, "", "1e30"), summary: one(math.MaxInt64), verdict: passed, reason: ReasonHolds},
		"zero":        {gate: boundGate(metric, "", "0"), summary: one(0), verdict: passed, reason: ReasonHolds},
		"no data":     {gate: boundGate(metric, "1B/s", ""), summary: one(-1), verdict: inconclusive, reason: ReasonNoData},
	}, "default")
}

// TestBoundsAskForTheIntervalOfTheMedian: a bound inside the interval is undecided, on whichever side of it the median of these runs lies.
func TestBoundsAskForTheIntervalOfTheMedian(t *testing.T) {
	for name, c := range map[string]struct {
		min, max string
		values   []int64
		share    float64
		verdict  v1alpha1.Verdict
		reason   string
		message  string
	}{
		"all above":     {"100B/s", "", []int64{101, 105, 110, 120, 103, 104}, 1, passed, ReasonHolds, "between 101 and 120 with a confidence of 96.9%: at least"},
		"one below":     {"100B/s", "", []int64{99, 105, 110, 120, 103, 104}, 1, inconclusive, ReasonUnclear, "either side of the minimum of 100"},
		"one above":     {"100B/s", "", []int64{99, 95, 90, 80, 93, 101}, 1, inconclusive, ReasonUnclear, "either side of the minimum of 100"},
		"all below":     {"100B/s", "", []int64{99, 95, 90, 80, 93, 94}, 1, failed, ReasonBelowMinimum, "below the minimum of 100"},
		"over the top":  {"1B/s", "100B/s", []int64{99, 95, 90, 80, 93, 101}, 1, inconclusive, ReasonUnclear, "either side of the maximum of 100"},
		"eight, one up": {"", "100B/s", []int64{99, 95, 90, 80, 93, 94, 96, 1000}, 1, passed, ReasonHolds, "between 90 and 99 with a confidence of 93%"},
		"four":          {"1B/s", "", []int64{99, 95, 90, 80}, 1, inconclusive, ReasonTooFewRuns, "use at least 5 repetitions"},
		"a last look":   {"1B/s", "", []int64{99, 95, 90, 80, 93, 94}, 0.2, inconclusive, ReasonTooFewRuns, "use at least 7 repetitions"},
	} {
		evidence := evidenceOf(measured("new", scanned, c.values...))
		evidence.Share = c.share
		got := judgeOnly(t, evidence, []v1alpha1.Gate{boundGate(scanned, c.min, c.max)}, "new")[0]
		if got.Verdict != c.verdict || got.Reason != c.reason || !strings.Contains(got.Message, c.message) {
			t.Errorf("%s: %s %s %q", name, got.Verdict, got.Reason, got.Message)
		}
	}
}

func TestJudgeSeveralVariants(t *testing.T) {
	const small, large = "r8k,pool.ashift=12", "r128k,pool.ashift=12"
	one := results.VariantResult{}
	summary := func(s, l int64) []results.VariantResult {
		return []results.VariantResult{numbers(small, 100, s), one, numbers(large, 100, l)}
	}
	each := expression(aged + " >= 0.8 * " + fresh)
	pair := expression("variant('" + small + "').phase('aged-scan').readBytesPerSecond <= variant('" + large +
		"').phase('aged-scan').readBytesPerSecond")
	mixed := expression(aged + " >= 0.5 * variant('" + large + "').phase('aged-scan').readBytesPerSecond")
	of := func(variant string) string {
		return "aged-scan.readBytesPerSecond of variant " + variant
	}
	judgeAll(t, map[string]judgement{
		"all hold": {gate: each, summary: summary(80, 90), verdict: passed, reason: ReasonHolds,
			parts: []string{"holds for all 2 variants: r8k,pool.ashift=12: aged-scan", "; r128k,pool.ashift=12: aged"}},
		"one fails": {gate: each, summary: summary(90, 7), verdict: failed, reason: ReasonDoesNotHold,
			message: "does not hold for 1 of 2 variants: " + large +
				": aged-scan.readBytesPerSecond = 7 (6 runs), fresh-scan.readBytesPerSecond = 100 (6 runs); " +
				"holds for " + small + ": aged-scan.readBytesPerSecond = 90 (6 runs), fresh-scan.readBytesPerSecond = 100 (6 runs)"},
		"both fail": {gate: each, summary: summary(1, 7), verdict: failed, reason: ReasonDoesNotHold,
			parts: []string{"holds for none of the 2 variants: "}},
		"one lacks data": {gate: each, summary: summary(90, -1), verdict: inconclusive, reason: ReasonNoData,
			parts: []string{"could not be decided for 1 of 2 variants: " + large}},
		"a whole variant is missing": {gate: each, summary: []results.VariantResult{numbers(small, 100, 90)}, verdict: inconclusive,
			reason: ReasonNoData, parts: []string{large + " has no valid runs"}},
		"failure beats no data": {gate: each, summary: summary(1, -1), verdict: failed, reason: ReasonDoesNotHold},
		"pair": {gate: pair, summary: summary(80, 90), verdict: passed, reason: ReasonHolds,
			message: of(small) + " = 80 (6 runs), " + of(large) + " = 90 (6 runs)"},
		"pair fails":     {gate: pair, summary: summary(90, 80), verdict: failed, reason: ReasonDoesNotHold},
		"pair lacks one": {gate: pair, summary: summary(-1, 80), verdict: inconclusive, reason: ReasonNoData, parts: []string{small}},
		"mixed": {gate: mixed, summary: summary(45, 90), verdict: passed, reason: ReasonHolds,
			parts: []string{"all 2 variants", of(large) + " = 90 (6 runs)"}},
		"mixed fails for one": {gate: mixed, summary: summary(44, 90), verdict: failed, reason: ReasonDoesNotHold,
			parts: []string{"1 of 2 variants: " + small}},
		"bound": {gate: boundGate("aged-scan.readBytesPerSecond", "50B/s", "95B/s"), summary: summary(45, 90), verdict: failed,
			reason: ReasonBelowMinimum, parts: []string{"1 of 2 variants: " + small, "below the minimum of 50"}},
		"bound, both ways": {gate: boundGate("aged-scan.readBytesPerSecond", "50B/s", "85B/s"), summary: summary(45, 90), verdict: failed,
			reason: ReasonBelowMinimum, parts: []string{"none of the 2 variants", "below the minimum of 50", "above the maximum of 85"}},
	}, small, large)
}

func TestMessagesAreCut(t *testing.T) {
	var variants []string
	for i := range 100 {
		variants = append(variants, strings.Repeat("ü", 20)+string(rune('a'+i%26))+strings.Repeat("x", i))
	}
	set, err := Compile([]v1alpha1.Gate{expression(aged + " > 1.0")}, somePhases, variants)
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range set.Judge(Evidence{}) {
		if len(status.Message) > maxMessage || !utf8.ValidString(status.Message) || len(status.Message) < maxMessage-8 {
			t.Errorf("%d bytes: %q", len(status.Message), status.Message)
		}
	}
	for limit := range 12 {
		if got := cut("üüüüüü!", limit); len(got) > max(3, limit) || !utf8.ValidString(got) {
			t.Errorf("cut to %d: %q", limit, got)
		}
	}
}

func TestJudgeKeepsTheOrder(t *testing.T) {
	gates := []v1alpha1.Gate{
		{Name: "c", Expression: aged + " > 1.0"}, {Name: "a", Expression: fresh + " > 1.0"}, {Name: "b", Expression: aged + " > 2000.0"},
	}
	set, err := Compile(gates, somePhases, []string{"default"})
	if err != nil {
		t.Fatal(err)
	}
	for i, status := range set.Judge(Evidence{}) {
		if status.Name != gates[i].Name {
			t.Errorf("gate %d is %s, want %s", i, status.Name, gates[i].Name)
		}
	}
	if got := (*Set)(nil).Judge(Evidence{}); got != nil {
		t.Errorf("a nil set judged %v", got)
	}
}

type panicking struct{}

func (panicking) judge(*Evidence, []string) []opinion { panic("<boom>") }

func (panicking) uses() []reference { return nil }

func TestJudgeSurvivesAPanic(t *testing.T) {
	set := &Set{gates: []compiled{{name: "g", rule: panicking{}}}}
	if got := set.Judge(Evidence{})[0]; got.Verdict != invalid || !strings.Contains(got.Message, "<boom>") {
		t.Errorf("got %+v", got)
	}
}
