package gate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	overTen = "writeLatency.shareOver10ms"
	writes  = "writeLatency.count"
	// overTwenty has a name of its own, and is a share like the others.
	overTwenty = "shareOver20MillisecondsPartsPerMillion"
	half       = "scanRegionTime.shareOver120ms"
	muchSlower = "scanRegionTime.shareOver150PercentOfMean"
)

// appended returns runs with these shares of appends above 10 ms, in parts per million, one for each repetition, and the number of appends.
func appended(operations int64, partsPerMillion ...int64) []results.RunResult {
	var runs []results.RunResult
	for i, value := range partsPerMillion {
		runs = append(runs, results.RunResult{Name: "r", Variant: "default", Repetition: int32(i + 1), Valid: true, Phases: []results.RunPhase{
			{Name: "redo", Outcome: results.OutcomeValid, Metrics: map[string]int64{overTen: value, writes: operations,
				overTwenty: value, "writeOperations": operations,
				half: value, muchSlower: value, "scanRegionTime.count": operations, "diskWriteRequestSize.mode": 8192}}}})
	}
	return runs
}

var redoPhases = []v1alpha1.Phase{{Name: "redo"}, {Name: "scan"}}

// TestShares: the certainty of a share depends on the number of operations behind it, whichever kind of gate reads it.
func TestShares(t *testing.T) {
	is := func(text string) v1alpha1.Gate { return expression("phase('redo')." + text) }
	tail := boundGate("redo."+overTen, "", "10400")
	for name, test := range map[string]struct {
		gate    v1alpha1.Gate
		runs    []results.RunResult
		verdict v1alpha1.Verdict
		reason  string
		says    string
	}{
		"few above":            {tail, appended(1e6, 100, 110, 90, 100, 120, 95), passed, ReasonHolds, "redo.writeLatency.shareOver10ms = 100"},
		"many above":           {tail, appended(1e6, 20_000, 21_000, 19_000, 20_500, 20_100, 19_900), failed, ReasonAboveMaximum, ""},
		"too few operations":   {tail, appended(900, 0, 0, 0, 0, 0, 0), inconclusive, ReasonTooFewOperations, "fewer than ten operations lie beyond"},
		"enough operations":    {tail, appended(1000, 0, 0, 0, 0, 0, 0), passed, ReasonHolds, "between 0 and 10000"},
		"a hundred operations": {boundGate("redo."+overTen, "", "100"), appended(100, 0, 0, 0, 0, 0), inconclusive, ReasonTooFewOperations, ""},
		"of an older name":     {boundGate("redo."+overTwenty, "", "10400"), appended(900, 0, 0, 0, 0, 0, 0), inconclusive, ReasonTooFewOperations, ""},
		"of it, and enough":    {boundGate("redo."+overTwenty, "", "10400"), appended(1000, 0, 0, 0, 0, 0, 0), passed, ReasonHolds, ""},
		"many of a few":        {tail, appended(100, 5e5, 5e5, 5e5, 5e5, 5e5), failed, ReasonAboveMaximum, ""},
		"nearly all of a few":  {boundGate("redo."+overTen, "990k", ""), appended(100, 1e6, 1e6, 1e6, 1e6, 1e6), inconclusive, ReasonTooFewOperations, ""},
		"scattered":            {tail, appended(1e6, 9000, 9500, 10_000, 10_500, 11_000, 11_500), inconclusive, ReasonUnclear, "add repetitions"},
		"regions are all":      {boundGate("redo."+half, "400k", "600k"), appended(16, 5e5, 5e5, 5e5, 5e5, 5e5), passed, ReasonHolds, ""},
		"as an expression": {is("share('writeLatency', '>', '10ms') <= 0.0104"), appended(1e6, 100, 100), passed, ReasonHolds,
			"redo.writeLatency.shareOver10ms = 100 (2 runs)"},
		"and false": {is("share('writeLatency', '>', '10ms') <= 0.0104"), appended(1e6, 20_000), failed, ReasonDoesNotHold, ""},
		"an expression on few": {is("share('writeLatency', '>', '10ms') <= 0.0104"), appended(100, 0), inconclusive, ReasonTooFewOperations,
			"with 0.1 the expression says the opposite"},
		"on few, but clear": {is("share('writeLatency', '>', '10ms') <= 0.5"), appended(100, 0), passed, ReasonHolds, ""},
		"of a variant": {expression("variant('default').phase('redo').share('writeLatency', '>', '10ms') == 0.0001"), appended(1e6, 100), passed,
			ReasonHolds, "of variant default"},
		"regions":      {is("share('scanRegionTime', '>', '120ms') == 0.5"), appended(16, 5e5), passed, ReasonHolds, ""},
		"of the mean":  {is("share('scanRegionTime', '>', '150% of mean') == 0.5"), appended(16, 5e5), passed, ReasonHolds, muchSlower},
		"as a bound":   {boundGate("redo."+muchSlower, "40%", "60%"), appended(16, 5e5, 5e5, 5e5, 5e5, 5e5), passed, ReasonHolds, ""},
		"mode":         {is("mode('diskWriteRequestSize') >= 8192"), appended(16, 0), passed, ReasonHolds, "mode = 8192"},
		"in a loop":    {expression("[phase('redo').share('writeLatency', '>', '10ms')].all(x, x < 0.01)"), appended(1e6, 100), passed, ReasonHolds, ""},
		"not measured": {is("share('readLatency', '>', '10ms') < 0.5"), appended(1e6, 100), inconclusive, ReasonNoData, "measured no readLatency.shareOver10ms"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Compile([]v1alpha1.Gate{test.gate}, redoPhases, []string{"default"})
			if err != nil {
				t.Fatal(err)
			}
			got := set.Judge(Evidence{Summary: results.Summarise(test.runs), Runs: test.runs})[0]
			if got.Verdict != test.verdict || got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
				t.Errorf("%s, %s: %s", got.Verdict, got.Reason, got.Message)
			}
		})
	}
}

