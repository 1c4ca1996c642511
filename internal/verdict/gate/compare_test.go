package gate

import (
	"math"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

const scanned = "aged-scan.readBytesPerSecond"

// measured returns valid runs of a variant, one for each value of the metric PHASE.METRIC; a negative one is a run without it.
func measured(variant, path string, values ...int64) []results.RunResult {
	phase, metric, _ := strings.Cut(path, ".")
	var runs []results.RunResult
	for i, value := range values {
		run := results.RunResult{Name: variant, Variant: variant, Repetition: int32(i + 1), Attempt: 1, Index: int32(i), Valid: true}
		if value >= 0 {
			run.Phases = []results.RunPhase{{Name: phase, Outcome: results.OutcomeValid, Metrics: map[string]int64{metric: value}}}
		}
		runs = append(runs, run)
	}
	return runs
}

// scaled returns six values around a level, with a spread of 1%.
func scaled(level float64) []int64 {
	var values []int64
	for _, unit := range []float64{1.004, 0.997, 1.001, 0.995, 1.003, 1.000} {
		values = append(values, int64(math.Round(1e6*level*unit)))
	}
	return values
}

func evidenceOf(runs ...[]results.RunResult) Evidence {
	evidence := Evidence{Order: v1alpha1.OrderInterleaved}
	for _, some := range runs {
		evidence.Runs = append(evidence.Runs, some...)
	}
	evidence.Summary = results.Summarise(evidence.Runs)
	return evidence
}

func judgeOnly(t *testing.T, evidence Evidence, gates []v1alpha1.Gate, variants ...string) []v1alpha1.GateStatus {
	t.Helper()
	set, err := Compile(gates, somePhases, variants)
	if err != nil {
		t.Fatal(err)
	}
	statuses := set.Judge(evidence)
	for _, status := range statuses {
		t.Log(status.Verdict, status.Reason, status.Message)
	}
	return statuses
}

type comparing struct {
	acceptSingleDay bool
	evidence        Evidence
	metric          string // scanned, if empty
	tolerance       v1alpha1.Share
	verdict         v1alpha1.Verdict
	reason, message string
}

func (c comparing) check(t *testing.T, to string) {
	t.Helper()
	metric := scanned
	if c.metric != "" {
		metric = c.metric
	}
	gate := compareGate(metric, to, "")
	if to == toVariant {
		gate = compareGate(metric, to, "old")
	}
	gate.Compare.Tolerance, gate.Compare.AcceptSingleDay = c.tolerance, c.acceptSingleDay
	got := judgeOnly(t, c.evidence, []v1alpha1.Gate{gate}, "new", "old")[0]
	if got.Verdict != c.verdict || got.Reason != c.reason || !strings.Contains(got.Message, c.message) {
		t.Errorf("%s %s %q, want %s %s %q", got.Verdict, got.Reason, got.Message, c.verdict, c.reason, c.message)
	}
}

func TestCompareVariants(t *testing.T) {
	old := measured("old", scanned, scaled(1)...)
	now := func(values ...int64) Evidence { return evidenceOf(old, measured("new", scanned, values...)) }
	latency := "aged-scan.readLatencyP99Nanoseconds"
	slower := func(level float64) Evidence {
		return evidenceOf(measured("old", latency, scaled(1)...), measured("new", latency, scaled(level)...))
	}
	kept := now(scaled(1)...)
	kept.Runs[2].KeptFrom = "old"
	invalidRun := now(scaled(1)...)
	for i := range invalidRun.Runs {
		invalidRun.Runs[i].Valid = invalidRun.Runs[i].Variant == "old"
	}
	invalidRun.Summary = results.Summarise(invalidRun.Runs)
	noisy := func(level, noise float64) Evidence {
		evidence := now(scaled(level)...)
		evidence.Noise.Floor = func(_, _ string) (float64, bool) { return noise, true }
		return evidence
	}
	sequential := now(scaled(0.85)...)
	sequential.Order = v1alpha1.OrderSequential
	operations := "aged-scan.readOperationsPerSecond"
	steady := func(metric string, before, after int64) Evidence {
		six := func(value int64) []int64 { return []int64{value, value, value, value, value, value} }
		return evidenceOf(measured("old", metric, six(before)...), measured("new", metric, six(after)...))
	}
	rates := func(before, after int64) Evidence { return steady(operations, before, after) }
	const perRead, fragmentation = "aged-scan.diskReadsPerReadMilli", "aged-scan.freeSpaceFragmentationPartsPerMillion"
	const perTransaction = "aged-scan.diskReadBytesPerTransaction"
	equal := evidenceOf(measured("old", scanned, 7, 7, 7, 7, 7, 7), measured("new", scanned, 7, 7, 7, 7, 7, 7))
	for name, c := range map[string]comparing{
		"same": {evidence: now(scaled(1)...), verdict: passed, reason: ReasonHolds,
			message: scanned +
				" is as high as in variant old (from 0.0% to 0.0% with a confidence of 93.8%; 6 pairs of runs): within the tolerance of 5%, p = 0.016"},
		"better":   {evidence: now(scaled(1.3)...), verdict: passed, reason: ReasonHolds, message: "is 30.0% higher than in variant old"},
		"3% worse": {evidence: now(scaled(0.97)...), verdict: passed, reason: ReasonHolds, message: "is 3.0% lower than"},
		"10% worse": {evidence: now(scaled(0.9)...), verdict: failed, reason: ReasonWorse,
			message: "is 10.0% lower than in variant old (from -10.0% to -10.0% with a confidence of 93.8%; 6 pairs of runs): worse than the " +
				"tolerance of 5%, p = 0.016"},
		"at the limit": {evidence: now(1, 1, 1, 1, 1, 1), tolerance: "0%", verdict: failed, reason: ReasonWorse},
		"exactly so": {evidence: now(scaled(0.95)...), verdict: inconclusive, reason: ReasonUnclear,
			message: "neither worse than the tolerance of 5% (p ="},
		"tolerance": {evidence: now(scaled(0.9)...), tolerance: "12.5%", verdict: passed, reason: ReasonHolds,
			message: "within the tolerance of 12.5%"},
		"a few": {evidence: now(scaled(0.5)[:4]...), verdict: inconclusive, reason: ReasonTooFewRuns,
			message: "use at least 6 repetitions"},
		"one": {evidence: now(900000), verdict: inconclusive, reason: ReasonTooFewRuns,
			message: "1 pair of runs): too few runs to show"},
		"scattered": {evidence: now(1500000, 500000, 900000, 1100000, 700000, 1300000), verdict: inconclusive, reason: ReasonUnclear,
			message: "not even 50 repetitions would decide"},
		"not measured":   {evidence: now(-1, -1, -1, -1, -1, -1), verdict: inconclusive, reason: ReasonNoData, message: "variant new"},
		"no valid runs":  {evidence: invalidRun, verdict: inconclusive, reason: ReasonNoData, message: "variant new has no metrics"},
		"nothing at all": {evidence: Evidence{}, verdict: inconclusive, reason: ReasonNoData, message: "no data"},
		"never together": {evidence: evidenceOf(old, measured("new", scanned, -1, -1, -1, -1, -1, -1, 900000)[6:]), verdict: inconclusive, reason: ReasonNoData,
			message: "in the same repetition"},
		"coarse": {evidence: rates(4, 3), metric: operations, verdict: inconclusive, reason: ReasonTooCoarse,
			message: "is as low as 3 a second: one step of it is 33.3%, too much for a tolerance of 5%"},
		"thousandths": {evidence: steady(perRead, 2, 3), metric: perRead, verdict: inconclusive, reason: ReasonTooCoarse,
			message: "is as low as 2: one step of it is 50%, too much for a tolerance of 5%: use a bound, or a larger tolerance"},
		"whole bytes": {evidence: steady(perTransaction, 2, 1), metric: perTransaction, verdict: inconclusive, reason: ReasonTooCoarse,
			message: "is as low as 1: one step of it is 100%"},
		"whole percents": {evidence: steady(fragmentation, 30_000, 30_000), metric: fragmentation, verdict: inconclusive,
			reason: ReasonTooCoarse, message: "one step of it is 33.3%"},
		"enough percents": {evidence: steady(fragmentation, 500_000, 500_000), metric: fragmentation, verdict: passed, reason: ReasonHolds},
		"not so coarse":   {evidence: rates(44, 33), metric: operations, tolerance: "10%", verdict: failed, reason: ReasonWorse},
		"no tolerance":    {evidence: rates(1000, 900), metric: operations, tolerance: "0%", verdict: failed, reason: ReasonWorse},
		"zero": {evidence: now(0, 0, 0, 0, 0, 0), verdict: inconclusive, reason: ReasonNoRatio,
			message: "only values above 0 have a ratio: use a bound"},
		"kept pool":       {evidence: kept, verdict: inconclusive, reason: ReasonNotIndependent, message: "set target.zfs.reset to Pool"},
		"no spread":       {evidence: equal, verdict: passed, reason: ReasonHolds, message: "p = 0.016"},
		"no spread, less": {evidence: now(1, 1, 1, 1, 1, 1), verdict: failed, reason: ReasonWorse},
		"within noise": {evidence: noisy(0.9, 0.3), verdict: inconclusive, reason: ReasonUnclear,
			message: "neither worse than the noise of 13% with so many runs, which exceeds the tolerance of 5%"},
		"beyond noise":         {evidence: noisy(0.8, 0.3), verdict: failed, reason: ReasonWorse, message: "worse than the noise"},
		"noise of six is less": {evidence: noisy(0.9, 0.06), verdict: failed, reason: ReasonWorse, message: "worse than the tolerance of 5%"},
		"little noise":         {evidence: noisy(0.9, 0.01), verdict: failed, reason: ReasonWorse, message: "worse than the tolerance of 5%"},
		"noise, same":          {evidence: noisy(1, 0.06), verdict: passed, reason: ReasonHolds, message: "within the tolerance of 5%"},
		"sequential": {evidence: sequential, verdict: failed, reason: ReasonWorse,
			message: "6 runs, 6 there)"},
		"higher latency": {metric: latency, evidence: slower(1.1), verdict: failed, reason: ReasonWorse, message: "is 10.0% higher than"},
		"lower latency":  {metric: latency, evidence: slower(0.5), verdict: passed, reason: ReasonHolds, message: "is 50.0% lower than"},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, toVariant) })
	}
}

