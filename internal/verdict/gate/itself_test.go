package gate

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestNeverForItself: a gate that compares every variant with one of them fails for this one, unless it holds for equal values.
func TestNeverForItself(t *testing.T) {
	for text, want := range map[string]string{
		"phase('aged-scan').readBytesPerSecond > variant('old').phase('aged-scan').readBytesPerSecond":                   "old",
		"phase('aged-scan').readBytesPerSecond >= 1.2 * variant('old').phase('aged-scan').readBytesPerSecond":            "old",
		"phase('aged-scan').readBytesPerSecond >= 0.9 * variant('old').phase('aged-scan').readBytesPerSecond":            "",
		"phase('aged-scan').readBytesPerSecond <= variant('old').phase('aged-scan').readBytesPerSecond":                  "",
		"phase('aged-scan').readBytesPerSecond > variant('old').phase('fresh-scan').readBytesPerSecond":                  "",
		"phase('aged-scan').ioErrors < 1.0 && variant('old').phase('aged-scan').readBytesPerSecond > 100.0e6":            "",
		"variant('new').phase('aged-scan').readBytesPerSecond > variant('old').phase('aged-scan').readBytesPerSecond":    "",
		"phase('aged-scan').ioErrors < variant('old').phase('aged-scan').ioErrors || phase('aged-scan').ioErrors == 0.0": "",
		"phase('aged-scan').readBytesPerSecond / variant('old').phase('aged-scan').readBytesPerSecond > 1.5":             "old",
		"phase('aged-scan').readBytesPerSecond > 1.0":                                                                    "",
	} {
		gate := v1alpha1.Gate{Name: "g", Expression: text}
		for _, only := range []v1alpha1.VariantParts{"", "new"} {
			gate.Variants = nil
			if only != "" {
				gate.Variants = append(gate.Variants, only)
			}
			set, err := Compile([]v1alpha1.Gate{gate}, somePhases, []string{"old", "new"})
			if err != nil {
				if only == "" {
					t.Errorf("%s: %v", text, err)
				}
				continue // an expression that names all its variants takes no list
			}
			wanted := want
			if only == "new" {
				wanted = ""
			}
			if got := set.NeverForItself()[0]; got != wanted {
				t.Errorf("%s, only %q: %q, want %q", text, only, got, wanted)
			}
		}
	}
}
