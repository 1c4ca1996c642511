package naming

import "testing"

func TestLike(t *testing.T) {
	for text, want := range map[string]string{"My_Bench": "my-bench", "--a..b--": "a-b", "nightly-1": "nightly-1", "\u00fc/!": "", "": ""} {
		if got := Like(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