// TestFamily: many comparisons are tested together, and a gate passes only if it passes for all variants.
func TestFamily(t *testing.T) {
	gates := make([]v1alpha1.Gate, 30)
	for i := range gates {
		gates[i] = compareGate(scanned, toVariant, "old")
	}
	evidence := evidenceOf(measured("old", scanned, scaled(1)...), measured("new", scanned, scaled(0.5)...))
	for _, count := range []int{1, 4, 30} {
		if status := judgeOnly(t, evidence, gates[:count], "new", "old")[0]; status.Verdict != failed {
			t.Errorf("%d comparisons: %+v", count, status)
		}
	}
	evidence.Share = LargeShare
	if status := judgeOnly(t, evidence, gates[:2], "new", "old")[0]; status.Verdict != failed {
		t.Errorf("at the first look: %+v", status)
	}
	evidence.Share = SmallShare
	if status := judgeOnly(t, evidence, gates[:2], "new", "old")[0]; status.Verdict != inconclusive ||
		!strings.Contains(status.Message, "use at least 8 repetitions for 2 comparisons") {
		t.Errorf("at the last look: %+v", status)
	}
	two := evidenceOf(measured("old", scanned, scaled(1)...), measured("new", scanned, scaled(1)...),
		measured("newer", scanned, scaled(0.9)...))
	status := judgeOnly(t, two, gates[:1], "new", "newer", "old")[0]
	if status.Verdict != failed || len(status.Comparisons) != 2 || status.Comparisons[0].Variant != "newer" ||
		status.Comparisons[1].Verdict != passed {
		t.Errorf("%+v", status)
	}
}

