//go:build linux

package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/fio"
)

// TestPercentilesNeedOperations: at least ten operations are slower than a percentile, or it is not known.
func TestPercentilesNeedOperations(t *testing.T) {
	for _, c := range []struct {
		count int
		known []string
	}{
		{1, nil}, {19, nil}, {20, []string{"P50"}}, {199, []string{"P50"}}, {200, []string{"P50", "P95"}}, {999, []string{"P50", "P95"}},
		{1000, []string{"P50", "P95", "P99"}}, {9999, []string{"P50", "P95", "P99"}}, {10_000, []string{"P50", "P95", "P99", "P999"}},
	} {
		s := &session{metrics: map[string]int64{}}
		var latency fio.Latency
		for i := range c.count {
			latency.Observe(int64(i+1) * 1000)
		}
		s.addLatency("read", latency)
		var known []string
		for _, suffix := range []string{"P50", "P95", "P99", "P999"} {
			name := "readLatency" + suffix + "Nanoseconds"
			_, there := s.metrics[name]
			if there {
				known = append(known, suffix)
			}
			if said := strings.Contains(strings.Join(s.notes, "\n"), suffix+" ("); said == there {
				t.Errorf("%d operations: %s is there: %v, and said to be left out: %v", c.count, suffix, there, said)
			}
		}
		if !slices.Equal(known, c.known) {
			t.Errorf("%d operations: %v are known, want %v", c.count, known, c.known)
		}
	}
}
