package gate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// partly has a phase for all variants, one for two and one for a third.
var (
	partly = []v1alpha1.Phase{{Name: "fresh-scan"}, {Name: "aged-scan", OnlyFor: []v1alpha1.VariantName{"old", "new"}},
		{Name: "fill", OnlyFor: []v1alpha1.VariantName{"blank"}}}
	partlyVariants = []string{"old,pool.ashift=9", "new,pool.ashift=9", "blank,pool.ashift=9"}
)

// TestGatesJudgeVariantsWithTheirPhases: a gate does not judge variants without its phases, so they are not missing data.
func TestGatesJudgeVariantsWithTheirPhases(t *testing.T) {
	old, young, blank := partlyVariants[0], partlyVariants[1], partlyVariants[2]
	for name, test := range map[string]struct {
		gate v1alpha1.Gate
		want []string
	}{
		"all":                  {boundGate("fresh-scan.readBytesPerSecond", "1B/s", ""), []string{old, young, blank}},
		"bound":                {boundGate("aged-scan.readBytesPerSecond", "1B/s", ""), []string{old, young}},
		"bound of one":         {boundGate("fill.readBytesPerSecond", "1B/s", ""), []string{blank}},
		"expression":           {expression(aged + " > 0.5 * " + fresh), []string{old, young}},
		"expression with name": {expression(fresh + " > 0.5 * variant('" + old + "')." + aged), []string{old, young, blank}},
		"baseline":             {compareGate(scanned, "Baseline", ""), []string{old, young}},
		"variant":              {compareGate(scanned, "Variant", "old"), []string{old, young}}, // the rival is skipped when it is judged
	} {
		set, err := Compile([]v1alpha1.Gate{test.gate}, partly, partlyVariants)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, set.gates[0].variants); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestGatesOnPhasesOfOthersAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		gate v1alpha1.Gate
		want string
	}{
		"no variant has both": {expression("phase('fill').readBytesPerSecond < " + aged), "no variant has all of its phases fill, aged-scan"},
		"a variant without it": {expression("variant('blank,pool.ashift=9')." + aged + " > 1.0"),
			`variant "blank,pool.ashift=9" does not have phase "aged-scan": add it to onlyFor of the phase, or use one of old, new`},
		"a rival without it": {compareGate(scanned, "Variant", "blank"), `compare.variant: variant "blank,pool.ashift=9" does not have phase "aged-scan"`},
		"only the rival has it": {compareGate("fill.writeBytesPerSecond", "Variant", "blank"),
			`no other variant with phase "fill" is compared with "blank"`},
	} {
		_, err := Compile([]v1alpha1.Gate{test.gate}, partly, partlyVariants)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want ...%s...", name, err, test.want)
		}
	}
}

// TestVariantsWithoutThePhaseAreNoComparisons: they neither make a gate Inconclusive nor take a share of the level.
func TestVariantsWithoutThePhaseAreNoComparisons(t *testing.T) {
	set, err := Compile([]v1alpha1.Gate{compareGate(scanned, "Variant", "old"), boundGate("aged-scan.readBytesPerSecond", "50B/s", "")}, partly,
		partlyVariants)
	if err != nil {
		t.Fatal(err)
	}
	if comparisons, variants, bounds := set.count(); comparisons != 1 || variants != 1 || bounds != 1 {
		t.Errorf("%d comparisons, %d of variants, %d bounds, want one each", comparisons, variants, bounds)
	}
	summary := []results.VariantResult{numbers(partlyVariants[0], 100, 100), numbers(partlyVariants[1], 100, 100),
		numbers(partlyVariants[2], 100, -1)}
	for i, status := range set.Judge(Evidence{Summary: summary, Runs: runsOf(summary)}) {
		if status.Verdict != passed || strings.Contains(status.Message, "blank") {
			t.Errorf("gate %d: %s %s: %s", i, status.Verdict, status.Reason, status.Message)
		}
	}
}
