package report

import (
	"testing"

	"github.com/storagebench/storagebench/internal/results"
)

// TestMainTitles: each key that is shown first needs a title, and no title is left over.
func TestMainTitles(t *testing.T) {
	for _, key := range results.MainKeys {
		if mainTitles[key] == "" {
			t.Errorf("%s has no title", key)
		}
	}
	if len(mainTitles) != len(results.MainKeys) || len(mainTitles) == 0 {
		t.Errorf("%d titles for %d keys", len(mainTitles), len(results.MainKeys))
	}
}