// TestUndecidable: the number of repetitions that a verdict needs is known before anything runs.
func TestUndecidable(t *testing.T) {
	gates := func(count int, to string) (gates []v1alpha1.Gate) {
		for range count {
			gates = append(gates, compareGate(scanned, to, map[string]string{toVariant: "old"}[to]))
		}
		return gates
	}
	const interleaved, sequential = v1alpha1.OrderInterleaved, v1alpha1.OrderSequential
	for name, c := range map[string]struct {
		gates []v1alpha1.Gate
		order v1alpha1.RunOrder
		looks []Look
		want  string
	}{
		"five":      {gates(1, toVariant), interleaved, []Look{{5, 1}}, "gates cannot be decided with 5 repetitions: comparisons of variants need at least 6 repetitions"},
		"six":       {gates(1, toVariant), interleaved, []Look{{6, 1}}, ""},
		"many":      {gates(30, toVariant), interleaved, []Look{{6, 1}}, ""},
		"mixed":     {append(gates(1, toVariant), gates(3, toBaseline)...), interleaved, []Look{{6, 1}}, "at least 8 repetitions"},
		"sequence":  {gates(1, toVariant), sequential, []Look{{4, 1}}, ""},
		"sequences": {gates(10, toVariant), sequential, []Look{{4, 1}}, "at least 5 repetitions"},
		"adaptive":  {gates(1, toVariant), interleaved, []Look{{6, LargeShare}, {7, SmallShare}}, ""},
		"few looks": {gates(1, toVariant), interleaved, []Look{{5, LargeShare}, {7, SmallShare}}, "at least 8 repetitions"},
		"histories": {append(gates(1, toVariant), gates(3, toHistory)...), interleaved, []Look{{6, 1}}, "at least 8 repetitions"},
		"baseline":  {gates(3, toBaseline), interleaved, []Look{{3, 1}}, ""},
		"history":   {gates(3, toHistory), interleaved, []Look{{1, 1}}, ""},
		"bound":     {[]v1alpha1.Gate{boundGate(scanned, "1B/s", "")}, interleaved, []Look{{4, 1}}, "bounds and ratios need at least 5 repetitions"},
		"ratio":     {[]v1alpha1.Gate{ratioGate(scanned, unaged, "", "1", "")}, interleaved, []Look{{4, 1}}, "bounds and ratios need at least 5 repetitions"},
		"bounded":   {[]v1alpha1.Gate{boundGate(scanned, "1B/s", "")}, interleaved, []Look{{5, 1}}, ""},
		"no gates":  {nil, interleaved, []Look{{1, 1}}, ""},
	} {
		set, err := Compile(c.gates, somePhases, []string{"new", "old"})
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Undecidable(c.order, c.looks...); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestMatrixVariantsAreComparedWithTheirLike(t *testing.T) {
	evidence := evidenceOf(
		measured("old,dataset.recordsize=8k", scanned, scaled(1)...), measured("new,dataset.recordsize=8k", scanned, scaled(1)...),
		measured("old,dataset.recordsize=128k", scanned, scaled(4)...), measured("new,dataset.recordsize=128k", scanned, scaled(2)...))
	status := judgeOnly(t, evidence, []v1alpha1.Gate{compareGate(scanned, toVariant, "old")},
		"new,dataset.recordsize=128k", "new,dataset.recordsize=8k", "old,dataset.recordsize=128k", "old,dataset.recordsize=8k")[0]
	if status.Verdict != failed || len(status.Comparisons) != 2 || status.Comparisons[0].Variant != "new,dataset.recordsize=128k" ||
		status.Comparisons[0].ChangePartsPerMillion != -500000 || status.Comparisons[1].ChangePartsPerMillion != 0 {
		t.Errorf("%+v", status)
	}
}

func TestCompareWithBaseline(t *testing.T) {
	with := func(level float64, baseline Earlier) Evidence {
		evidence := evidenceOf(measured("new", scanned, scaled(level)...), measured("old", scanned, scaled(level)...))
		evidence.Baseline = baseline
		return evidence
	}
	stored := func(unit string, values ...int64) Earlier {
		return Earlier{Values: func(_, phase, metric string) Stored {
			if phase+"."+metric != scanned {
				return Stored{}
			}
			if len(values) == 0 {
				return Stored{Unit: unit}
			}
			return Stored{Values: [][]int64{values}, Unit: unit}
		}}
	}
	changed := Earlier{Values: func(_, _, _ string) Stored {
		return Stored{Values: [][]int64{scaled(1)}, Unit: results.UnitBytesPerSecond, Unlike: "other phases"}
	}}
	uncalibrated := with(1, Earlier{})
	uncalibrated.Noise = Noise{Refused: &Refusal{ReasonCalibrationUnlike, "another node", true}}
	good := stored(results.UnitBytesPerSecond, scaled(1)...)
	for name, c := range map[string]comparing{
		"same": {evidence: with(1, good), verdict: passed, reason: ReasonHolds, message: "in the baseline (from"},
		"worse": {evidence: with(0.85, good), verdict: failed, reason: ReasonWorse,
			message: "6 runs, 6 there): worse than the tolerance of 5%, p = 0.0022"},
		"better": {evidence: with(2, good), verdict: passed, reason: ReasonHolds, message: "100.0% higher than in the baseline"},
		"one sample": {evidence: with(0.1, stored(results.UnitBytesPerSecond, 1000000)), verdict: inconclusive, reason: ReasonTooFewRuns,
			message: "use at least 49 repetitions for 2 comparisons, or compare with more than 1 run"},
		"nothing":      {evidence: with(1, Earlier{}), verdict: inconclusive, reason: ReasonNoData, message: "baseline accept"},
		"other metric": {evidence: with(1, stored("", []int64{}...)), verdict: inconclusive, reason: ReasonNoData},
		"other unit": {evidence: with(1, stored("KiB/s", scaled(1)...)), verdict: invalid, reason: ReasonBaselineInvalid,
			message: "measured in bytes/s"},
		"zeros":        {evidence: with(1, stored(results.UnitBytesPerSecond, 0, 0, 0, 0, 0, 0)), verdict: inconclusive, reason: ReasonNoRatio},
		"changed":      {evidence: with(1, changed), verdict: invalid, reason: ReasonBaselineUnlike, message: "other phases"},
		"uncalibrated": {evidence: uncalibrated, verdict: invalid, reason: ReasonCalibrationUnlike, message: "another node"},
		"missing": {evidence: with(1, Earlier{Refused: &Refusal{ReasonBaselineMissing, "ConfigMap b is not there", false}}),
			verdict: inconclusive, reason: ReasonBaselineMissing, message: "ConfigMap b is not there"},
		"unlike": {evidence: with(1, Earlier{Refused: &Refusal{ReasonBaselineUnlike, "another kernel", true}}), verdict: invalid,
			reason: ReasonBaselineUnlike, message: "another kernel"},
	} {
		t.Run(name, func(t *testing.T) {
			c.acceptSingleDay = true
			c.check(t, toBaseline)
		})
	}
}

func TestCompareDefinitionsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		metric, variant string
		tolerance       v1alpha1.Share
		says            string
	}{
		"no direction":   {"aged-scan.readBytes", "old", "5%", "has no better direction"},
		"all accepted":   {scanned, "old", "100%", "accepts everything"},
		"no share":       {scanned, "old", "5", "is not a percentage"},
		"not a number":   {scanned, "old", "NaN%", "is not a percentage"},
		"no variant":     {scanned, "", "5%", "set it to the variant"},
		"no other":       {scanned, "only", "5%", `there is no variant "only"`},
		"power of two":   {"aged-scan.largestFreeSegmentBytes", "old", "5%", "only known down to a power of two"},
		"unknown metric": {"aged-scan.speed", "old", "5%", "there is no metric"},
	} {
		gate := compareGate(c.metric, toVariant, c.variant)
		gate.Compare.Tolerance = c.tolerance
		if _, err := Compile([]v1alpha1.Gate{gate}, somePhases, []string{"new", "old"}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if _, err := Compile([]v1alpha1.Gate{compareGate("aged-scan.readLatencyMeanNanoseconds", toHistory, "")}, somePhases,
		[]string{"old"}); err == nil || !strings.Contains(err.Error(), "only primary metrics") {
		t.Error(err)
	}
	if _, err := Compile([]v1alpha1.Gate{compareGate(scanned, toVariant, "old")}, somePhases, []string{"old"}); err == nil ||
		!strings.Contains(err.Error(), "no other variant") {
		t.Error(err)
	}
}
