package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadEnd: only a complete text for this run ends a workload.
func TestReadEnd(t *testing.T) {
	at := time.Date(2026, 11, 25, 18, 0, 5, 500_000_000, time.UTC)
	for name, c := range map[string]struct {
		text string
		told bool
	}{
		"written":         {EndText("run-1", at.In(time.FixedZone("", 3600))), true},
		"no line end":     {"run-1 2026-11-25T18:00:05.5Z", true},
		"of another run":  {EndText("run-2", at), false},
		"of no run":       {EndText("", at), false},
		"no time":         {"run-1 soon", false},
		"only a run":      {"run-1", false},
		"empty":           {"", false},
		"more behind it":  {EndText("run-1", at) + EndText("run-1", at), false},
		"larger than one": {strings.Repeat(" ", longestEnd) + EndText("run-1", at), false},
	} {
		path := filepath.Join(t.TempDir(), EndKey)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, told := ReadEnd(path, "run-1"); told != c.told || told && !got.Equal(at) {
			t.Errorf("%s: %s, %v", name, got, told)
		}
		if _, told := ReadEnd(path, ""); told {
			t.Errorf("%s: it is taken for a run without a UID", name)
		}
	}
	if _, told := ReadEnd(filepath.Join(t.TempDir(), EndKey), "run-1"); told {
		t.Error("a file that is not there tells something")
	}
}
