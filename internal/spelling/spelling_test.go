package spelling

import "testing"

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
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"abc", "acb", 2}, {"flaw", "lawn", 2}} {
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
