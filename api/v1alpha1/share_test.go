package v1alpha1

import "testing"

func TestPercent(t *testing.T) {
	for text, want := range map[Share]float64{"0%": 0, "2.5%": 2.5, "57%": 57, "99.99%": 99.99, "100%": 100} {
		if got, err := text.Percent(); err != nil || got != want {
			t.Errorf("%s is %v: %v", text, got, err)
		}
	}
	for _, text := range []Share{"", "%", "5", "0.5", "101%", "-1%", "NaN%", "Inf%", "5%%", "5 %"} {
		if got, err := text.Percent(); err == nil || got != 0 {
			t.Errorf("%q is %v", text, got)
		}
	}
}