// tails returns six runs of a variant, each with the same share of this number of appends.
func tails(variant, metric string, operations, partsPerMillion int64) []results.RunResult {
	runs := appended(operations, slices.Repeat([]int64{partsPerMillion}, 6)...)
	for i := range runs {
		runs[i].Variant, runs[i].Phases[0].Metrics[metric] = variant, partsPerMillion
	}
	return runs
}

// TestSharesCompared: neither rounding nor too few operations decide a comparison, unless it would be the same without them.
func TestSharesCompared(t *testing.T) {
	const below, much = "writeLatency.shareBelow10ms", 150_000_000
	for name, test := range map[string]struct {
		metric                string
		operations, then, now int64
		inBaseline, uncounted bool
		verdict               v1alpha1.Verdict
		reason, says          string
		operationsNow         int64 // if it is larger
	}{
		"rounded to one": {metric: overTen, operations: much, then: 1, now: 1, verdict: inconclusive, reason: ReasonTooCoarse,
			says: "as low as 1: one step of it is 100%"},
		"a hundred times as much": {metric: overTen, operations: much, then: 100, now: 100, verdict: passed, reason: ReasonHolds},
		"five of 20,000": {metric: overTen, operations: 20_000, then: 250, now: 250, verdict: inconclusive, reason: ReasonTooFewOperations,
			says: "may be from 250 to 500 ppm in variant old, and from 250 to 500 now: fewer than ten operations lie beyond its bound"},
		"five of 20,000, of an older name": {metric: overTwenty, operations: 20_000, then: 250, now: 250, verdict: inconclusive,
			reason: ReasonTooFewOperations},
		"many more":         {metric: overTen, operations: 20_000, then: 250, now: 20_000, verdict: failed, reason: ReasonWorse},
		"many fewer":        {metric: overTen, operations: 20_000, then: 20_000, now: 250, verdict: passed, reason: ReasonHolds},
		"perhaps no more":   {metric: overTen, operations: 20_000, then: 450, now: 510, verdict: inconclusive, reason: ReasonTooFewOperations},
		"enough":            {metric: overTen, operations: 20_000, then: 20_000, now: 20_000, verdict: passed, reason: ReasonHolds},
		"all of few":        {metric: below, operations: 100, then: 1e6, now: 1e6, verdict: inconclusive, reason: ReasonTooFewOperations},
		"all of many":       {metric: below, operations: 1e6, then: 1e6, now: 1e6, verdict: passed, reason: ReasonHolds},
		"few of a baseline": {metric: overTen, operations: 20_000, then: 450, now: 510, operationsNow: 1e6, inBaseline: true, verdict: inconclusive, reason: ReasonTooFewOperations},
		"of an uncounted baseline": {metric: overTen, operations: 20_000, then: 450, now: 510, operationsNow: 1e6, inBaseline: true, uncounted: true,
			verdict: failed, reason: ReasonWorse},
	} {
		t.Run(name, func(t *testing.T) {
			gate := compareGate("redo."+test.metric, toVariant, "old")
			evidence := evidenceOf(tails("old", test.metric, test.operations, test.then),
				tails("new", test.metric, max(test.operations, test.operationsNow), test.now))
			if test.inBaseline {
				gate = compareGate("redo."+test.metric, toBaseline, "")
				gate.Compare.AcceptSingleDay, gate.Variants = true, []v1alpha1.VariantParts{"new"}
				evidence.Baseline.Values = func(_, _, metric string) Stored {
					stored := Stored{Values: [][]int64{slices.Repeat([]int64{test.then}, 6)}, Unit: results.UnitPartsPerMillion}
					if metric == writes {
						stored.Values = [][]int64{slices.Repeat([]int64{test.operations}, 6)}
						if test.uncounted {
							stored.Values = nil
						}
					}
					return stored
				}
			}
			set, err := Compile([]v1alpha1.Gate{gate}, redoPhases, []string{"new", "old"})
			if err != nil {
				t.Fatal(err)
			}
			got := set.Judge(evidence)[0]
			if got.Verdict != test.verdict || got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
				t.Errorf("%s, %s: %s", got.Verdict, got.Reason, got.Message)
			}
		})
	}
}

