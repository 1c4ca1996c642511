// Package resultstest helps tests with results.
package resultstest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
)

// WithoutPart returns an experiment as it is stored if a part does not fit.
func WithoutPart(t *testing.T, e results.Experiment, part string) results.Experiment {
	t.Helper()
	text, omitted, err := e.Encode(1 << 20)
	for err == nil && !slices.ContainsFunc(omitted, func(words string) bool { return strings.HasPrefix(words, part) }) {
		text, omitted, err = e.Encode(len(text) - 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	var stored results.Experiment
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	return stored
}
