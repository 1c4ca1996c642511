package gate

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

const unaged = "fresh-scan.readBytesPerSecond"

func ratioGate(of, to, toVariant, smallest, largest string) v1alpha1.Gate {
	return v1alpha1.Gate{Name: "g", Ratio: &v1alpha1.RatioGate{Of: v1alpha1.MetricPath(of), To: v1alpha1.MetricPath(to),
		ToVariant: v1alpha1.VariantParts(toVariant), Min: v1alpha1.Ratio(smallest), Max: v1alpha1.Ratio(largest)}}
}

// agedTo returns runs with these rates of their aged and fresh scans. A negative rate means that the scan was not measured.
func agedTo(aged, fresh []int64) []results.RunResult {
	runs, others := measured("default", scanned, aged...), measured("default", unaged, fresh...)
	for i := range runs {
		runs[i].Phases = append(runs[i].Phases, others[i].Phases...)
	}
	return runs
}

// times multiplies each value by a factor of its own, like a node that is slower in one run than in the next.
func times(values []int64, factors ...int64) []int64 {
	var all []int64
	for i, value := range values {
		all = append(all, value*factors[i%len(factors)])
	}
	return all
}

var (
	// shares are aged rates for the fresh rates in thousand, with known ratios from 0.81 to 0.86.
	shares   = []int64{830, 810, 860, 820, 850, 840}
	thousand = []int64{1000, 1000, 1000, 1000, 1000, 1000}
	// moods are factors that differ by far more than the ratios.
	moods = []int64{1, 7, 2, 9, 3, 50}
)

// TestRatios: each run has its own ratio, and the interval of their median decides. A factor that all phases of a run have in common
// cancels out.
func TestRatios(t *testing.T) {
	all := agedTo(shares, thousand)
	changed := func(change func([]results.RunResult)) []results.RunResult {
		runs := agedTo(shares, thousand)
		change(runs)
		return runs
	}
	eighty := ratioGate(scanned, unaged, "", "80%", "")
	for name, test := range map[string]struct {
		gate    v1alpha1.Gate
		runs    []results.RunResult
		verdict v1alpha1.Verdict
		reason  string
		says    string
	}{
		"above": {eighty, all, passed, ReasonHolds, "aged-scan.readBytesPerSecond / fresh-scan.readBytesPerSecond = 0.835 (6 runs), " +
			"the median lies between 0.81 and 0.86 with a confidence of 96.9%: at least 80%"},
		"a common factor": {eighty, agedTo(times(shares, moods...), times(thousand, moods...)), passed, ReasonHolds,
			"= 0.835 (6 runs), the median lies between 0.81 and 0.86 "},
		"no common factor": {eighty, agedTo(times(shares, moods...), times(thousand, 50, 1, 7, 2, 9, 3)), inconclusive, ReasonUnclear, ""},
		"between":          {ratioGate(scanned, unaged, "", "80%", "1.1x"), all, passed, ReasonHolds, "between 80% and 1.1x"},
		"exactly":          {ratioGate(scanned, unaged, "", "0.8", "80%"), agedTo([]int64{8, 80, 800, 4, 40, 400}, []int64{10, 100, 1000, 5, 50, 500}), passed, ReasonHolds, "between 0.8x and 80%"},
		"a third":          {ratioGate(scanned, unaged, "", "", "33.4%"), agedTo([]int64{1, 1, 1, 1, 1}, []int64{3, 3, 3, 3, 3}), passed, ReasonHolds, "= 0.3333 (5 runs)"},
		"below":            {ratioGate(scanned, unaged, "", "87%", ""), all, failed, ReasonBelowMinimum, "below the minimum of 87%"},
		"beyond":           {ratioGate(scanned, unaged, "", "", "0.8"), all, failed, ReasonAboveMaximum, "above the maximum of 0.8x"},
		"one is below":     {ratioGate(scanned, unaged, "", "0.815", ""), all, inconclusive, ReasonUnclear, "either side of the minimum of 0.815x"},
		"one is above":     {ratioGate(scanned, unaged, "", "", "85.5%"), all, inconclusive, ReasonUnclear, "either side of the maximum"},
		"large":            {ratioGate(unaged, scanned, "", "1000x", ""), agedTo([]int64{1, 1, 1, 1, 1}, times(thousand[:5], 5)), passed, ReasonHolds, "= 5000 (5 runs)"},
		"few runs":         {eighty, all[:4], inconclusive, ReasonTooFewRuns, "use at least 5 repetitions"},
		"nothing":          {eighty, nil, inconclusive, ReasonNoData, "no valid runs"},
		"all zero":         {eighty, agedTo(shares, make([]int64, 6)), inconclusive, ReasonNoRatio, "is 0 in repetition 1"},
		"one zero":         {eighty, agedTo(shares, []int64{1000, 1000, 1000, 0, 1000, 1000}), inconclusive, ReasonNoRatio, "is 0 in repetition 4"},
		"nothing of zero":  {ratioGate(scanned, unaged, "", "", "1x"), agedTo(make([]int64, 6), thousand), passed, ReasonHolds, "= 0 (6 runs)"},
		"never measured":   {eighty, agedTo(shares, slices.Repeat([]int64{-1}, 6)), inconclusive, ReasonNoData, "no metrics for phase fresh-scan"},
		"once unmeasured":  {eighty, agedTo(shares, []int64{1000, 1000, -1, 1000, 1000, 1000}), inconclusive, ReasonNoData, "readBytesPerSecond of variant default was not measured in repetition 3"},
		"once neither": {eighty, agedTo([]int64{830, -1, 860, 820, 850, 840}, []int64{1000, -1, 1000, 1000, 1000, 1000}),
			inconclusive, ReasonNoData, "aged-scan.readBytesPerSecond of variant default was not measured in repetition 2"},
		"an invalid run": {eighty, changed(func(runs []results.RunResult) { runs[1].Valid, runs[1].Phases = false, nil }), passed, ReasonHolds, "(5 runs)"},
		"a kept pool":    {eighty, changed(func(runs []results.RunResult) { runs[3].KeptFrom = "r2" }), inconclusive, ReasonNotIndependent, "reset to Pool"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeOnly(t, evidenceOf(test.runs), []v1alpha1.Gate{test.gate}, "default")[0]
			if got.Verdict != test.verdict || got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
				t.Errorf("want %s, %s: %s", test.verdict, test.reason, test.says)
			}
		})
	}
	// One of two looks has a smaller level: six runs have a p of 1.6%, which is more than a fifth of 5%.
	evidence := evidenceOf(all)
	evidence.Share = SmallShare
	if got := judgeOnly(t, evidence, []v1alpha1.Gate{eighty}, "default")[0]; got.Reason != ReasonTooFewRuns {
		t.Error(got)
	}
}

