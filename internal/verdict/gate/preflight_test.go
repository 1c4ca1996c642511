package gate

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// checked returns runs of a variant, each with these results of checks, as "CHECK STATE".
func checked(variant string, runs ...string) []results.RunResult {
	var all []results.RunResult
	for i, text := range runs {
		run := results.RunResult{Name: variant, Variant: variant, Repetition: int32(i + 1), Valid: true}
		for _, one := range strings.Split(text, ", ") {
			if check, state, is := strings.Cut(one, " "); is {
				found := results.PreflightResult{Check: check, State: state}
				if state != results.PreflightClean {
					found.Messages = []string{"sda is odd"}
				}
				run.Preflight = append(run.Preflight, found)
			}
		}
		all = append(all, run)
	}
	return all
}

func TestPreflightGates(t *testing.T) {
	gate := func(checks ...v1alpha1.PreflightCheck) v1alpha1.Gate {
		return v1alpha1.Gate{Name: "g", Preflight: &v1alpha1.PreflightGate{Checks: checks}}
	}
	only := gate("ashift")
	only.Variants = []v1alpha1.VariantParts{"a12"}
	warned := func(checks ...v1alpha1.PreflightCheck) v1alpha1.Gate {
		asked := gate(checks...)
		asked.Preflight.Expect = results.PreflightWarning
		return asked
	}
	onlyWarned := warned("ashift")
	onlyWarned.Variants = []v1alpha1.VariantParts{"a9"}
	clean, odd := "ashift Clean, sectors Clean", "ashift Warning, sectors Clean"
	invalid := checked("a12", clean, odd)
	invalid[1].Valid = false
	for name, test := range map[string]struct {
		gate    v1alpha1.Gate
		runs    [][]results.RunResult
		verdict v1alpha1.Verdict
		reason  string
		says    string
	}{
		"all":               {gate(), [][]results.RunResult{checked("a12", clean, clean)}, passed, ReasonHolds, "a12: ashift, sectors: no warnings (2 runs)"},
		"one of them":       {gate("sectors"), [][]results.RunResult{checked("a12", odd, odd)}, passed, ReasonHolds, "sectors: no warnings (2 runs)"},
		"a warning":         {gate(), [][]results.RunResult{checked("a12", odd, odd)}, failed, ReasonPreflightWarning, "ashift: sda is odd"},
		"in one run":        {gate("ashift"), [][]results.RunResult{checked("a12", clean, odd, clean)}, failed, ReasonPreflightWarning, "ashift: sda is odd (1 of 3 runs)"},
		"not known":         {gate(), [][]results.RunResult{checked("a12", clean, "ashift Unknown, sectors Clean")}, inconclusive, ReasonNotChecked, "ashift: sda is odd (1 of 2 runs)"},
		"known to be odd":   {gate(), [][]results.RunResult{checked("a12", odd, "ashift Unknown")}, failed, ReasonPreflightWarning, ""},
		"of the future":     {gate(), [][]results.RunResult{checked("a12", "ashift Strange")}, inconclusive, ReasonNotChecked, ""},
		"not made":          {gate("memory"), [][]results.RunResult{checked("a12", clean)}, inconclusive, ReasonNotChecked, "memory: the check did not run"},
		"none made":         {gate(), [][]results.RunResult{checked("a12", "")}, inconclusive, ReasonNotChecked, "the check did not run"},
		"no runs":           {gate(), nil, inconclusive, ReasonNoData, "has no valid runs"},
		"an invalid run":    {gate(), [][]results.RunResult{invalid}, passed, ReasonHolds, "(1 run)"},
		"only a variant":    {only, [][]results.RunResult{checked("a9,x=1", odd), checked("a12", clean)}, passed, ReasonHolds, "ashift: no warnings (1 run)"},
		"each variant":      {gate("ashift"), [][]results.RunResult{checked("a9,x=1", odd), checked("a12", clean)}, failed, ReasonPreflightWarning, "does not hold for 1 of 2 variants"},
		"warns as asked":    {warned("ashift"), [][]results.RunResult{checked("a12", odd, odd)}, passed, ReasonHolds, "warns as expected: ashift: sda is odd (2 runs)"},
		"one does not warn": {warned("ashift"), [][]results.RunResult{checked("a12", odd, clean, odd)}, failed, ReasonPreflightClean, "no warning, and one is expected: ashift (1 of 3 runs)"},
		"one check does":    {warned("ashift", "sectors"), [][]results.RunResult{checked("a12", odd)}, failed, ReasonPreflightClean, "expected: sectors"},
		"whether it warns":  {warned("ashift"), [][]results.RunResult{checked("a12", odd, "ashift Unknown")}, inconclusive, ReasonNotChecked, "ashift: sda is odd (1 of 2 runs)"},
		"not made to warn":  {warned("memory"), [][]results.RunResult{checked("a12", odd)}, inconclusive, ReasonNotChecked, "memory: the check did not run"},
		"nothing to warn":   {warned("ashift"), nil, inconclusive, ReasonNoData, "has no valid runs"},
		"one variant warns": {onlyWarned, [][]results.RunResult{checked("a9,x=1", odd), checked("a12", clean)}, passed, ReasonHolds, "ashift: sda is odd (1 run)"},
	} {
		t.Run(name, func(t *testing.T) {
			variants := []string{"a12"}
			if len(test.runs) > 1 {
				variants = []string{"a9,x=1", "a12"}
			}
			got := judgeOnly(t, evidenceOf(test.runs...), []v1alpha1.Gate{test.gate}, variants...)[0]
			says := strings.TrimPrefix(test.says, "a12: ")
			if got.Verdict != test.verdict || got.Reason != test.reason || !strings.Contains(got.Message, says) {
				t.Errorf("want %s, %s: %s", test.verdict, test.reason, says)
			}
		})
	}
	for says, wrong := range map[string]v1alpha1.PreflightGate{
		`there is no check "sektors": did you mean "sectors"?`:    {Checks: []v1alpha1.PreflightCheck{"sektors"}},
		`preflight.expect: set checks to those that have to warn`: {Expect: results.PreflightWarning},
		`preflight.checks: there is no check "ashfit"`:            {Expect: results.PreflightWarning, Checks: []v1alpha1.PreflightCheck{"ashfit"}},
	} {
		if _, err := Compile([]v1alpha1.Gate{{Name: "g", Preflight: &wrong}}, somePhases, []string{"a9,x=1", "a12"}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	if got := Definition(only); got != "no warnings from the preflight checks ashift, in a12" {
		t.Error(got)
	}
	if got := Definition(onlyWarned); got != "a warning from each of the preflight checks ashift, in a9" {
		t.Error(got)
	}
}

// TestPreflightChecksOfTheAPI: the API accepts every existing check, and no other.
func TestPreflightChecksOfTheAPI(t *testing.T) {
	text, err := os.ReadFile("../../../api/v1alpha1/gate_types.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`validation:Enum=(\S+)\ntype PreflightCheck`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the API has no list of checks")
	}
	if got, want := strings.Split(string(found[1]), ";"), results.PreflightChecks(); !slices.Equal(got, want) || len(want) < 6 {
		t.Errorf("the API has %v, there are %v", got, want)
	}
}
