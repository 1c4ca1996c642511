package workload

import (
	"testing"
	"time"
)

// TestLongestPoint: the length of a point doubles each time the series is full.
func TestLongestPoint(t *testing.T) {
	for measured, want := range map[time.Duration]time.Duration{0: time.Second, 8 * time.Minute: time.Second, 481 * time.Second: 2 * time.Second,
		time.Hour: 8 * time.Second, 2 * time.Hour: 16 * time.Second, 4 * time.Hour: 32 * time.Second} {
		if got := longestPoint(measured); got != want {
			t.Errorf("%s: %s, want %s", measured, got, want)
		}
	}
}