// TestRatiosToVariants: runs of the same repetition are pairs, whatever their number in the other variant.
func TestRatiosToVariants(t *testing.T) {
	old := measured("old", scanned, times(thousand, moods...)...)
	young := measured("new", scanned, times(shares, moods...)...)
	toOld := ratioGate(scanned, "", "old", "80%", "90%")
	for name, test := range map[string]struct {
		gate     v1alpha1.Gate
		evidence Evidence
		verdict  v1alpha1.Verdict
		reason   string
		says     string
	}{
		"pairs": {toOld, evidenceOf(old, young), passed, ReasonHolds, "aged-scan.readBytesPerSecond / aged-scan.readBytesPerSecond of variant old = " +
			"0.835 (6 pairs), the median lies between 0.81 and 0.86 with a confidence of 96.9%: between 80% and 90%"},
		"in any order":    {toOld, evidenceOf([]results.RunResult{young[4], young[1], young[5], young[0], young[3], young[2]}, old), passed, ReasonHolds, "6 pairs"},
		"an unpaired run": {toOld, evidenceOf(old, young[:5]), passed, ReasonHolds, "5 pairs"},
		"unlike pairs":    {toOld, evidenceOf(old, measured("new", scanned, times(shares, 50, 1, 7, 2, 9, 3)...)), inconclusive, ReasonUnclear, ""},
		"no pairs":        {toOld, evidenceOf(old[:3], young[3:]), inconclusive, ReasonNoData, "never measured in the same repetition"},
		"no rival":        {toOld, evidenceOf(young), inconclusive, ReasonNoData, "variant old has no valid runs"},
		"another metric": {ratioGate(scanned, unaged, "old", "", "80%"),
			evidenceOf(measured("old", unaged, thousand...), measured("new", scanned, shares...)), failed, ReasonAboveMaximum,
			"/ fresh-scan.readBytesPerSecond of variant old = 0.835"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeOnly(t, test.evidence, []v1alpha1.Gate{test.gate}, "new", "old")[0]
			if got.Verdict != test.verdict || got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
				t.Errorf("want %s, %s: %s", test.verdict, test.reason, test.says)
			}
		})
	}
	matrix := evidenceOf(measured("old,x=1", scanned, thousand...), measured("new,x=1", scanned, shares...),
		measured("old,x=2", scanned, times(thousand, 9)...), measured("new,x=2", scanned, times(thousand, 3)...))
	got := judgeOnly(t, matrix, []v1alpha1.Gate{toOld}, "old,x=1", "new,x=1", "old,x=2", "new,x=2")[0]
	if got.Verdict != failed || !strings.HasPrefix(got.Message, "does not hold for 1 of 2 variants: \"new,x=2\": ") &&
		!strings.HasPrefix(got.Message, "does not hold for 1 of 2 variants: new,x=2: ") || !strings.Contains(got.Message, "0.3333") {
		t.Errorf("%+v", got)
	}
}

