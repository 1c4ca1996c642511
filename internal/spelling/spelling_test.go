package spelling

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNearest(t *testing.T) {
	names := []string{"recordsize", "redundant_metadata", "sync", "lz4", "readBytesPerSecond", "readLatencyP99Nanoseconds",
		"readLatencyP999Nanoseconds", "a"}
	for given, want := range map[string]struct{ nearest, slip string }{
		"recordsze":          {"recordsize", "recordsize"},
		"RecordSize":         {"recordsize", "recordsize"},
		"record_siz":         {"recordsize", "recordsize"},
		"readBytesPerSec":    {"readBytesPerSecond", ""},
		"lz5":                {"lz4", "lz4"},
		"synk":               {"sync", "sync"},
		"snappy":             {"", ""},
		"zfs_something_else": {"", ""},
		"":                   {"", ""},
		"redundant":          {"redundant_metadata", ""},
		"readlatencyp99":     {"readLatencyP99Nanoseconds", ""},
		"readLatency":        {"", ""}, // two begin with it
		"d":                  {"", ""},
	} {
		if got := Nearest(given, names); got != want.nearest {
			t.Errorf("Nearest(%q) is %q instead of %q", given, got, want.nearest)
		}
		if got := Slip(given, names); got != want.slip {
			t.Errorf("Slip(%q) is %q instead of %q", given, got, want.slip)
		}
	}
}

func TestInstead(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{{[]string{"workers", "duration"}, "did you mean workers?"}, {[]string{"sync", "cache"}, "write one of sync, cache"}, {nil, "remove it"}} {
		if got := Instead("worker", c.names); got != c.want {
			t.Errorf("%q instead of %q", got, c.want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"abc", "acb", 1}, {"no", "on", 2}, {"wacth", "watch", 1}, {"cab", "abc", 2}, {"flaw", "lawn", 2}} {
		if got := editDistance(test.a, test.b); got != test.want {
			t.Errorf("from %q to %q it is %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 runs", 1: "1 run", 2: "2 runs"} {
		if got := Count(n, "run"); got != want {
			t.Errorf("Count(%d) is %q instead of %q", n, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, test := range []struct {
		text   string
		length int
		want   string
	}{
		{"", 5, ""}, {"hello", 5, "hello"}, {"hello!", 5, "he..."}, {"hello", 3, "..."}, {"€€", 5, "..."}, {"€€", 6, "€€"},
		{"a\xbf\xbfb", 5, "a?b"},
	} {
		if got := Shorten(test.text, test.length); got != test.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", test.text, test.length, got, test.want)
		}
	}
	for _, text := range []string{"äöüß€€€€𝄞𝄞𝄞𝄞", strings.Repeat("x", 40), strings.Repeat("𝄞", 20)} {
		for length := 3; length <= len(text)+2; length++ {
			got := Shorten(text, length)
			if len(got) > length || !utf8.ValidString(got) {
				t.Errorf("Shorten(%q, %d) = %q", text, length, got)
			}
			if length >= len(text) && got != text || length < len(text) && !strings.HasSuffix(got, "...") {
				t.Errorf("Shorten(%q, %d) = %q", text, length, got)
			}
			if strings.HasPrefix(text, "x") && len(got) != min(length, len(text)) {
				t.Errorf("Shorten(%q, %d) wastes space: %q", text, length, got)
			}
		}
	}
}