// TestRatioOfRoundedShares: 90 and 210 of 150 million operations are both 1 ppm.
func TestRatioOfRoundedShares(t *testing.T) {
	for ppm, want := range map[int64]string{1: ReasonTooCoarse, 100: ReasonHolds} {
		evidence := evidenceOf(tails("old", overTen, 150_000_000, ppm), tails("new", overTen, 150_000_000, ppm))
		set, err := Compile([]v1alpha1.Gate{ratioGate("redo."+overTen, "", "old", "", "1.05")}, redoPhases, []string{"new", "old"})
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Judge(evidence)[0]; got.Reason != want {
			t.Errorf("%d ppm: %s, %s: %s", ppm, got.Verdict, got.Reason, got.Message)
		}
	}
}

// TestSharesInDoubtTogether: of 1,000 operations, none is above the bounds, so each share may be up to 1%. All of them together may be more
// than any of them alone.
func TestSharesInDoubtTogether(t *testing.T) {
	sum := func(count int, limit string) v1alpha1.Gate {
		var terms []string
		for i := range count {
			terms = append(terms, fmt.Sprintf("phase('redo').share('writeLatency', '>', '%dms')", 10+i))
		}
		return expression(strings.Join(terms, " + ") + " <= " + limit)
	}
	one, other := "phase('redo').share('writeLatency', '>', '10ms')", "phase('redo').share('writeLatency', '>', '11ms')"
	for name, test := range map[string]struct {
		gate   v1alpha1.Gate
		reason string
		says   string
	}{
		"one":              {sum(1, "0.015"), ReasonHolds, ""},
		"two":              {sum(2, "0.015"), ReasonTooFewOperations, "with 0.01 and 0.01 the expression says the opposite"},
		"two, and clear":   {sum(2, "0.021"), ReasonHolds, ""},
		"either alone":     {expression(one + " + 2.0 * " + other + " <= 0.015"), ReasonTooFewOperations, "with 0.01 the expression"},
		"opposite ends":    {expression("math.abs(" + one + " - " + other + ") < 0.005"), ReasonTooFewOperations, "with 0.01 the expression"},
		"six":              {sum(6, "0.055"), ReasonTooFewOperations, "0.01 and 0.01 and 0.01 and 0.01 and 0.01 and 0.01"},
		"three of six":     {sum(6, "0.025"), ReasonTooFewOperations, "with 0.01 and 0.01 and 0.01 the expression"},
		"eight":            {sum(8, "0.075"), ReasonTooFewOperations, ""},
		"eight, and clear": {sum(8, "0.09"), ReasonHolds, ""},
	} {
		runs := appended(1000, 0, 0)
		for _, run := range runs {
			for i := range 8 {
				run.Phases[0].Metrics[fmt.Sprintf("writeLatency.shareOver%dms", 10+i)] = 0
			}
		}
		set, err := Compile([]v1alpha1.Gate{test.gate}, redoPhases, []string{"default"})
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Judge(evidenceOf(runs))[0]; got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
			t.Errorf("%s: %s, %s: %s", name, got.Verdict, got.Reason, got.Message)
		}
	}
}

