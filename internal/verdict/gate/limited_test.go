package gate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func limited(gate v1alpha1.Gate, variants ...v1alpha1.VariantParts) v1alpha1.Gate {
	gate.Variants = variants
	return gate
}

// TestGatesWithinAMatrix: a gate names a variant by some of its values, and compares each variant with that of the same other values.
func TestGatesWithinAMatrix(t *testing.T) {
	const off, lz4 = "dataset.compression=off", "dataset.compression=lz4"
	variants := []string{off + ",dataset.recordsize=8k", off + ",dataset.recordsize=128k", lz4 + ",dataset.recordsize=8k",
		lz4 + ",dataset.recordsize=128k", lz4 + ",dataset.recordsize=1M"} // the last is one of matrixInclude, without a counterpart
	var evidence Evidence
	for i, level := range []float64{100, 200, 150, 500, 700} {
		more := evidenceOf(measured(variants[i], scanned, scaled(level)...))
		evidence.Runs, evidence.Summary = append(evidence.Runs, more.Runs...), append(evidence.Summary, more.Summary...)
	}
	evidence.Order = v1alpha1.OrderInterleaved
	for name, test := range map[string]struct {
		gate    v1alpha1.Gate
		verdict v1alpha1.Verdict
		says    []string
	}{
		"ratio":         {ratioGate(scanned, "", off, "120%", ""), passed, []string{variants[0] + " = 1.5 ", variants[1] + " = 2.5 "}},
		"of one":        {limited(ratioGate(scanned, "", off, "200%", ""), "dataset.recordsize=128k"), passed, []string{variants[1] + " = 2.5 "}},
		"of the other":  {limited(ratioGate(scanned, "", off, "200%", ""), "dataset.recordsize=8k"), failed, []string{variants[0] + " = 1.5 "}},
		"whole name":    {limited(ratioGate(scanned, "", "dataset.recordsize=8k,"+off, "490%", ""), v1alpha1.VariantParts(variants[3])), passed, []string{" = 5 "}},
		"compare":       {compareGate(scanned, "Variant", lz4), failed, []string{"holds for none of the 2 variants"}},
		"compare to 8k": {limited(compareGate(scanned, "Variant", "dataset.recordsize=8k"), lz4), passed, []string{"in variant " + variants[2]}},
		"bound":         {limited(boundGate(scanned, "600M", ""), "dataset.recordsize=1M"), passed, []string{"median lies between"}},
		"bound of more": {limited(boundGate(scanned, "300M", ""), v1alpha1.VariantParts(variants[1]), lz4), failed, []string{"does not hold for 2 of 4 variants"}},
		"expression":    {limited(expression(aged+" > 400000000.0"), "dataset.recordsize=1M"), passed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeOnly(t, evidence, []v1alpha1.Gate{test.gate}, variants...)[0]
			if got.Verdict != test.verdict {
				t.Errorf("want %s", test.verdict)
			}
			for _, says := range test.says {
				if !strings.Contains(strings.ReplaceAll(got.Message, `"`, ""), says) {
					t.Errorf("want ...%s...", says)
				}
			}
			if strings.Contains(got.Message, "no data") {
				t.Error("a variant without a counterpart is judged")
			}
		})
	}
	set, err := Compile([]v1alpha1.Gate{limited(boundGate(scanned, "1B/s", ""), "dataset.recordsize=8k")}, somePhases, variants)
	if err != nil {
		t.Fatal(err)
	}
	want := []Reference{{variants[0], "aged-scan", "readBytesPerSecond"}, {variants[2], "aged-scan", "readBytesPerSecond"}}
	if diff := cmp.Diff(want, set.References()[0]); diff != "" {
		t.Errorf("a metric is needed of the judged variants only:\n%s", diff)
	}
}

func TestGatesLimitedToVariantsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		gate v1alpha1.Gate
		want string
	}{
		"no such variant": {limited(boundGate(scanned, "1B/s", ""), "odl"), `variants: there is no variant "odl": did you mean "old"?`},
		"the rival alone": {limited(ratioGate(scanned, "", "old", "1", ""), "old"), `ratio.toVariant: no other variant with phase "aged-scan" is compared with "old"`},
		"another phase":   {limited(boundGate("fill.writeBytesPerSecond", "1B/s", ""), "old"), "no variant has all of its phases fill"},
		"an expression that names variants": {limited(expression("variant('old').phase('fresh-scan').readBytes > 1.0"), "new"),
			"variants: the expression names its variants itself: remove variants"},
	} {
		if _, err := Compile([]v1alpha1.Gate{test.gate}, partly, []string{"old", "new", "blank"}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want ...%s...", name, err, test.want)
		}
	}
	if got := Definition(limited(boundGate(scanned, "1B/s", ""), "old", "new")); got != "aged-scan.readBytesPerSecond is at least 1B/s, in old and new" {
		t.Error(got)
	}
}
