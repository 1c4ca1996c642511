//go:build linux

package main

import (
	"strings"
	"testing"
)

// TestMeasure: the bench comes to a verdict, and every column is filled.
func TestMeasure(t *testing.T) {
	m, err := measure(t.Context(), 2*repetitions)
	if err != nil || m.read <= 0 || m.judge <= 0 || m.write <= 0 || m.render <= 0 || m.processor <= 0 || m.peak < 1<<20 {
		t.Errorf("%v: %+v", err, m)
	}
	if cells := strings.Count(m.String(), "\t"); cells != 8 {
		t.Errorf("%d cells in %q, want 8", cells, m)
	}
}