// TestSharesRefused: a mistake in a name or bound is reported before anything runs, and the message says what to write.
func TestSharesRefused(t *testing.T) {
	for text, says := range map[string]string{
		"phase('redo').share('appendLatency', '>', '10ms') < 0.1":         `no distribution "appendLatency": use one of readLatency, writeLatency`,
		"phase('redo').share('writeLatency', '>', '10 parsecs') < 0.1":    "write shareOver10ms",
		"phase('redo').share('writeLatency', '>', '150% of mean') < 0.1":  "only shares of scanRegionTime",
		"phase('redo').share('scanRegionTime', '>', '1.5 of mean') < 0.1": "write shareOver10ms, shareOver150PercentOfMean",
		"phase('redo').share('writeLatency', '>=', '10ms') < 0.1":         "write '>' or '<'",
		"phase('redo').share('writeLatency', '10ms') < 0.1":               statisticHint,
		"phase('redo').share('writeLatency', '>', 10) < 0.1":              statisticHint,
		"phase('rodo').share('writeLatency', '>', '10ms') < 0.1":          `did you mean "redo"`,
		"phase('redo').share < 0.1":                                       "there is no metric",
		"phase('redo').mode('writeLatency') < 1.0":                        "use a percentile",
		"phase('redo').mode('diskReadRequestSize' + 'x') < 1.0":           "one piece",
		"['a'].all(n, phase('redo').mode(n) < 1.0)":                       "texts in quotes",
		"[phase('redo')].all(p, p.mode('diskReadRequestSize') > 1.0)":     "needs a phase before it",
		"phase('redo').readBytes.mode('diskReadRequestSize') > 1.0":       statisticHint,
		"share('writeLatency', '>', '10ms') < 0.1":                        statisticHint,
		"variant('v').phase('redo').mode('diskReadRequestSize') < 1.0":    `there is no variant "v"`,
	} {
		_, err := Compile([]v1alpha1.Gate{expression(text)}, redoPhases, []string{"default"})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for path, says := range map[string]string{
		"redo.appendLatency.shareOver10ms":     "use one of readLatency",
		"redo.writeLatency.shareOver10":        "write shareOver10ms",
		"redo.job.writeLatency.median":         "write shareOver10ms",
		"redo.diskReadRequestSize.shareBelow9": "write shareBelow8KiB",
		"redo.job.readByte":                    "there is no metric",
	} {
		_, err := Compile([]v1alpha1.Gate{boundGate(path, "1", "")}, redoPhases, []string{"default"})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestDerived: documents are reduced to the metrics of distributions that the gates need.
func TestDerived(t *testing.T) {
	set, err := Compile([]v1alpha1.Gate{
		boundGate("redo."+overTen, "", "5%"), expression("phase('redo').share('writeLatency', '>', '10ms') < 0.1 && phase('scan').readBytes > 0.0"),
		compareGate("redo.writeLatency.shareOver1ms", "Baseline", ""), expression("phase('scan').mode('diskReadRequestSize') > 1.0"),
	}, redoPhases, []string{"default"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"redo": {writes, overTen, "writeLatency.shareOver1ms"},
		"scan": {"diskReadRequestSize.mode"}}
	if diff := cmp.Diff(want, set.Derived()); diff != "" {
		t.Error(diff)
	}
	if len((*Set)(nil).Derived()) > 0 {
		t.Error("no gates ask for nothing")
	}
}