// TestRatiosOfShares: with few operations, a share may in truth be as many as ten of them, in both metrics.
func TestRatiosOfShares(t *testing.T) {
	tails := func(operations int64) Evidence {
		runs := appended(operations, 20_000, 20_000, 20_000, 20_000, 20_000)
		for i, other := range appended(operations, 10_000, 10_000, 10_000, 10_000, 10_000) {
			other.Phases[0].Name = "scan"
			runs[i].Phases = append(runs[i].Phases, other.Phases...)
		}
		return Evidence{Runs: runs, Summary: results.Summarise(runs)}
	}
	gate := ratioGate("redo."+overTen, "scan."+overTen, "", "150%", "")
	set, err := Compile([]v1alpha1.Gate{gate}, redoPhases, []string{"default"})
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Judge(tails(1e6))[0]; got.Verdict != passed || !strings.Contains(got.Message, "= 2 (5 runs)") {
		t.Errorf("%+v", got)
	}
	if got := set.Judge(tails(700))[0]; got.Reason != ReasonTooFewOperations || !strings.Contains(got.Message, "measure longer") {
		t.Errorf("%+v", got)
	}
	if got := set.Derived(); len(got["redo"]) != 2 || len(got["scan"]) != 2 {
		t.Error(got)
	}
}

func TestRatiosRefused(t *testing.T) {
	for name, test := range map[string]struct {
		gate v1alpha1.Gate
		says string
	}{
		"units":         {ratioGate(scanned, "aged-scan.readBytes", "", "1x", ""), "ratio.to: aged-scan.readBytes is in bytes, but aged-scan.readBytesPerSecond is in bytes/s"},
		"itself":        {ratioGate(scanned, scanned, "", "1x", ""), "to itself is always 1"},
		"to nothing":    {ratioGate(scanned, "", "", "1x", ""), "neither to nor toVariant"},
		"no limit":      {ratioGate(scanned, unaged, "", "", ""), "ratio has neither min nor max"},
		"swapped":       {ratioGate(scanned, unaged, "", "110%", "1.05"), "ratio.min 110% is larger than ratio.max 1.05x"},
		"phase":         {ratioGate(scanned, "new-scan.readBytes", "", "1", ""), `ratio.to: metric "new-scan.readBytes": phase "new-scan"`},
		"metric":        {ratioGate("aged-scan.readByte", unaged, "", "1", ""), `ratio.of: metric "aged-scan.readByte": there is no metric "readByte"`},
		"variant":       {ratioGate(scanned, "", "odl", "1", ""), `ratio.toVariant: there is no variant "odl": did you mean "old"`},
		"a percentage":  {ratioGate(scanned, unaged, "", "80", ""), `ratio.min "80" is 80 times as much: write 80% or 80x`},
		"a unit":        {ratioGate(scanned, unaged, "", "5ms", ""), `ratio.min "5ms" is not a ratio: write one such as 80%, 1.5x or 0.8`},
		"a suffix":      {ratioGate(scanned, unaged, "", "", "2k"), `ratio.max "2k" is not a ratio`},
		"twice a unit":  {ratioGate(scanned, unaged, "", "", "2x%"), `"2x%" is not a ratio`},
		"negative":      {ratioGate(scanned, unaged, "", "-1", ""), `"-1" is not a ratio`},
		"a fraction":    {ratioGate(scanned, unaged, "", "4/5", ""), `"4/5" is not a ratio`},
		"an exponent":   {ratioGate(scanned, unaged, "", "1e3", ""), `"1e3" is not a ratio`},
		"a nasty phase": {ratioGate("x\n.y", unaged, "", "1", ""), "ratio.of"},
	} {
		if _, err := Compile([]v1alpha1.Gate{test.gate}, somePhases, []string{"old", "new"}); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Compile([]v1alpha1.Gate{ratioGate(scanned, "", "old", "1", "")}, somePhases, []string{"old"}); err == nil ||
		!strings.Contains(err.Error(), `no other variant with phase "aged-scan" is compared with "old"`) {
		t.Error(err)
	}
	if _, err := Compile([]v1alpha1.Gate{ratioGate(scanned, unaged, "blank,x=1", "1", "")}, partly, partlyVariants); err == nil {
		t.Error("no matrix has the path x")
	}
	set, err := Compile([]v1alpha1.Gate{ratioGate(scanned, "fill.readBytesPerSecond", "blank", "1", "")}, partly, partlyVariants)
	if err != nil {
		t.Fatal(err)
	}
	// Only the rival needs the phase of its metric.
	if diff := cmp.Diff(partlyVariants[:2], set.gates[0].variants); diff != "" {
		t.Error(diff)
	}
	want := []Reference{{"", "aged-scan", "readBytesPerSecond"}, {"blank", "fill", "readBytesPerSecond"}}
	if diff := cmp.Diff(want, set.References()[0]); diff != "" {
		t.Error(diff)
	}
}

func TestRatiosAreDefined(t *testing.T) {
	for want, gate := range map[string]v1alpha1.Gate{
		"a.x is at least 0.8x and at most 110% of b.x": ratioGate("a.x", "b.x", "", "0.8", "110%"),
		"a.x is at most 1.5x of a.x in variant old":    ratioGate("a.x", "", "old", "", "1.5x"),
		"a.x is at least 2x of b.y in variant old":     ratioGate("a.x", "b.y", "old", "2", ""),
	} {
		if got := Definition(gate); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
